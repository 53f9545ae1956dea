"""Overlap of boxes, the best matching of two sets of them, and scores against true boxes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.exceptions import DataError
from wisecrowd.core.ids.encoding import lookup
from wisecrowd.core.messages.descriptions import Places, suggestion
from wisecrowd.core.types import Floats, Ints, Longs
from wisecrowd.core.validation import values_of
from wisecrowd.kinds.boxes.container import COORDINATES, CrowdRegions

EXPERT = "truth"  # the only worker of a table of true boxes


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
        Ints of tasks, ascending.
    boxes : (n, 4)
        x, y, width and height.
    label : (n,) int, optional
        Ints of classes; None if boxes have none.
    """

    task: Longs
    boxes: Floats
    label: Longs | None = None


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
    boxes: Floats, task: Ints, annotation: Ints, label: Ints, at_least: float
) -> Longs:
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


def touching_pairs(boxes: Floats, task: Ints) -> Iterator[tuple[Longs, Longs]]:
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


def _sweep(low: Floats, high: Floats, task: Longs) -> tuple[Longs, Longs]:
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

    first: Longs
    second: Longs
    iou: Floats


def match_boxes(first: BoxTable, second: BoxTable, at_least: float) -> Matches:
    """Match boxes of the same task one to one, so that the sum of their IoU is largest.

    Pairs below ``at_least`` are not matched, nor are different classes if both have classes.
    """
    from scipy.optimize import linear_sum_assignment

    n_tasks = 1 + max(first.task.max(initial=-1), second.task.max(initial=-1))
    limits = [np.searchsorted(one.task, np.arange(n_tasks + 1)) for one in (first, second)]
    both = np.flatnonzero((np.diff(limits[0]) > 0) & (np.diff(limits[1]) > 0))
    found: list[tuple[Longs, Longs, Floats]] = []
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


class TrueBoxes(NamedTuple):
    """True boxes of some tasks.

    Attributes
    ----------
    table : BoxTable
        Sorted by task; classes are codes into those of the data, -1 for others.
    known : (n_tasks,) bool
        Tasks whose boxes are known; those without a box in the table have none.
    n_assumed : int
        Tasks of the data that the truth does not name, and that count as images without boxes.
    """

    table: BoxTable
    known: NDArray[np.bool_]
    n_assumed: int = 0

    def part(self, found: BoxTable) -> BoxTable:
        """Return the found boxes of known tasks."""
        kept = self.known[found.task]
        label = None if found.label is None else found.label[kept]
        return BoxTable(found.task[kept], found.boxes[kept], label)

    def remarks(self, path: str) -> list[str]:
        """Return what is assumed about tasks that the file of the truth does not name."""
        if not self.n_assumed:
            return []
        return [
            f"{self.n_assumed} tasks are not in {path} and count as images without boxes; give an "
            "empty row for each such image if others are unknown"
        ]


def known_boxes(truth: Any, data: CrowdRegions) -> TrueBoxes:
    """Return the true boxes of the tasks of some data.

    Parameters
    ----------
    truth : CrowdRegions, mapping from task to boxes, or frame with one row per box
        Boxes of a mapping are (x, y, width, height) or (x, y, width, height, label); tasks that it
        does not name do not count. A frame has the columns task, x, y, width, height and perhaps
        label. An image without boxes has an empty row. If there is no empty row, tasks that the
        frame does not name count as images without boxes.
    data : CrowdRegions
    """
    if isinstance(truth, CrowdRegions):
        given, complete = truth, bool((np.diff(truth.pointer) == 0).any())
    elif isinstance(truth, Mapping) and not set(map(str, truth)) >= {"task", "x"}:
        given, complete = _from_mapping(truth), True
    else:
        given = true_regions(truth)
        complete = bool((np.diff(given.pointer) == 0).any())
    place = lookup(given.tasks, data.tasks).astype(np.int64)
    known = np.zeros(data.n_tasks, dtype=bool)
    known[place[place >= 0]] = True
    if not known.any():
        raise DataError("The truth names none of these tasks; compare the ids.")
    assumed = 0 if complete else int((~known).sum())
    task = place[given.box_task]
    label = _labels(given, data)
    kept = np.flatnonzero(task >= 0)
    kept = kept[np.argsort(task[kept], kind="stable")]
    table = BoxTable(task[kept], given.boxes[kept], None if label is None else label[kept])
    return TrueBoxes(table, np.ones_like(known) if assumed else known, assumed)


def _labels(given: CrowdRegions, data: CrowdRegions) -> Longs | None:
    """Return true classes as codes of the data; None if one of the two has no classes."""
    if not (given.has_classes and data.has_classes):
        return None
    names = np.array([str(one) for one in data.classes.tolist()], dtype=object)
    codes = lookup([str(one) for one in given.classes.tolist()], names)
    if (codes < 0).all():
        value = given.classes.tolist()[0]
        raise DataError(
            f"No class of the truth, such as {value!r}{suggestion(value, names)}, is among those "
            "of the boxes; compare the names."
        )
    return codes[given.label].astype(np.int64)


def true_regions(frame: Any, places: Places | None = None) -> CrowdRegions:
    """Return the boxes of a frame of true boxes, drawn by one expert."""
    column: Callable[[Any], Any]
    if isinstance(frame, Mapping):
        given, column = list(frame), frame.__getitem__
    else:
        import narwhals as nw

        opened = nw.from_native(frame, eager_only=True)
        given, column = opened.columns, lambda name: values_of(opened.get_column(name))
    names = {str(name).strip().lower(): name for name in given}
    missing = [name for name in ("task", *COORDINATES) if name not in names]
    if missing:
        listed = ", ".join(map(repr, names.values()))
        raise DataError(
            f"The truth has the columns {listed} and no {missing[0]}; give task, x, y, width, "
            "height and perhaps label."
        )
    roles = [role for role in ("task", *COORDINATES, "label") if role in names]
    columns = {role: column(names[role]) for role in roles}
    task = columns.pop("task")
    return CrowdRegions.from_arrays(
        task, [EXPERT] * len(task), places=places or Places({}), **columns
    )


def _from_mapping(truth: Mapping[Any, Any]) -> CrowdRegions:
    rows: list[tuple[Any, ...]] = []
    for task, boxes in truth.items():
        listed = [] if boxes is None else list(boxes)
        rows += [(task, None, None, None, None, None)] if not listed else []
        for box in listed:
            if len(box) not in (4, 5):
                raise DataError(
                    f"The truth gives task {task!r} the box {box!r}; give x, y, width, height and "
                    "perhaps a label."
                )
            rows.append((task, *box, *[None] * (5 - len(box))))
    if not rows:
        raise DataError("The truth names no task; give the boxes of some tasks.")
    task, x, y, width, height, label = (list(column) for column in zip(*rows, strict=True))
    labels = {} if all(one is None for one in label) else {"label": label}
    return CrowdRegions.from_arrays(task, [EXPERT] * len(rows), x, y, width, height, **labels)
