"""Agreement of sets against loops over pairs, and alpha of whole sets and single classes."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from wisecrowd import metrics, simulate
from wisecrowd.kinds.sets.agreement import agreement_evidence, class_evidence
from wisecrowd.kinds.sets.metrics import masi_distance


def test_coefficients_are_those_of_all_pairs():
    data = simulate.sets(20, 6, simulate.PerTask(3), random_state=0).data
    sets = [
        frozenset(data.members[data.pointer[e] : data.pointer[e + 1]].tolist())
        for e in range(data.n_annotations)
    ]
    pairs = list(combinations(range(data.n_annotations), 2))
    same = [(sets[a], sets[b]) for a, b in pairs if data.task[a] == data.task[b]]
    found = agreement_evidence(data)
    values = {name: one.value for name, one in found.coefficients.items()}
    assert values["equal_sets"] == pytest.approx(np.mean([a == b for a, b in same]))
    f1 = sum(2 * len(a & b) for a, b in same) / sum(len(a) + len(b) for a, b in same)
    assert values["member_f1"] == pytest.approx(f1)
    observed = np.mean([masi_distance(a, b) for a, b in same])
    expected = np.mean([masi_distance(sets[a], sets[b]) for a, b in pairs])
    assert values["krippendorff_alpha"] == pytest.approx(1 - observed / expected)
    by_class = class_evidence(found).coefficients
    for k in range(data.n_classes):
        alpha = metrics.krippendorff_alpha(data.task, [k in one for one in sets])
        assert by_class[f"alpha {k}"].value == pytest.approx(alpha)
