"""The confidence of masks: what pixels say, and how far the workers' masks overlap the answer."""

from __future__ import annotations

import numpy as np
import pytest

from wisecrowd import simulate
from wisecrowd.aggregation import MaskEM, MaskRasa, MaskVote
from wisecrowd.kinds.masks.container import CrowdMasks


def iou(one, other):
    union = (one | other).sum()
    return (one & other).sum() / union if union else 1.0


@pytest.mark.parametrize("make", [MaskEM, MaskRasa, MaskVote, lambda: MaskEM(smoothing=1.5)])
def test_the_confidence_is_a_mean_of_pixels_and_overlaps(make):
    data = simulate.masks(6, 4, simulate.PerTask(3), height=20, width=14, random_state=3).data
    model = make().fit(data)
    for i, task in enumerate(data.tasks.tolist()):
        p = model.pixel_probabilities(task)
        answer = p >= 0.5
        masks = [data.dense(e) for e in np.flatnonzero(data.task == i)]
        overlap = np.mean([iou(mask, answer) for mask in masks])
        claim = p[answer].sum() / (answer.sum() + p[~answer].sum())
        assert model.mask_iou_[i] == pytest.approx(overlap)
        assert model.confidence_[i] == pytest.approx((claim + overlap) / 2)


@pytest.mark.parametrize("make", [MaskVote, MaskRasa])
def test_votes_have_one_more_each_way(make):
    inside = np.zeros((6, 6), dtype=int)
    inside[1:4, 1:4] = 1
    data = CrowdMasks.from_arrays(["t"] * 3, list("abc"), [inside] * 3)
    p = make().fit(data).pixel_probabilities("t")
    assert p[2, 2] == pytest.approx(4 / 5)
    assert p[4, 4] == pytest.approx(1 / 5)  # in the rim


def test_weights_count_in_the_overlap_and_empty_answers_keep_their_share():
    small, wide, nothing = np.zeros((3, 8, 8), dtype=int)
    small[:2, :2], wide[:2, :4] = 1, 1
    rows = ["t", "t", "u", "u"], ["a", "b", "a", "b"], [small, wide, nothing, nothing]
    model = MaskVote().fit(CrowdMasks.from_arrays(*rows, weight=[3, 1, 1, 1]))
    assert model.area_.tolist() == [4, 0]
    assert model.mask_iou_[0] == pytest.approx((3 * 1 + 1 * 0.5) / 4)
    assert model.confidence_[1] == pytest.approx(3 / 4)
