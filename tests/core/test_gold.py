from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from wisecrowd import CrowdLabels
from wisecrowd.core.exceptions import DataError
from wisecrowd.core.gold import as_pairs
from wisecrowd.kinds.classes.truth import as_gold

LABELS = CrowdLabels.from_arrays(["t1", "t2", "t3"], ["w"] * 3, ["cat", "dog", "cat"])
NUMBERS = CrowdLabels.from_arrays([1, 2], ["w", "w"], [0, 1])


@pytest.mark.parametrize(
    "gold",
    [
        {"t2": "dog"},
        {"t2": "dog", "t1": None},
        pd.Series({"t2": "dog"}),
        pd.DataFrame({"task": ["t2", "t1"], "label": ["dog", None]}),
        pl.DataFrame({"item": ["t2"], "label": ["dog"]}),
        pa.table({"task": ["t2"], "label": ["dog"]}),
        [None, "dog", None],
        np.array([None, "dog", np.nan], dtype=object),
    ],
)
def test_gold_in_every_form(gold):
    assert as_gold(gold, LABELS).tolist() == [-1, 1, -1]


def test_no_gold_is_none():
    assert as_gold(None, LABELS) is None


@pytest.mark.parametrize(
    "gold", [[1.0, np.nan], pd.Series([1, pd.NA], [1, 2], dtype="Int64"), {1: 1}]
)
def test_integers_that_became_floats_are_integers(gold):
    assert as_gold(gold, NUMBERS).tolist() == [1, -1]


@pytest.mark.parametrize(
    ("gold", "message"),
    [
        (
            {"t33": "cat"},
            r"task 't33', which has no row in the labels \(did you mean 't3'\?\); remove",
        ),
        (
            {"t1": "cta"},
            r"'cta' \(did you mean 'cat'\?\), which is not among the classes \('cat', 'dog'\)",
        ),
        ([None, "dog"], r"shape \(2,\); give one class per task \(3\), or a mapping"),
        (
            pd.DataFrame({"task": ["t1", "t1"], "label": ["cat", "dog"]}),
            "two classes, 'cat' and 'dog'",
        ),
        (
            pd.DataFrame({"task": ["t1", "t1"], "label": ["dog", "cat"]}),
            "two classes, 'dog' and 'cat'",
        ),
        (pd.DataFrame({"task": ["t1"], "x": ["cat"]}), "No column looks like the label"),
    ],
)
def test_wrong_gold_is_refused(gold, message):
    with pytest.raises(DataError, match=message):
        as_gold(gold, LABELS)


def test_gold_of_another_type_says_so():
    with pytest.raises(DataError, match=r"there is 1 of type int, not str: convert one of them"):
        as_gold({"1": 0}, NUMBERS)
    with pytest.raises(DataError, match=r"there is 0 of type int, not str"):
        as_gold({1: "0"}, NUMBERS)


def test_pairs_keep_unknown_tasks():
    codes, (ids, classes) = as_pairs({"t3": "a", "t7": "b"}, LABELS, "truth")
    assert codes.tolist() == [2, -1]
    assert (ids, classes) == (["t3", "t7"], ["a", "b"])


def test_classes_that_are_no_whole_numbers_stay_what_they_are():
    halves = CrowdLabels.from_arrays([1, 2, 3], ["w"] * 3, [0.5, 1.5, 1.0], type="labels")
    assert as_gold([0.5, None, 1.0], halves).tolist() == [0, -1, 1]
