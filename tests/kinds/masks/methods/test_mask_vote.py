"""MaskVote: the pixels of a majority, by hand."""

from __future__ import annotations

import numpy as np

from wisecrowd.aggregation import MaskVote
from wisecrowd.kinds.masks.container import CrowdMasks


def test_pixels_that_most_workers_cover():
    wide, tight, corner = np.zeros((3, 4, 5), dtype=bool)
    wide[1:4, 1:5], tight[1:3, 2:4], corner[3, 4] = True, True, True
    data = CrowdMasks.from_arrays(["t"] * 3, ["a", "b", "c"], [wide, tight, corner])
    model = MaskVote().fit(data)
    shares = model.pixel_probabilities("t")
    covered = wide.astype(float) + tight + corner
    np.testing.assert_array_equal(shares > 0.5, covered >= 2)
    assert model.area_.tolist() == [5]


def test_nobody_marks_anything():
    empty = np.zeros((3, 3), dtype=bool)
    model = MaskVote().fit(CrowdMasks.from_arrays(["t", "t"], ["a", "b"], [empty, empty]))
    assert model.area_.tolist() == [0]
    assert np.isfinite(model.confidence_).all()
