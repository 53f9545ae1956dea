"""Scores of masks against true ones: overlap of areas, and of borders with a tolerance."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from wisecrowd.core.arrow import is_missing
from wisecrowd.core.exceptions import DataError
from wisecrowd.core.gold import known_answers
from wisecrowd.core.ids.encoding import lookup
from wisecrowd.core.memory_check import require_memory
from wisecrowd.core.types import Longs, Mask
from wisecrowd.kinds.masks.container import parse_mask
from wisecrowd.kinds.masks.run_lengths import Counts, dense_mask, overlap_shares

TrueMasks = dict[int, Longs]  # run lengths by the position of the task
MASK_COLUMNS = ("mask", "segmentation", "rle", "label", "truth")
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


def border(mask: Mask) -> Mask:
    """Return the pixels of a mask with one of four neighbours outside of it or the image."""
    framed = np.pad(mask, 1)
    around = framed[:-2, 1:-1] & framed[2:, 1:-1] & framed[1:-1, :-2] & framed[1:-1, 2:]
    return np.asarray(mask & ~around)


def _near(points: Mask, others: Mask, tolerance: float) -> float:
    """Return the share of points that have another point within a distance."""
    from scipy.spatial import cKDTree

    distance, _ = cKDTree(np.argwhere(others)).query(np.argwhere(points))
    return float(np.mean(distance <= tolerance + 1e-9))


def _pair(one: Any, other: Any) -> tuple[Mask, Mask]:
    first, second = np.asarray(one, dtype=bool), np.asarray(other, dtype=bool)
    if first.shape != second.shape:
        raise ValueError(f"the masks have the shapes {first.shape} and {second.shape}")
    return first, second


def run_length_scores(
    truth: Mapping[int, Longs], runs: Counts, pointer: Longs, height: Longs, width: Longs
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


def known_masks(truth: Any, data: Any) -> TrueMasks:
    """Return the run lengths of the known masks, by the position of the task.

    Parameters
    ----------
    truth : mapping from task to mask, (task, mask) frame, or (n_tasks,) list with None
        Masks as in :meth:`CrowdMasks.from_arrays`.
    data : CrowdMasks, or anything with tasks, height and width
    """
    ids, values = known_answers(truth, data.tasks, "mask", MASK_COLUMNS)
    found: TrueMasks = {}
    for code, task, value in zip(lookup(ids, data.tasks).tolist(), ids, values, strict=True):
        if code < 0 or (not isinstance(value, np.ndarray) and is_missing(value)):
            continue
        try:
            mask = parse_mask(value)
        except ValueError as fault:
            raise DataError(f"The true mask of task {task!r} {fault}") from None
        size = int(data.height[code]), int(data.width[code])
        if size != (mask.height, mask.width) and size != (0, 0):
            raise DataError(
                f"The true mask of task {task!r} is of {mask.height} × {mask.width} pixels, and "
                f"workers marked {size[0]} × {size[1]}; all masks of an image have its size."
            )
        found[code] = mask.counts
    if not found:
        raise DataError("The truth names none of these tasks; compare the ids.")
    return found


def mean_iou(truth: TrueMasks, runs: Longs, pointer: Longs) -> float:
    """Return the mean intersection over union on the tasks with a truth."""
    found = [overlap_shares(own, runs[pointer[i] : pointer[i + 1]])[0] for i, own in truth.items()]
    return float(np.mean(found))
