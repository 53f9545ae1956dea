"""Overlap of boxes, the best matching of two sets of them, and scores against true boxes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Codes = NDArray[np.integer[Any]]
EQUAL = 1e-9  # overlaps that are closer than this are tied
PAIRS = 1 << 21  # pairs of boxes that are compared at once
AT_LEAST = (0.5, 0.75)  # IoU from which a found box counts as a true one
BOX_SCORES = (
    "box_f1", "box_precision", "box_recall", "box_f1_75", "box_precision_75", "box_recall_75",
    "mean_iou",
)  # fmt: skip


class BoxTable(NamedTuple):
    """Boxes of tasks.

    Attributes
    ----------
    task : (n,) int
        Codes of tasks, ascending.
    boxes : (n, 4)
        x, y, width and height.
    label : (n,) int, optional
        Codes of classes; None if boxes have none.
    """

    task: Ints
    boxes: Floats
    label: Ints | None = None


def sides_of(boxes: Floats) -> Floats:
    """Return left, top, right and bottom (n, 4) of boxes with x, y, width and height."""
    return np.concatenate([boxes[:, :2], boxes[:, :2] + boxes[:, 2:]], axis=1)


def boxes_of(sides: Floats) -> Floats:
    """Return x, y, width and height (n, 4) of left, top, right and bottom."""
    return np.concatenate([sides[:, :2], sides[:, 2:] - sides[:, :2]], axis=1)


def overlap(first: Floats, second: Floats) -> Floats:
    """Return the IoU (n,) of boxes in the same row: the area of both over the area of either.

    Examples
    --------
    >>> overlap(np.array([[0.0, 0.0, 2.0, 1.0]]), np.array([[1.0, 0.0, 2.0, 1.0]])).round(4)
    array([0.3333])
    """
    one, two = sides_of(first), sides_of(second)
    size = np.minimum(one[:, 2:], two[:, 2:]) - np.maximum(one[:, :2], two[:, :2])
    common = np.prod(np.maximum(size, 0.0), axis=1)
    either = np.prod(first[:, 2:], axis=1) + np.prod(second[:, 2:], axis=1) - common
    return np.asarray(common / np.maximum(either, np.finfo(np.float64).tiny))


def overlap_table(first: Floats, second: Floats) -> Floats:
    """Return the IoU (n, m) of every box of the first set with every one of the second."""
    n, m = len(first), len(second)
    return overlap(np.repeat(first, m, axis=0), np.tile(second, (n, 1))).reshape(n, m)


def connected_boxes(
    boxes: Floats, task: Codes, annotation: Codes, label: Codes, at_least: float
) -> Ints:
    """Return the part (n,) of each box: boxes that a chain of overlaps connects.

    Two boxes overlap if their IoU is at least ``at_least``, and both are of the same task and label
    and of different annotations. Parts are numbered by their first box. Boxes that lie side by side
    are never compared.

    Examples
    --------
    >>> boxes = np.array([[0.0, 0.0, 2.0, 1.0], [9.0, 0.0, 2.0, 1.0], [1.0, 0.0, 2.0, 1.0]])
    >>> zeros = np.zeros(3, dtype=int)
    >>> connected_boxes(boxes, zeros, np.arange(3), zeros, 0.3).tolist()
    [0, 1, 0]
    """
    from scipy import sparse
    from scipy.sparse.csgraph import connected_components

    n = len(boxes)
    part = np.arange(n)
    for first, second in touching_pairs(boxes, task):
        good = (annotation[first] != annotation[second]) & (label[first] == label[second])
        first, second = first[good], second[good]
        good = overlap(boxes[first], boxes[second]) >= at_least - 2 * EQUAL  # rounding
        edges = part[first[good]], part[second[good]]
        graph = sparse.coo_matrix((np.ones(len(edges[0])), edges), shape=(n, n))
        part = connected_components(graph, directed=False)[1][part]
    _, begin, part = np.unique(part, return_index=True, return_inverse=True)
    place = np.empty(len(begin), dtype=np.int64)
    place[np.argsort(begin)] = np.arange(len(begin))
    return place[part.ravel()] if n else np.zeros(0, dtype=np.int64)


def touching_pairs(boxes: Floats, task: Codes) -> Iterator[tuple[Ints, Ints]]:
    """Yield blocks of pairs of boxes of the same task that overlap in one direction.

    The direction is the one with fewer of them.
    """
    sides, image = sides_of(boxes), task.astype(np.int64)
    sweeps = [_sweep(sides[:, k], sides[:, k + 2], image) for k in (0, 1)]
    order, count = min(sweeps, key=lambda sweep: int(sweep[1].sum()))
    ends = np.cumsum(count)
    start = 0
    while start < len(order):
        limit = (ends[start - 1] if start else 0) + PAIRS
        stop = max(start + 1, int(np.searchsorted(ends, limit, side="right")))
        each = count[start:stop]
        first = np.repeat(np.arange(start, stop), each)
        second = np.arange(len(first)) - np.repeat(np.cumsum(each) - each, each) + first + 1
        yield order[first], order[second]
        start = stop


def _sweep(low: Floats, high: Floats, task: Ints) -> tuple[Ints, Ints]:
    """Return intervals by task and beginning, and how many of those behind begin before each ends.

    The two are (n,) positions and (n,) counts.
    """
    values, place = np.unique(np.concatenate([low, high]), return_inverse=True)
    place = place.ravel() + np.tile(task, 2) * (len(values) + 1)
    begin, end = place[: len(low)], place[len(low) :]
    order = np.argsort(begin, kind="stable")
    reached = np.searchsorted(begin[order], end[order], side="left")
    return order, np.maximum(reached - np.arange(len(low)) - 1, 0)


class Matches(NamedTuple):
    """Pairs of boxes, as positions in two tables, and their IoU."""

    first: Ints
    second: Ints
    iou: Floats


def match_boxes(first: BoxTable, second: BoxTable, at_least: float) -> Matches:
    """Match boxes of the same task one to one, so that the sum of their IoU is largest.

    Pairs below ``at_least`` are not matched, nor are different classes if both have classes.
    """
    from scipy.optimize import linear_sum_assignment

    n_tasks = 1 + max(first.task.max(initial=-1), second.task.max(initial=-1))
    limits = [np.searchsorted(one.task, np.arange(n_tasks + 1)) for one in (first, second)]
    both = np.flatnonzero((np.diff(limits[0]) > 0) & (np.diff(limits[1]) > 0))
    found: list[tuple[Ints, Ints, Floats]] = []
    for i in both.tolist():
        (a, b), (c, d) = (one[i : i + 2].tolist() for one in limits)
        table = overlap_table(first.boxes[a:b], second.boxes[c:d])
        if first.label is not None and second.label is not None:
            table = np.where(first.label[a:b, None] == second.label[None, c:d], table, 0.0)
        table[table < at_least] = 0.0
        row, column = linear_sum_assignment(-table)
        good = table[row, column] > 0
        found.append((a + row[good], c + column[good], table[row[good], column[good]]))
    if not found:
        none = np.zeros(0, dtype=np.int64)
        return Matches(none, none, np.zeros(0))
    return Matches(*(np.concatenate(parts) for parts in zip(*found, strict=True)))


def box_scores(truth: BoxTable, found: BoxTable) -> dict[str, float]:
    """Return precision, recall and F1 at IoU .5 and .75, and the mean IoU of matches at .5.

    Without any true and found boxes the scores are 1.
    """
    scores: dict[str, float] = {}
    wanted, given = len(truth.boxes), len(found.boxes)
    iou: Any = np.zeros(0)
    for at_least in AT_LEAST:
        matches = match_boxes(found, truth, at_least)
        right = len(matches.iou)
        suffix = "" if at_least == AT_LEAST[0] else "_75"
        iou = matches.iou if at_least == AT_LEAST[0] else iou
        scores |= {
            f"box_f1{suffix}": 2 * right / (wanted + given) if wanted + given else 1.0,
            f"box_precision{suffix}": right / given if given else float(not wanted),
            f"box_recall{suffix}": right / wanted if wanted else float(not given),
        }
    empty = float(not wanted + given)
    return scores | {"mean_iou": float(np.mean(iou)) if len(iou) else empty}
