"""Scores of masks: overlap of areas, and of borders with a tolerance."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.memory_check import require_memory
from wisecrowd.core.run_lengths import Counts, dense_mask, overlap_shares

Ints = NDArray[np.int64]
Pixels = NDArray[np.bool_]
MASK_SCORES = ("iou", "dice", "boundary_f")


def mask_iou(one: Any, other: Any) -> float:
    """Return intersection over union of two masks; 1 if both are empty.

    Examples
    --------
    >>> mask_iou([[1, 1], [0, 0]], [[1, 0], [1, 0]])
    0.3333333333333333
    """
    first, second = _pair(one, other)
    union = int((first | second).sum())
    return int((first & second).sum()) / union if union else 1.0


def mask_dice(one: Any, other: Any) -> float:
    """Return the Dice coefficient, twice the intersection over the sum of areas.

    Examples
    --------
    >>> mask_dice([[1, 1], [0, 0]], [[1, 0], [1, 0]])
    0.5
    """
    first, second = _pair(one, other)
    total = int(first.sum()) + int(second.sum())
    return 2 * int((first & second).sum()) / total if total else 1.0


def boundary_f(one: Any, other: Any, tolerance: float = 2.0) -> float:
    """Return F1 of border pixels that have one of the other border within a distance.

    The border of a mask are its pixels with one of four neighbours outside of it or the image.

    Parameters
    ----------
    one, other : (height, width) masks
    tolerance : float
        Greatest distance in pixels.

    Examples
    --------
    >>> square = np.zeros((9, 9))
    >>> square[2:6, 2:6] = 1
    >>> boundary_f(square, np.roll(square, 1, axis=0), tolerance=1)
    1.0
    """
    first, second = (border(mask) for mask in _pair(one, other))
    if not first.any() or not second.any():
        return float(first.any() == second.any())
    near, also = _near(first, second, tolerance), _near(second, first, tolerance)
    return 2 * near * also / (near + also) if near + also else 0.0


def border(mask: Pixels) -> Pixels:
    """Return the pixels of a mask with one of four neighbours outside of it or the image."""
    framed = np.pad(mask, 1)
    around = framed[:-2, 1:-1] & framed[2:, 1:-1] & framed[1:-1, :-2] & framed[1:-1, 2:]
    return np.asarray(mask & ~around)


def _near(points: Pixels, others: Pixels, tolerance: float) -> float:
    """Return the share of points that have another point within a distance."""
    from scipy.spatial import cKDTree

    distance, _ = cKDTree(np.argwhere(others)).query(np.argwhere(points))
    return float(np.mean(distance <= tolerance + 1e-9))


def _pair(one: Any, other: Any) -> tuple[Pixels, Pixels]:
    first, second = np.asarray(one, dtype=bool), np.asarray(other, dtype=bool)
    if first.shape != second.shape:
        raise ValueError(f"the masks have the shapes {first.shape} and {second.shape}")
    return first, second


def run_length_scores(
    truth: Mapping[int, Ints], runs: Counts, pointer: Ints, height: Ints, width: Ints
) -> dict[str, float]:
    """Return the mean scores of masks in run lengths, over the tasks with a truth.

    Parameters
    ----------
    truth : mapping of position to run lengths
    runs, pointer : (n_runs,), (n_tasks + 1,)
        Run lengths of the answers, one after the other.
    height, width : (n_tasks,)
    """
    found = []
    for i, wanted in truth.items():
        given, size = runs[pointer[i] : pointer[i + 1]], (int(height[i]), int(width[i]))
        require_memory(
            120 * size[0] * size[1], f"The borders in {size[0]} × {size[1]} pixels would",
            "score smaller images",
        )  # fmt: skip
        iou, dice = overlap_shares(wanted, given)
        found.append((iou, dice, boundary_f(dense_mask(wanted, *size), dense_mask(given, *size))))
    return dict(zip(MASK_SCORES, np.mean(found, axis=0).tolist(), strict=True))
