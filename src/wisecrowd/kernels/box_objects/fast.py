"""Grouping of boxes into objects, compiled; the reference defines the kernel."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.kernels.box_objects.reference import EQUAL
from wisecrowd.kernels.compiling import compiled

__all__ = ["group_boxes"]

Floats = NDArray[np.float64]
Ints = NDArray[np.integer[Any]]


@compiled
def _pair(boxes: Floats, p: int, q: int) -> float:
    wide = min(boxes[p, 0] + boxes[p, 2], boxes[q, 0] + boxes[q, 2]) - max(boxes[p, 0], boxes[q, 0])
    high = min(boxes[p, 1] + boxes[p, 3], boxes[q, 1] + boxes[q, 3]) - max(boxes[p, 1], boxes[q, 1])
    common = max(wide, 0.0) * max(high, 0.0)
    both = boxes[p, 2] * boxes[p, 3] + boxes[q, 2] * boxes[q, 3]
    return common / (both - common)


@compiled
def _row_best(value: Floats, active: Ints, row: int) -> float:
    best = -1.0
    for c in range(row + 1, value.shape[0]):
        if active[c] and value[row, c] > best:
            best = value[row, c]
    return best


@compiled
def _merge_all(value: Floats, weight: Floats, at_least: float, member: Ints) -> None:
    """Merge groups; ``value`` is the similarity of two groups, -1 where they stay apart."""
    n = value.shape[0]
    active, best = np.ones(n, dtype=np.int64), np.empty(n)
    for r in range(n):
        best[r] = _row_best(value, active, r)
    while True:
        top = -1.0
        for r in range(n):
            if active[r] and best[r] > top:
                top = best[r]
        if top < at_least - EQUAL:
            return
        a = 0
        while not (active[a] and best[a] >= top - EQUAL):
            a += 1
        b = a + 1
        while not (active[b] and value[a, b] >= top - EQUAL):
            b += 1
        total = weight[a] + weight[b]
        share = weight[a] / total if total > 0 else 0.5
        weight[a] = total
        active[b] = 0
        for c in range(n):
            if active[c] and c != a:
                merged = -1.0
                if value[a, c] >= 0 and value[b, c] >= 0:
                    merged = share * value[a, c] + (1 - share) * value[b, c]
                value[a, c] = merged
                value[c, a] = merged
        for r in range(n):
            if active[r] and r < b:
                best[r] = _row_best(value, active, r)
        for p in range(n):
            if member[p] == b:
                member[p] = a


@compiled
def _group_boxes(
    boxes: Floats, label: Ints, annotation: Ints, weight: Floats, pointer: Ints, at_least: float,
    found: Ints,
) -> None:  # fmt: skip
    for i in range(pointer.shape[0] - 1):
        a, n = pointer[i], pointer[i + 1] - pointer[i]
        if n < 2:
            continue
        value, own = np.empty((n, n)), weight[a : a + n].copy()
        member = np.arange(n)
        for p in range(n):
            value[p, p] = -1.0
            for q in range(p + 1, n):
                apart = annotation[a + p] == annotation[a + q] or label[a + p] != label[a + q]
                value[p, q] = -1.0 if apart else _pair(boxes, a + p, a + q)
                value[q, p] = value[p, q]
        _merge_all(value, own, at_least, member)
        for p in range(n):
            found[a + p] = a + member[p]


def group_boxes(
    boxes: Floats, label: Ints, annotation: Ints, weight: Floats, pointer: Ints, at_least: float
) -> Ints:
    """Return the object of each box; see the reference."""
    found = np.arange(len(boxes), dtype=np.int64)
    _group_boxes(
        np.ascontiguousarray(boxes), label, annotation, weight.astype(np.float64), pointer,
        at_least, found,
    )  # fmt: skip
    return found
