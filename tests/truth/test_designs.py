"""The strata of a list as it comes back, and of known answers without one."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from wisecrowd import CrowdLabels
from wisecrowd.core.exceptions import DataError
from wisecrowd.truth.designs import Design, design_of, ids_as_in


def crowd(n_tasks=10):
    tasks = [f"t{i}" for i in range(n_tasks)]
    return CrowdLabels.from_arrays(tasks, ["ann"] * n_tasks, ["a", "b"] * (n_tasks // 2))


def frame(**columns):
    return pa.table(columns)


def listed(tasks=("t1", "t8", "t5"), stratum=("1", "2", "2"), weight=("4", "3", "3")):
    n = len(tasks)
    return frame(task=list(tasks), stratum=list(stratum), weight=list(weight), label=["a"] * n)


def test_a_list_has_the_strata_of_its_columns():
    found = design_of(listed(), crowd(), np.ones(10, bool))
    assert found.stratum.tolist() == [-1, 0, -1, -1, -1, 1, -1, -1, 1, -1]
    assert found.sizes.tolist() == [4, 6]


def test_a_spreadsheet_may_write_decimal_commas():
    found = design_of(listed(weight=("4,0", "2,5", "3,5")), crowd(), np.ones(10, bool))
    assert found.sizes.tolist() == [4, 6]


def test_weights_are_the_tasks_for_each_drawn_one():
    drawn = Design(np.array([0, 0, 1, -1]), np.array([5, 4]))
    assert drawn.weights().tolist() == [2.5, 2.5, 4, 1]


def test_known_answers_without_strata_are_one_sample():
    known = np.arange(10) < 3
    for checked in ({"t0": "a"}, frame(task=["t0"], label=["a"])):
        found = design_of(checked, crowd(), known)
        assert found.stratum.tolist() == [0] * 3 + [-1] * 7
        assert found.sizes.tolist() == [10]


def test_strata_are_in_the_order_of_their_numbers():
    found = design_of(listed(stratum=("10", "9", "9")), crowd(), np.ones(10, bool))
    assert found.stratum[[1, 8]].tolist() == [1, 0]


def test_several_rows_of_a_task_count_once():
    checked = listed(("t1", "t1", "t5"), ("1", "1", "2"), ("4", "4", "6"))
    found = design_of(checked, crowd(), np.ones(10, bool))
    assert found.sizes.tolist() == [4, 6]


def test_numbers_that_a_csv_file_turned_into_texts_are_found():
    data = CrowdLabels.from_arrays([1, 2, 3], ["ann"] * 3, ["a", "b", "a"])
    checked = listed(("2", "3"), ("1", "1"), ("1.5", "1.5"))
    assert design_of(checked, data, np.ones(3, bool)).stratum.tolist() == [-1, 0, 0]
    assert ids_as_in([2, "3", "x"], data.tasks) == [2, 3, "x"]


def test_strata_without_answers_join_their_neighbour():
    drawn = Design(np.array([0, 1, 1, 2, -1]), np.array([3, 4, 5]))
    found = drawn.strata_of(np.array([False, True, False, True, True]))
    assert found.stratum.tolist() == [-1, 0, -1, 1, -1]
    assert found.sizes.tolist() == [7, 5]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"weight": ("4", "0", "3")}, "numbers above 0"),
        ({"weight": ("4", "-1", "3")}, "numbers above 0"),
        ({"weight": ("4", "many", "3")}, "no number"),
        ({"weight": ("4", None, "3")}, "no number"),
        ({"weight": ("4", "nan", "3")}, "numbers above 0"),
        ({"weight": ("40", "3", "3")}, "add up to 46"),
        ({"tasks": ("x", "y", "z")}, "None of the checked tasks"),
    ],
)
def test_what_is_no_list_of_these_labels_is_refused(changes, said):
    with pytest.raises(DataError, match=said):
        design_of(listed(**changes), crowd(), np.ones(10, bool))


def test_a_frame_without_tasks_is_refused():
    checked = frame(stratum=["1"], weight=["2"], label=["a"])
    with pytest.raises(DataError, match="call it task"):
        design_of(checked, crowd(), np.ones(10, bool))
