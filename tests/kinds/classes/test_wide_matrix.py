from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from wisecrowd import CrowdLabels
from wisecrowd.core.exceptions import DataError, ParameterError, WisecrowdWarning
from wisecrowd.kinds.classes.columns import as_crowd_labels

NAN = np.nan
ROWS = [["cat", None, "dog"], [None, None, "cat"]]


def long_table(labels):
    table = labels.to_dict()
    return list(zip(*(table[role].tolist() for role in ("task", "worker", "label")), strict=True))


@pytest.mark.parametrize(
    "matrix",
    [
        np.array([[1, NAN, 0], [NAN, NAN, 1]]),
        np.array([[1, None, 0], [None, None, 1]], dtype=object),
        [[1, None, 0], [None, None, 1]],
        np.array([[1, pd.NA, 0], [pd.NA, None, 1]], dtype=object),
        [[1, NAN, 0], [NAN, NAN, 1]],
        np.ma.masked_array([[1, 9, 0], [9, 9, 1]], mask=[[0, 1, 0], [1, 1, 0]]),
        pd.DataFrame({0: [1, NAN], 1: [NAN, NAN], 2: [0, 1]}),
        pd.DataFrame({0: [1, None], 1: [None, None], 2: [0, 1]}, dtype="Int64"),
    ],
)
def test_wide_tables_of_numbers(matrix):
    labels = CrowdLabels.from_matrix(matrix)
    assert long_table(labels) == [(0, 0, 1), (0, 2, 0), (1, 2, 1)]
    assert labels.classes.tolist() == [0, 1]
    assert labels.workers.tolist() == [0, 1, 2]  # also the one who labelled nothing


@pytest.mark.parametrize(
    "frame",
    [
        pd.DataFrame(ROWS, index=["t1", "t2"], columns=["a", "b", "c"]),
        pd.DataFrame(ROWS, index=["t1", "t2"], columns=["a", "b", "c"], dtype="category"),
        pd.DataFrame(
            [["cat", "", "dog"], ["", "", "cat"]], index=["t1", "t2"], columns=list("abc")
        ),
    ],
)
def test_wide_frames_of_text(frame):
    labels = CrowdLabels.from_matrix(frame)
    assert long_table(labels) == [("t1", "a", "cat"), ("t1", "c", "dog"), ("t2", "c", "cat")]
    assert labels.workers.tolist() == ["a", "b", "c"]
    assert labels.frame_library == "pandas"


@pytest.mark.parametrize("build", [pl.DataFrame, pa.table])
def test_a_column_can_name_the_tasks(build):
    frame = build({"id": ["t2", "t1"], "b": ["x", None], "a": ["y", "x"]})
    labels = CrowdLabels.from_matrix(frame, tasks="id")
    assert long_table(labels) == [("t1", "a", "x"), ("t2", "a", "y"), ("t2", "b", "x")]
    with pytest.raises(ParameterError, match="no column 'nope' for the tasks"):
        CrowdLabels.from_matrix(frame, tasks="nope")


@pytest.mark.parametrize(
    ("matrix", "missing"),
    [
        (np.array([[1, -1], [0, 1]]), -1),
        (pd.DataFrame([[1, -1], [0, 1]]), -1),
        (np.array([["1", "?"], ["0", "1"]]), "?"),
        (pl.DataFrame({"a": ["1", "0"], "b": ["?", "1"]}), "?"),
    ],
)
def test_a_stated_value_is_missing(matrix, missing):
    assert CrowdLabels.from_matrix(matrix, missing=missing).n_annotations == 3
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", WisecrowdWarning)
        assert CrowdLabels.from_matrix(matrix).n_annotations == 4  # only when asked


def test_minus_one_as_a_class_is_told():
    for matrix in (np.array([[1, -1], [0, 1]]), pd.DataFrame([[1, -1], [0, 1]])):
        with pytest.warns(WisecrowdWarning, match=r"-1 counts as a class in 1 of 4 .* missing=-1"):
            CrowdLabels.from_matrix(matrix)
    assert CrowdLabels.from_matrix([[-1, 1]]).n_classes == 2  # yes and no, as signs
    assert CrowdLabels.from_matrix([[1, -1], [0, 1]], classes=[-1, 0, 1]).n_classes == 3


def test_a_missing_value_of_another_type_changes_nothing():
    assert CrowdLabels.from_matrix([["a", "b"]], missing=-1).n_annotations == 2
    assert CrowdLabels.from_matrix(pd.DataFrame([["a", "b"]]), missing=-1).n_annotations == 2
    assert CrowdLabels.from_matrix(np.array([[1, 2]]), missing="x").n_annotations == 2


def test_both_sides_are_sorted_with_their_rows():
    labels = CrowdLabels.from_matrix([[1, 2], [3, 4]], tasks=["b", "a"], workers=["y", "x"])
    assert long_table(labels) == [("a", "x", 4), ("a", "y", 3), ("b", "x", 2), ("b", "y", 1)]


def test_declared_classes():
    labels = CrowdLabels.from_matrix([[0, 1]], classes=[2, 1, 0])
    assert labels.classes.tolist() == [2, 1, 0]
    assert labels.label.tolist() == [2, 1]


@pytest.mark.parametrize(
    ("matrix", "options", "message"),
    [
        (np.zeros(3), {}, r"1 dimensions; give tasks × workers"),
        (np.zeros((2, 2, 2)), {}, "3 dimensions"),
        ([[1, 2], [3]], {}, "differ in length"),
        (np.zeros((2, 2)), {"tasks": ["a"]}, r"2 × 2 but there are 1 task ids and 2 worker ids"),
        (np.zeros((2, 2)), {"workers": ["a", "a"]}, "workers of the matrix must be distinct"),
        (np.full((2, 2), NAN), {}, "every entry of the matrix is missing"),
        (np.zeros((0, 3)), {}, "every entry of the matrix is missing"),
        (pd.DataFrame({"a": ["x", None], "b": [1, 2]}), {}, "mix types"),
        ([["x", 1]], {}, "mix types"),
    ],
)
def test_unusable_matrices_are_refused(matrix, options, message):
    with pytest.raises(DataError, match=message):
        CrowdLabels.from_matrix(matrix, **options)


def test_nested_lists_are_a_matrix_to_the_gate():
    assert as_crowd_labels([[0, 1], [1, 1], [0, 0]]).n_annotations == 6
