"""Scores of masks by hand."""

from __future__ import annotations

import numpy as np
import pytest

from wisecrowd.kinds.masks.metrics import border, boundary_f, mask_iou, run_length_scores
from wisecrowd.kinds.masks.run_lengths import counts_of, overlap_shares


def square(top: int, left: int, side: int = 4) -> np.ndarray:
    mask = np.zeros((12, 11), dtype=bool)
    mask[top : top + side, left : left + side] = True
    return mask


def dice(one: np.ndarray, other: np.ndarray) -> float:
    return overlap_shares(counts_of(one), counts_of(other))[1]


def test_areas():
    assert mask_iou(square(2, 2), square(2, 4)) == pytest.approx(8 / 24)
    assert dice(square(2, 2), square(2, 4)) == pytest.approx(16 / 32)
    assert mask_iou(square(0, 0, 0), square(0, 0, 0)) == 1
    assert dice(np.zeros((1, 1), dtype=bool), np.zeros((1, 1), dtype=bool)) == 1
    with pytest.raises(ValueError, match="shapes"):
        mask_iou(np.zeros((2, 2)), np.zeros((3, 2)))


def test_borders():
    assert border(square(2, 2)).sum() == 12
    assert border(np.ones((3, 3), dtype=bool)).sum() == 8  # the edge of the image is a border
    assert boundary_f(square(2, 2), square(2, 2), 0) == 1
    # All border pixels of a shifted square are within 1; with 0 only those on both borders.
    assert boundary_f(square(2, 2), square(3, 2), 1) == 1
    shared = (border(square(2, 2)) & border(square(3, 2))).sum() / 12
    assert boundary_f(square(2, 2), square(3, 2), 0) == pytest.approx(shared)
    assert boundary_f(square(0, 0), square(8, 7)) == 0
    assert boundary_f(square(0, 0, 0), square(1, 1)) == 0
    assert boundary_f(square(0, 0, 0), square(0, 0, 0)) == 1


def test_run_lengths_score_as_pixels_do():
    wanted, given = [square(2, 2), square(1, 5)], [square(2, 4), square(2, 5)]
    runs = [counts_of(mask) for mask in given]
    found = run_length_scores(
        {i: counts_of(mask) for i, mask in enumerate(wanted)},
        np.concatenate(runs), np.cumsum([0, *map(len, runs)]), np.full(2, 12), np.full(2, 11),
    )  # fmt: skip
    pairs = list(zip(wanted, given, strict=True))
    for name, score in {"iou": mask_iou, "dice": dice, "boundary_f": boundary_f}.items():
        assert found[name] == pytest.approx(np.mean([score(*pair) for pair in pairs]))
