"""Grouping of boxes into objects, compiled; the reference defines the kernel."""

from __future__ import annotations

import numpy as np

from wisecrowd.core.types import Floats, Ints
from wisecrowd.kernels.compiling import compiled
from wisecrowd.kinds.boxes.kernels import EQUAL

__all__ = ["group_boxes"]


@compiled
def _pair(boxes: Floats, p: int, q: int) -> float:
    wide = min(boxes[p, 0] + boxes[p, 2], boxes[q, 0] + boxes[q, 2]) - max(boxes[p, 0], boxes[q, 0])
    high = min(boxes[p, 1] + boxes[p, 3], boxes[q, 1] + boxes[q, 3]) - max(boxes[p, 1], boxes[q, 1])
    common = max(wide, 0.0) * max(high, 0.0)
    both = boxes[p, 2] * boxes[p, 3] + boxes[q, 2] * boxes[q, 3]
    return float(common / (both - common))


@compiled
def _row_best(value: Floats, active: Ints, row: int) -> tuple[float, int]:
    """Return the largest similarity of a group with a later one, and the place of that."""
    best, at = -1.0, -1
    for c in range(row + 1, value.shape[0]):
        if active[c] and value[row, c] > best:
            best, at = value[row, c], c
    return best, at


@compiled
def _best_pair(value: Floats, active: Ints, best: Floats) -> tuple[int, int, float]:
    """Return the first of the most similar pairs, and its similarity."""
    n, top = value.shape[0], -1.0
    for r in range(n):
        if active[r] and best[r] > top:
            top = best[r]
    for a in range(n):
        if active[a] and best[a] >= top - EQUAL:
            for b in range(a + 1, n):
                if active[b] and value[a, b] >= top - EQUAL:
                    return a, b, top
    return 0, 0, -1.0


@compiled
def _merge(value: Floats, active: Ints, a: int, b: int, share: float) -> None:
    """Make group ``a`` of both; ``share`` is that of ``a`` in the weight."""
    active[b] = 0
    for c in range(value.shape[0]):
        if active[c] and c != a:
            merged = -1.0
            if value[a, c] >= 0 and value[b, c] >= 0:
                merged = share * value[a, c] + (1 - share) * value[b, c]
            value[a, c] = merged
            value[c, a] = merged


@compiled
def _merge_all(value: Floats, weight: Floats, at_least: float, member: Ints) -> None:
    """Merge groups; ``value`` is the similarity of two groups, -1 where they stay apart."""
    n = value.shape[0]
    active, best, place = np.ones(n, dtype=np.int64), np.empty(n), np.empty(n, dtype=np.int64)
    for r in range(n):
        best[r], place[r] = _row_best(value, active, r)
    while True:
        a, b, top = _best_pair(value, active, best)
        if top < at_least - EQUAL:
            return
        total = weight[a] + weight[b]
        _merge(value, active, a, b, weight[a] / total if total > 0 else 0.5)
        weight[a] = total
        for r in range(b):  # rows of later groups do not hold a or b
            if active[r] and (r == a or place[r] == a or place[r] == b):
                best[r], place[r] = _row_best(value, active, r)
            elif r < a and active[r] and value[r, a] > best[r]:
                best[r], place[r] = value[r, a], a
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
