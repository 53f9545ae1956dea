"""Agreement of texts against the distances of all pairs."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from wisecrowd import simulate
from wisecrowd.kinds.texts.agreement import agreement_evidence
from wisecrowd.kinds.texts.metrics import edit_distance, word_error_rate
from wisecrowd.truth.agreement_intervals import variances_of


def test_word_agreement_is_that_of_all_pairs():
    data = simulate.texts(15, 6, simulate.PerTask(4), random_state=0).data
    far, equal = [], []
    for a, b in combinations(range(data.n_annotations), 2):
        if data.task[a] == data.task[b]:
            one, two = ([str(data.text[e])] for e in (a, b))
            far.append(edit_distance(one, two))
            equal.append(word_error_rate(one, two) == 0)
    found = agreement_evidence(data).coefficients
    assert found["word_agreement"].value == pytest.approx(1 - np.mean(far))
    assert found["equal_texts"].value == pytest.approx(np.mean(equal))


def test_variance_over_workers_is_that_of_leaving_out():
    data = simulate.texts(60, 5, random_state=1).data
    evidence = agreement_evidence(data)
    rows = [agreement_evidence(data.select_annotations(data.worker != j)) for j in range(5)]
    for name, measured in evidence.coefficients.items():
        values = np.array([row.coefficients[name].value for row in rows])
        jackknife = 4 * np.mean((values - values.mean()) ** 2)
        assert variances_of(measured, evidence).workers == pytest.approx(jackknife), name
