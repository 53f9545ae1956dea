"""CrowdMasks: run lengths and arrays become checked annotations, or one clear sentence."""

from __future__ import annotations

import numpy as np
import pytest

from wisecrowd.core.exceptions import DataError
from wisecrowd.kinds.masks.container import CrowdMasks
from wisecrowd.kinds.masks.metrics import known_masks, mean_iou

WHO = (["i", "i", "j"], ["ann", "bob", "ann"])
GOOD = '{"size": [2, 3], "counts": [1, 3, 2]}'


def test_all_forms_are_the_same_mask():
    pixels = np.array([[0, 1, 0], [1, 1, 0]])
    data = CrowdMasks.from_arrays(
        ["i"] * 5, list("abcde"),
        [GOOD, '{"size": [2, 3], "counts": "132"}', {"size": [2, 3], "counts": b"132"}, pixels,
         {"size": (2, 3), "counts": [0, 0, 1, 3, 2]}],
    )  # fmt: skip
    assert data.mask.tolist() == [1, 3, 2] * 5
    assert data.area.tolist() == [3] * 5
    assert np.array_equal(data.dense(2), pixels == 1)
    assert set(data.to_dict()["mask"].tolist()) == {'{"size": [2, 3], "counts": "132"}'}
    again = CrowdMasks.from_arrays(*data.to_dict().values())
    assert np.array_equal(again.mask, data.mask)


def test_empty_masks_are_answers_and_images_differ_in_size():
    data = CrowdMasks.from_arrays(*WHO, [np.zeros((2, 3)), GOOD, np.ones((4, 1))])
    assert (data.height.tolist(), data.width.tolist()) == ([2, 4], [3, 1])
    assert data.area.tolist() == [0, 3, 4]
    part = data[[1]]
    assert (part.height.tolist(), part.mask.tolist()) == ([4], [0, 4])


def test_classes_make_tasks_of_their_own():
    data = CrowdMasks.from_arrays(*WHO, [GOOD] * 3, layer=["car", "road", "car"])
    assert data.tasks.tolist() == ["i [car]", "i [road]", "j [car]"]
    assert "a task of its own, such as 'i [car]'" in data.notes[0]
    one = CrowdMasks.from_arrays(*WHO, [GOOD] * 3, layer=["car"] * 3)
    assert (one.tasks.tolist(), one.notes) == (["i", "j"], ())


def test_the_last_of_two_masks_of_a_worker_counts():
    columns = ["i", "i"], ["ann", "ann"], [GOOD, np.zeros((2, 3))]
    last = CrowdMasks.from_arrays(*columns, timestamp=[2, 1], duplicates="last")
    assert last.area.tolist() == [3]
    assert CrowdMasks.from_arrays(*columns, duplicates="keep").n_annotations == 2
    with pytest.raises(DataError, match="rows 1, 2"):
        CrowdMasks.from_arrays(*columns, duplicates="error")


@pytest.mark.parametrize(
    ("mask", "message"),
    [
        ("x", r"The mask in row 2 is not JSON; write"),
        ("[1]", r"The mask in row 2 has no size and counts"),
        (None, r"The mask in row 2 is missing; give"),
        ('{"size": [2], "counts": [6]}', r"has the size \[2\]; give its height and width"),
        ('{"size": [2, 0], "counts": []}', r"has the size \[2, 0\]"),
        ('{"size": [2, 3], "counts": [1, 3]}', r"row 2 has runs of 4 pixels in all, and its size"),
        ('{"size": [2, 3], "counts": [7, -1]}', r"has the run length -1"),
        ('{"size": [2, 3], "counts": "1P"}', r"has counts whose text ends within a number"),
        ('{"size": [2, 3], "counts": [1.5, 4.5]}', r"neither COCO's text nor a list of whole"),
        ('{"size": [99999, 99999], "counts": "0"}', r"at most 2147483647 are supported"),
        (np.full((2, 3), 2), r"row 2 has other values than 0 and 1"),
        (np.zeros(6), r"row 2 is not a two-dimensional array"),
        (np.zeros((3, 2)), r"Task 'i' has a mask of 2 × 3 pixels in row 1 and one of 3 × 2 in row"),
    ],
)
def test_bad_masks(mask, message):
    with pytest.raises(DataError, match=message):
        CrowdMasks.from_arrays(*WHO, [GOOD, mask, GOOD])


def test_a_class_may_not_be_missing():
    with pytest.raises(DataError, match="layer column is empty in row 2"):
        CrowdMasks.from_arrays(*WHO, [GOOD] * 3, layer=["car", None, "road"])


def test_truth_is_matched_by_task_and_checked():
    data = CrowdMasks.from_arrays(*WHO, [GOOD] * 3)
    truth = known_masks({"i": np.array([[0, 1, 0], [1, 0, 0]]), "other": GOOD}, data)
    assert list(truth) == [0]
    assert mean_iou(truth, np.array([1, 3, 2]), np.array([0, 3])) == pytest.approx(2 / 3)
    for bad, message in (
        ({"i": np.zeros((3, 2))}, "'i' is of 3 × 2 pixels, and workers marked 2 × 3"),
        ({"i": "{}"}, "The true mask of task 'i' has no size"),
        ({"other": GOOD}, "names none of these tasks"),
        ([GOOD], "has 1 entries for 2 tasks"),
    ):
        with pytest.raises(DataError, match=message):
            known_masks(bad, data)
