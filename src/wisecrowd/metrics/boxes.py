"""Scores of boxes: precision, recall and F1 at IoU .5 and .75, and the mean IoU of matches."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from wisecrowd.core.box_overlap import BoxTable, box_scores, overlap_table

Box = tuple[Any, ...]  # task, x, y, width, height and perhaps a class

__all__ = ["box_table_scores", "iou"]


def iou(first: Any, second: Any) -> Any:
    """Return the IoU (n, m) of boxes (x, y, width, height), each with each.

    Examples
    --------
    >>> iou([(0, 0, 2, 2)], [(0, 0, 2, 2), (1, 0, 2, 2), (5, 5, 1, 1)]).round(3)
    array([[1.   , 0.333, 0.   ]])
    """
    one, two = (np.asarray(boxes, dtype=np.float64).reshape(-1, 4) for boxes in (first, second))
    return overlap_table(one, two)


def box_table_scores(truth: Iterable[Box], found: Iterable[Box]) -> dict[str, float]:
    """Return scores of boxes, matched one to one in each task by the Hungarian method on IoU.

    A found box is right if its IoU with its true box is at least .5, or .75; if both sides have
    classes, these must be the same. Without any true and found boxes the scores are 1.

    Parameters
    ----------
    truth, found : boxes
        Each is (task, x, y, width, height) or (task, x, y, width, height, class).

    Returns
    -------
    dict
        ``box_f1``, ``box_precision``, ``box_recall``, the same with ``_75``, and ``mean_iou`` of
        the matches at .5.

    Examples
    --------
    >>> truth = [("a", 0, 0, 10, 10), ("a", 50, 50, 10, 10)]
    >>> scores = box_table_scores(truth, [("a", 0, 0, 10, 8), ("b", 0, 0, 5, 5)])
    >>> scores["box_precision"], scores["box_recall"], scores["mean_iou"]
    (0.5, 0.5, 0.8)
    """
    wanted, given = list(truth), list(found)
    tasks = {task: code for code, task in enumerate(dict.fromkeys(b[0] for b in wanted + given))}
    has_classes = all(any(len(box) > 5 for box in boxes) for boxes in (wanted, given) if boxes)
    names = dict.fromkeys(str(box[5]) for box in wanted + given if len(box) > 5)
    kinds = {name: code for code, name in enumerate(names)}
    return box_scores(*(_table(boxes, tasks, kinds if has_classes else None)
                        for boxes in (wanted, given)))  # fmt: skip


def _table(boxes: list[Box], tasks: dict[Any, int], kinds: dict[str, int] | None) -> BoxTable:
    task = np.array([tasks[box[0]] for box in boxes], dtype=np.int64)
    order = np.argsort(task, kind="stable")
    sides = np.array([box[1:5] for box in boxes], dtype=np.float64).reshape(-1, 4)
    label = None
    if kinds is not None:
        label = np.array([kinds[str(box[5])] for box in boxes], dtype=np.int64)[order]
    return BoxTable(task[order], sides[order], label)
