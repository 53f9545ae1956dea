"""Grouping of boxes into objects: what the kernels compute, in NumPy."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.types import Floats, Ints

EQUAL = 1e-9  # similarities that are closer than this are tied


def group_boxes(
    boxes: Floats, label: Ints, annotation: Ints, weight: Floats, pointer: Ints, at_least: float
) -> Ints:
    """Return the object of each box (n_boxes,), as the position of the first box of that object.

    Boxes of a task are merged by average linkage, the most similar groups first. The similarity of
    two groups is the mean IoU of their pairs of boxes, weighted; groups below ``at_least`` are not
    merged. Two boxes of one annotation are never in one object, nor are boxes of different
    ``label``. Of tied pairs the first in the order of boxes is merged.

    Parameters
    ----------
    boxes : (n_boxes, 4)
        x, y, width and height; those of a task stand together.
    label, annotation, weight : (n_boxes,)
        All labels are equal if classes do not matter.
    pointer : (n_tasks + 1,)
        Boxes of task ``i`` are ``pointer[i]`` to ``pointer[i + 1]``.
    at_least : float
    """
    found = np.arange(len(boxes), dtype=np.int64)
    for i in np.flatnonzero(np.diff(pointer) > 1).tolist():
        a, b = int(pointer[i]), int(pointer[i + 1])
        apart = annotation[a:b, None] == annotation[None, a:b]
        apart |= label[a:b, None] != label[None, a:b]
        found[a:b] = a + _group(_iou(boxes[a:b]), apart, weight[a:b].astype(np.float64), at_least)
    return found


def _iou(boxes: Floats) -> Floats:
    low, high = boxes[:, :2], boxes[:, :2] + boxes[:, 2:]
    size = np.minimum(high[:, None], high[None]) - np.maximum(low[:, None], low[None])
    common = np.maximum(size[..., 0], 0.0) * np.maximum(size[..., 1], 0.0)
    area = boxes[:, 2] * boxes[:, 3]
    return np.asarray(common / (area[:, None] + area[None] - common))


def _group(similar: Floats, apart: NDArray[np.bool_], weight: Floats, at_least: float) -> Ints:
    """Return the first member of each box's group."""
    n = len(similar)
    member, weight = np.arange(n), weight.copy()
    open_pair = np.triu(np.ones((n, n), dtype=bool), 1)
    while True:
        value = np.where(open_pair & ~apart, similar, -1.0)
        best = value.max()
        if best < at_least - EQUAL:
            return member
        a, b = divmod(int(np.argmax(value >= best - EQUAL)), n)
        total = weight[a] + weight[b]
        share = weight[a] / total if total > 0 else 0.5
        similar[a] = similar[:, a] = share * similar[a] + (1 - share) * similar[b]
        apart[a] = apart[:, a] = apart[a] | apart[b]
        weight[a] = total
        open_pair[b] = open_pair[:, b] = False
        member[member == b] = a
