"""SetVote: shares by hand, empty sets, weights, and the cut at half."""

from __future__ import annotations

import numpy as np

from wisecrowd.aggregation import SetVote
from wisecrowd.kinds.sets.container import CrowdSets

TASK, WORKER = ["t", "t", "t", "u"], ["a", "b", "c", "a"]
SETS = [["x"], ["x", "y"], [], []]


def test_shares_by_hand():
    model = SetVote().fit(CrowdSets.from_arrays(TASK, WORKER, SETS, classes=["x", "y"]))
    np.testing.assert_allclose(model.probas_, [[2.5 / 4, 1.5 / 4], [0.5 / 2, 0.5 / 2]])
    assert model.labels_.tolist() == ["x", ""]


def test_a_weight_is_a_repetition():
    weighed = CrowdSets.from_arrays(TASK, WORKER, SETS, classes=["x", "y"], weight=[1, 3, 1, 1])
    probas = SetVote().fit(weighed).probas_
    np.testing.assert_allclose(probas[0], [4.5 / 6, 3.5 / 6])


def test_the_threshold_decides():
    data = CrowdSets.from_arrays(TASK, WORKER, SETS, classes=["x", "y"])
    assert SetVote(threshold=0.3).fit(data).labels_[0] == "x|y"
    assert SetVote(threshold=0.9).fit(data).labels_[0] == ""
