"""Masks compared with those of the other workers of the same image."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.masks import CrowdMasks
from wisecrowd.inference.mask_patterns import MaskPatterns, sums_by

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class MaskView:
    """Every mask beside the others of its image.

    Attributes
    ----------
    data : CrowdMasks
    iou : (n_annotations,)
        Mean intersection over union with the other masks of the image; NaN without others.
    extent : (n_annotations,)
        Logarithm of the area relative to the middle of the others; 0 within the two middle ones.
        NaN for empty masks and with fewer than two others that are not.
    """

    data: CrowdMasks
    iou: Floats
    extent: Floats

    def of_workers(self, values: Floats) -> tuple[Ints, Floats, Floats]:
        """Return number, mean and standard error of the values of each worker, without NaN."""
        known = np.isfinite(values)
        worker, n_workers = self.data.worker[known], self.data.n_workers
        n = np.bincount(worker, minlength=n_workers)
        mean = sums_by(worker, values[known], n_workers) / np.maximum(n, 1)
        spread = sums_by(worker, (values[known] - mean[worker]) ** 2, n_workers)
        error = np.sqrt(spread / np.maximum(n - 1, 1) / np.maximum(n, 1))
        return n, np.where(n > 0, mean, np.nan), np.where(n > 1, error, np.nan)

    def of_tasks(self, values: Floats) -> Floats:
        """Return the mean of the values of each image; NaN without any."""
        known, n_tasks = np.isfinite(values), self.data.n_tasks
        n = np.bincount(self.data.task[known], minlength=n_tasks)
        total = sums_by(self.data.task[known], values[known], n_tasks)
        return np.where(n > 0, total / np.maximum(n, 1), np.nan)


def mask_view(data: CrowdMasks, fit: Any = None) -> MaskView:
    """Return masks compared with the others of their images.

    Examples
    --------
    >>> one, two = np.ones((2, 2)), np.eye(2)
    >>> data = CrowdMasks.from_arrays(["i"] * 3, list("abc"), [one, one, two])
    >>> mask_view(data).iou.tolist()
    [0.75, 0.75, 0.5]
    """
    return MaskView(data, _mean_iou(data), _extent(data))


def _mean_iou(data: CrowdMasks) -> Floats:
    """Return the mean overlap of each mask with the others; two empty ones overlap completely."""
    from scipy.sparse import diags_array

    patterns = MaskPatterns.of(data)
    shared = (patterns.cover.T @ diags_array(patterns.pixels) @ patterns.cover).tocoo()
    row, column = shared.coords
    area = data.area.astype(np.float64)
    iou = np.where(row == column, 0.0, shared.data / (area[row] + area[column] - shared.data))
    total = sums_by(row, iou, data.n_annotations)
    empty = data.area == 0
    nobody = np.bincount(data.task[empty], minlength=data.n_tasks)[data.task]
    others = data.labels_per_task[data.task] - 1
    total += np.where(empty, nobody - 1, 0)
    return np.where(others > 0, total / np.maximum(others, 1), np.nan)


def _extent(data: CrowdMasks) -> Floats:
    """Return the logarithm of each area relative to the nearer of the two middle others."""
    found = np.full(data.n_annotations, np.nan)
    marked = np.flatnonzero(data.area > 0)
    order = marked[np.lexsort((data.area[marked], data.task[marked]))]
    size = np.log(data.area[order])
    task = data.task[order]
    first = np.searchsorted(task, task)
    n = np.searchsorted(task, task, side="right") - first
    rank, others = np.arange(len(order)) - first, n - 1
    limits = []
    for middle in ((others - 1) // 2, others // 2):
        place = np.clip(middle + (middle >= rank), 0, np.maximum(n - 1, 0))
        limits.append(size[first + place])
    low, high = limits
    apart = np.maximum(size - high, 0) - np.maximum(low - size, 0)
    found[order] = np.where(others >= 2, apart, np.nan)
    return found
