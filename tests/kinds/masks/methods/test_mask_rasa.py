"""MaskRasa and MaskVote by hand."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import chi2

from wisecrowd.aggregation import MaskRasa, MaskVote
from wisecrowd.kinds.masks.container import CrowdMasks


def test_one_iteration_by_hand():
    one, two = np.zeros((6, 6)), np.zeros((6, 6))
    one[1:4, 1:4], two[1:4, 1:5] = 1, 1
    data = CrowdMasks.from_arrays(["i"] * 3, list("abc"), [one, one, two])
    model = MaskRasa(max_iter=1).fit(data)
    distance = np.array([0.0, 0.0, 1 - 9 / 12]) + 0.1  # the vote is `one`
    weight = chi2.ppf(0.025, 1) / distance
    assert model.worker_weight_[:3] == pytest.approx(weight / weight.mean())
    votes = 3 * weight[2] / weight.sum()  # of three
    assert model.pixel_probabilities("i")[2, 4] == pytest.approx((votes + 1) / (3 + 2))


def test_a_tie_of_votes_is_inside():
    model = MaskVote().fit((["i", "i"], ["ann", "bob"], [np.eye(4), np.ones((4, 4))]))
    assert model.area_.tolist() == [16]
    assert model.pixel_probabilities("i")[0, 1] == 0.5


def test_careless_workers_get_less_weight():
    rng = np.random.default_rng(0)
    task, worker, masks = [], [], []
    for i in range(10):
        mask = np.zeros((20, 20))
        mask[4:14, 5:15] = 1
        for j in range(5):
            drawn = np.roll(mask, rng.integers(-5, 6, 2), (0, 1)) if j == 4 else mask
            task, worker, masks = [*task, i], [*worker, j], [*masks, drawn]
    weight = MaskRasa().fit((task, worker, masks)).worker_weight_
    assert weight[4] < 0.5 * weight[:4].min()
