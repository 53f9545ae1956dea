"""Boxes: columns become a container, and what is wrong with them is said."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from wisecrowd.core.exceptions import DataError, ParameterError
from wisecrowd.kinds.boxes.container import CrowdRegions

ROWS = [
    ("a", "ann", 10, 20, 30, 40, "car"),
    ("a", "ann", 5, 20, 30, 40, "bus"),
    ("a", "bob", None, None, None, None, None),
    ("b", "bob", 1, 1, 2, 2, "car"),
]


def columns(rows):
    return [list(column) for column in zip(*rows, strict=True)]


def regions(rows=ROWS, **options):
    return CrowdRegions.from_arrays(*columns(rows), **options)


def test_empty_annotations_are_kept_and_boxes_are_sorted():
    data = regions()
    assert (data.n_tasks, data.n_workers, data.n_annotations, data.n_boxes) == (2, 2, 3, 3)
    assert np.diff(data.pointer).tolist() == [2, 0, 1]
    assert data.boxes[:2, 0].tolist() == [5, 10]
    assert data.classes[data.label].tolist() == ["bus", "car", "car"]
    assert data.box_worker.tolist() == [0, 0, 1]


def test_the_order_of_rows_does_not_matter():
    first, second = regions(), regions(ROWS[::-1])
    for name in ("boxes", "label", "pointer", "task", "worker"):
        assert np.array_equal(getattr(first, name), getattr(second, name)), name


def test_table_selection_and_pickle_keep_boxes():
    data = regions()
    again = CrowdRegions.from_frame(data.to_dict())
    assert np.array_equal(again.boxes, data.boxes)
    assert again.n_annotations == 3
    part = pickle.loads(pickle.dumps(data[np.array([1])]))
    assert part.boxes.tolist() == [[1, 1, 2, 2]]
    turned = data.select_workers(np.array([1, 0]))
    assert np.diff(turned.pointer).tolist() == [0, 2, 1]


def test_boxes_without_labels_have_one_empty_class():
    data = regions([row[:6] for row in ROWS])
    assert data.classes.tolist() == [""]
    assert not data.has_classes
    assert "label" not in data.to_dict()


def test_limits_instead_of_sizes():
    frame = {"image": ["a"], "worker": ["w"], "xmin": [2], "ymin": [3], "xmax": [12], "ymax": [8]}
    data = CrowdRegions.from_frame(frame, task="image")
    assert data.boxes.tolist() == [[2, 3, 10, 5]]


def test_repeated_boxes_count_once():
    data = regions([*ROWS, ROWS[0]])
    assert data.n_boxes == 3
    assert any("1 boxes repeat" in note for note in data.notes)


def test_annotations_at_several_times():
    rows = columns([("a", "ann", 1, 1, 5, 5), ("a", "ann", 2, 2, 5, 5)])
    kept = CrowdRegions.from_arrays(*rows, timestamp=[1.0, 2.0], duplicates="keep")
    assert kept.n_annotations == 2
    last = CrowdRegions.from_arrays(*rows, timestamp=[1.0, 2.0], duplicates="last")
    assert last.boxes.tolist() == [[2, 2, 5, 5]]


def test_who_saw_what_is_added():
    data = regions().with_seen(["a", "b", "c"], ["bob", "ann", "cem"])
    assert data.tasks.tolist() == ["a", "b", "c"]
    assert data.workers.tolist() == ["ann", "bob", "cem"]
    assert list(zip(data.task.tolist(), data.worker.tolist(), strict=True)) == [
        (0, 0), (0, 1), (1, 0), (1, 1), (2, 2)
    ]  # fmt: skip
    assert np.diff(data.pointer).tolist() == [2, 0, 0, 1, 0]


NOTHING = (None, None, None, None, None)
WRONG = {
    "no width": ([("a", "ann", 1, 1, None, 5, "x")], {}, "row 1 has no width"),
    "negative": ([ROWS[0], ("a", "bob", 1, 1, -5, 5, "x")], {}, "row 2 is -5 wide and 5 high"),
    "flat": ([("a", "bob", 1, 1, 5, 0, "x")], {}, "5 wide and 0 high"),
    "infinite": ([("a", "bob", 1, 1, np.inf, 5, "x")], {}, "width column is infinite in row 1"),
    "text": ([("a", "bob", "1", "1", "wide", "5", "x")], {}, "'wide', which is not a number"),
    "mixed": ([ROWS[0], ("a", "ann", *NOTHING)], {}, "row 2 drew nothing there and a box"),
    "a class and no box": (
        [ROWS[0], ("b", "bob", None, None, None, None, "car")], {},
        "class 'car' in row 2 has neither x, y, width nor height; give all of them",
    ),
    "some labels": ([ROWS[0], ("a", "bob", 1, 1, 5, 5, None)], {}, "row 2 has no label"),
    "other class": ([ROWS[0]], {"classes": ["bus", "cat"]}, "'car'.* is not among the declared"),
    "outside": (
        [("a", "ann", 90, 1, 20, 5, "x")], {"image_width": [100], "image_height": [50]},
        r"from \(90, 1\) to \(110, 6\), outside of its image 'a' of 100 × 50",
    ),
    "left of it": (
        [("a", "ann", -9, 1, 20, 5, "x")], {"image_width": [100], "image_height": [50]}, "outside",
    ),
    "two sizes": (
        [ROWS[0], ROWS[1]], {"image_width": [100, 90], "image_height": [90, 90]}, "every image",
    ),
    "one size": ([ROWS[0]], {"image_width": [100]}, "give both"),
    "no size": ([ROWS[0]], {"image_width": [0], "image_height": [9]}, "a number above 0"),
    "weights": ([ROWS[0], ROWS[1]], {"weight": [1.0, 2.0]}, "give all of them one weight"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_said_with_its_place(name):
    rows, options, reason = WRONG[name]
    with pytest.raises(DataError, match=reason):
        regions(rows, **options)


def test_missing_columns_and_abstentions_are_refused():
    with pytest.raises(ParameterError, match="x, y, width and height"):
        CrowdRegions.from_arrays(["a"], ["ann"], [1], [1], [1])
    with pytest.raises(ParameterError, match="abstain"):
        CrowdRegions.reading_options(abstain=["?"])


def test_tools_round_so_that_boxes_may_touch_the_edge():
    data = regions([("a", "ann", -0.01, 0, 100.02, 50, "x")], image_width=[100], image_height=[50])
    assert data.image_size().tolist() == [[100, 50]]


@pytest.mark.parametrize("box", [(1e300, 0, 1, 1), (0, 0, 1e-300, 1), (1e8, 0, 1e-6, 1)])
def test_boxes_that_cannot_be_computed_with_are_refused(box):
    with pytest.raises(DataError, match="too large or too small"):
        CrowdRegions.from_arrays(["a"], ["w"], *([one] for one in box))
