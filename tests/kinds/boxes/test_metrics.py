"""Overlap, matching and scores of boxes, by hand and by brute force."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from wisecrowd.core.exceptions import DataError
from wisecrowd.kinds.boxes.container import CrowdRegions
from wisecrowd.kinds.boxes.metrics import (
    BoxTable,
    box_scores,
    known_boxes,
    match_boxes,
    overlap,
    overlap_table,
)


def table(boxes, task=None, label=None):
    boxes = np.array(boxes, dtype=float).reshape(-1, 4)
    task = np.zeros(len(boxes), dtype=np.int64) if task is None else np.array(task)
    return BoxTable(task, boxes, None if label is None else np.array(label))


def test_iou_by_hand():
    one = np.array([[0.0, 0, 10, 10]])
    for other, expected in (
        ((0, 0, 10, 10), 1), ((5, 0, 10, 10), 50 / 150), ((10, 0, 10, 10), 0), ((2, 2, 5, 5), 0.25),
    ):  # fmt: skip
        assert overlap(one, np.array([other], dtype=float))[0] == pytest.approx(expected)


def test_the_matching_is_the_best_of_all():
    rng = np.random.default_rng(0)
    for _ in range(20):
        a = np.concatenate([rng.uniform(0, 10, (3, 2)), rng.uniform(3, 9, (3, 2))], axis=1)
        b = np.concatenate([rng.uniform(0, 10, (4, 2)), rng.uniform(3, 9, (4, 2))], axis=1)
        values = overlap_table(a, b)
        values[values < 0.2] = 0
        best = max(
            sum(values[i, j] for i, j in enumerate(order))
            for order in itertools.permutations(range(4), 3)
        )
        assert match_boxes(table(a), table(b), 0.2).iou.sum() == pytest.approx(best)


def test_a_greedy_matching_would_be_worse():
    # The first box overlaps both, the second only the better one.
    found = [(0, 0, 10, 10), (3, 0, 10, 10)]
    true = [(1, 0, 10, 10), (-3, 0, 10, 10)]
    assert len(match_boxes(table(found), table(true), 0.5).iou) == 2


def test_scores_by_hand():
    truth = table([(0, 0, 10, 10), (50, 0, 10, 10), (0, 0, 10, 10)], [0, 0, 1])
    found = table([(0, 0, 10, 8), (52, 0, 10, 10), (80, 0, 5, 5)], [0, 0, 0])
    scores = box_scores(truth, found)
    assert scores["box_precision"] == pytest.approx(2 / 3)
    assert scores["box_recall"] == pytest.approx(2 / 3)
    assert scores["box_f1_75"] == pytest.approx(1 / 3)
    assert scores["mean_iou"] == pytest.approx((0.8 + 80 / 120) / 2)
    assert box_scores(table([]), table([]))["box_f1"] == 1
    assert box_scores(truth, table([]))["box_f1"] == 0


def test_classes_must_agree_where_both_have_them():
    box = [(0, 0, 9, 9)]
    car = table(box, label=[0])
    assert box_scores(car, table(box, label=[1]))["box_f1"] == 0
    assert box_scores(car, table(box))["box_f1"] == 1
    assert overlap_table(table([]).boxes, table([(0, 0, 1, 1)]).boxes).shape == (0, 1)


DATA = CrowdRegions.from_arrays(list("aab"), list("xyx"), [1, 1, 1], [1, 1, 1], [5] * 3, [5] * 3)


def test_a_truth_with_an_empty_row_names_all_of_its_images():
    frame = {"task": ["a"], "x": [1], "y": [1], "width": [5], "height": [5]}
    assert known_boxes(frame, DATA).n_assumed == 1
    assert known_boxes(frame, DATA).known.tolist() == [True, True]
    empty = {name: [*values, None] for name, values in frame.items()} | {"task": ["a", "c"]}
    assert known_boxes(empty, DATA).known.tolist() == [True, False]
    assert known_boxes({"b": []}, DATA).known.tolist() == [False, True]


def test_a_wrong_truth_is_refused():
    with pytest.raises(DataError, match="none of these tasks"):
        known_boxes({"z": []}, DATA)
    with pytest.raises(DataError, match="give x, y, width, height"):
        known_boxes({"a": [(1, 2)]}, DATA)
    with pytest.raises(DataError, match="no height"):
        known_boxes({"task": ["a"], "x": [1], "y": [1], "width": [5]} | {"h": [1]}, DATA)
