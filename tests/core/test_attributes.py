"""Attributes of tasks and workers: alignment, missing values, and one sentence for bad tables."""

import numpy as np
import pytest

from wisecrowd.core.attributes import (
    as_groups,
    task_groups,
    with_task_attributes,
    with_worker_attributes,
)
from wisecrowd.core.exceptions import DataError, ParameterError
from wisecrowd.kinds.classes.container import CrowdLabels

LABELS = CrowdLabels.from_arrays(["1", "2", "3"], ["a", "b", "a"], [0, 1, 0])


def test_tables_are_aligned_by_id():
    known = with_task_attributes(LABELS, {"task": [3, 1], "race": ["x", np.nan]})
    assert known.task_columns["race"].tolist() == [None, None, "x"]
    people = with_worker_attributes(LABELS, {"worker": ["b", "a"], "age": [40, 30]})
    assert people.worker_columns["age"].tolist() == [30, 40]
    assert known[[2]].task_columns["race"].tolist() == ["x"]


def test_frames_are_tables():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"task": ["2"], "race": ["y"]})
    assert with_task_attributes(LABELS, frame).task_columns["race"].tolist() == [None, "y", None]


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"task": ["1", "9", "8"], "race": list("xyz")}, "2 of 3 rows .* such as '9'"),
        ({"task": ["1", "1"], "race": list("xy")}, "'1' 2 times"),
        ({"id": ["1"], "race": ["x"]}, "call the column with the ids task"),
        ({"task": ["1"]}, "no column besides task"),
    ],
)
def test_bad_tables(table, message):
    with pytest.raises(DataError, match=message):
        with_task_attributes(LABELS, table)


def test_groups_need_two_and_not_too_many():
    assert as_groups([1.0, 2.0, None, 10.0, 2.0, 1.0]).names == ("1", "2", "10")
    with pytest.raises(DataError, match="one group only, 'a'"):
        as_groups(["a", "a", None])
    with pytest.raises(DataError, match="no values"):
        as_groups([None, None])
    with pytest.raises(DataError, match="8 groups"):
        as_groups(range(8))
    with pytest.raises(ParameterError, match="no attribute 'race'"):
        task_groups(LABELS, "race")
