"""Agreement of spans against loops over pairs of workers."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from wisecrowd import metrics, simulate
from wisecrowd.kinds.sequences.agreement import agreement_evidence
from wisecrowd.truth.agreement_intervals import variances_of


@pytest.fixture(scope="module")
def data():
    return simulate.sequences(25, 6, simulate.PerTask(4), random_state=1).data


def test_f1_and_alpha_are_those_of_all_pairs(data):
    spans = list(zip(*data.tag_scheme.spans(data.tags, data.pointer), strict=True))
    marked = data.tag_scheme.type_of[data.tags]
    sums = np.zeros((2, 2))
    for a, b in combinations(range(data.n_annotations), 2):
        if data.task[a] != data.task[b]:
            continue
        one, two = ({row[1:] for row in spans if row[0] == e} for e in (a, b))
        sums[0] += 2 * len(one & two), len(one) + len(two)
        first, second = (marked[data.pointer[e] : data.pointer[e + 1]] for e in (a, b))
        both = np.sum((first == second) & (first >= 0))
        sums[1] += 2 * both, np.sum(first >= 0) + np.sum(second >= 0)
    found = agreement_evidence(data).coefficients
    assert found["span_f1"].value == pytest.approx(sums[0, 0] / sums[0, 1])
    assert found["token_f1"].value == pytest.approx(sums[1, 0] / sums[1, 1])
    alpha = metrics.krippendorff_alpha(data.token, marked)
    assert found["krippendorff_alpha"].value == pytest.approx(alpha)


@pytest.mark.parametrize("side", ["tasks", "workers"])
def test_variances_are_those_of_leaving_out(side):
    size = 60 if side == "tasks" else 200
    data = simulate.sequences(size, 5, random_state=2).data
    evidence = agreement_evidence(data)
    codes = data.task if side == "tasks" else data.worker
    n = int(codes.max()) + 1
    rows = [agreement_evidence(data.select_annotations(codes != one)) for one in range(n)]
    for name, measured in evidence.coefficients.items():
        values = np.array([row.coefficients[name].value for row in rows])
        jackknife = (n - 1) * np.mean((values - values.mean()) ** 2)
        found = getattr(variances_of(measured, evidence), side)
        assert np.sqrt(found) == pytest.approx(np.sqrt(jackknife), rel=0.06), name
