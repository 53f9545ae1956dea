from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse

from wisecrowd.core import features
from wisecrowd.core.exceptions import DataError
from wisecrowd.core.features import as_features, as_targets, is_dataset
from wisecrowd.core.labels import CrowdLabels


class Items:
    def __len__(self):
        return 3

    def __getitem__(self, i):
        return [float(i)]


# ---------------------------------------------------------------------------------------- features


def test_arrays_frames_and_lists_become_floats():
    expected = np.array([[1.0, 2.0], [3.0, 4.0]])
    values = [[1, 2], [3, 4]]
    for X in (values, np.array(values), pd.DataFrame(values), pl.DataFrame(values, orient="row")):
        found = as_features(X)
        assert found.dtype == np.float64
        np.testing.assert_array_equal(found, expected)
    assert as_features(np.ones((2, 2), np.float32)).dtype == np.float32
    assert as_features(np.ones((2, 2), np.float16)).dtype == np.float64


def test_what_is_read_item_by_item_stays_as_it_is():
    items = Items()
    assert is_dataset(items)
    assert as_features(items) is items
    for X in ([1], (1,), "text", np.ones(2), pd.DataFrame([1]), sparse.eye_array(2).tocsr()):
        assert not is_dataset(X)


def test_nan_and_infinity_name_row_and_column():
    X = np.zeros((70_000, 2))
    X[66_000, 1] = np.nan
    with pytest.raises(DataError, match=r"NaN in row 66000, column 1"):
        as_features(X)
    images = np.zeros((3, 1, 4, 4))
    images[2, 0, 3, 1] = -np.inf
    with pytest.raises(DataError, match=r"infinity in row 2, column 0, 3, 1"):
        as_features(images)


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (None, "X is None"),
        (np.zeros(3), "1 dimension"),
        (np.zeros((0, 2)), "no rows"),
        (np.zeros((2, 0)), "0 feature"),
        (np.zeros((2, 2)) * 1j, "Complex"),
        ([["a", "b"]], "cannot be read as numbers"),
        (sparse.eye_array(3).tocsr() * 1j, "Complex"),
        (sparse.csr_array((0, 3)), "no rows"),
        (sparse.coo_array([[0, 0], [0, np.nan], [np.inf, 0]]), "NaN in row 1, column 1"),
    ],
)
def test_bad_features(X, message):
    with pytest.raises(DataError, match=message):
        as_features(X)


def test_sparse_features_become_dense_if_they_fit(monkeypatch):
    X = sparse.coo_array(np.eye(3, dtype=np.float32))
    found = as_features(X)
    np.testing.assert_array_equal(found, np.eye(3))
    assert found.dtype == np.float32
    assert as_features(sparse.eye_array(3, dtype=int)).dtype == np.float64
    assert as_features(X, sparse=True).format == "csr"
    twice = sparse.csr_array((np.ones(2), np.zeros(2, int), [0, 2]), shape=(1, 1))
    assert as_features(twice, sparse=True).data.tolist() == [2.0]
    assert twice.nnz == 2
    monkeypatch.setattr(features, "available_memory", lambda: 4 * 35)
    with pytest.raises(DataError, match=r"3 × 3 numbers.* take 36 bytes .*limit of 35 bytes"):
        as_features(X)
    assert as_features(X, sparse=True).shape == (3, 3)


def test_the_number_of_features_is_that_of_the_fit():
    with pytest.raises(DataError, match="X has 3 features, but Raykar is expecting 2 features"):
        as_features(np.zeros((1, 3)), n_features=2, owner="Raykar")


# --------------------------------------------------------------------------------------- alignment


def long(tasks, **options):
    return CrowdLabels.from_arrays(tasks, ["ann"] * len(tasks), [t for t, _ in enumerate(tasks)],
                                   **options)  # fmt: skip


def by_row(labels):
    """Return the label of each row, None where there is none."""
    found = [None] * labels.n_tasks
    for row, label in zip(labels.task.tolist(), labels.label.tolist(), strict=True):
        found[row] = labels.classes[label]
    return found


@pytest.mark.parametrize("make", [int, str])
def test_row_numbers_align_however_they_are_spelled_and_sorted(make):
    # As text "10" comes before "2"; rows must not.
    order = [10, 2, 0, 11, 1, 3, 9, 4, 8, 5, 7, 6]
    labels = CrowdLabels.from_arrays([make(i) for i in order], ["a"] * 12, [f"c{i}" for i in order])
    aligned = as_targets(labels, 12)
    assert by_row(aligned) == [f"c{i}" for i in range(12)]
    assert aligned.tasks.tolist() == [make(i) for i in range(12)]


def test_ids_align_in_any_order_and_rows_may_lack_labels():
    labels = CrowdLabels.from_arrays(["b", "a", "b"], ["x", "x", "y"], [0, 1, 0])
    aligned = as_targets(labels, 3, tasks=["b", "z", "a"])
    assert aligned.tasks.tolist() == ["b", "z", "a"]
    assert aligned.labels_per_task.tolist() == [2, 0, 1]
    assert by_row(aligned) == [0, None, 1]


def test_weights_and_columns_travel_with_their_annotations():
    labels = CrowdLabels.from_arrays(
        ["b", "a", "c"], ["x"] * 3, [0, 1, 0], weight=[1.0, 2.0, 3.0], cost=[10, 20, 30]
    )
    aligned = as_targets(labels, 3, tasks=["c", "b", "a"])
    assert aligned.weight.tolist() == [3.0, 1.0, 2.0]
    assert aligned.columns["cost"].tolist() == [30, 10, 20]


def test_other_ids_without_tasks_are_refused_with_both_sizes():
    with pytest.raises(DataError, match=r"X has 5 rows and y has 2 tasks .*tasks=ids"):
        as_targets(long(["img7", "img8"]), 5)
    with pytest.raises(DataError, match=r"not the row numbers 0 to 1"):
        as_targets(long([1, 2]), 2)  # counted from 1
    with pytest.raises(DataError, match="not the row numbers"):
        as_targets(long(["00", "01"]), 2)
    with pytest.raises(DataError, match="not the row numbers"):
        as_targets(long([-1, 0]), 2)


def test_labelled_tasks_without_features_are_named():
    with pytest.raises(DataError, match=r"1 of 3 labelled tasks have no features, such as 'bb'"):
        as_targets(long(["a", "bb", "c"]), 2, tasks=["a", "c"])


def test_tasks_are_as_many_as_rows_and_differ():
    with pytest.raises(DataError, match=r"tasks has shape \(1,\) and X has 2 rows"):
        as_targets(long(["a"]), 2, tasks=["a"])
    with pytest.raises(DataError, match="'a' twice"):
        as_targets(long(["a"]), 2, tasks=["a", "a"])


def test_selected_tasks_align_with_features_selected_alike():
    labels = long(list(range(6)))
    chosen = np.array([4, 1, 3])
    assert by_row(as_targets(labels[chosen], 3)) == [4, 1, 3]
    assert by_row(as_targets(labels[chosen][[2, 0]], 2)) == [3, 4]
    with pytest.raises(DataError, match="3 selected tasks"):
        as_targets(labels[chosen], 6)  # X was not selected
    named = long(["a", "b", "c"])
    with pytest.raises(DataError, match="tasks=ids"):
        as_targets(named[[0, 1]], 2)


def test_a_matrix_and_one_dimension_are_in_the_order_of_rows():
    matrix = as_targets(np.array([[0, 2], [1, 1]]), 2)
    assert matrix.n_workers == 2
    one = as_targets(["x", "y", "x"], 3, tasks=["c", "b", "a"])
    assert (by_row(one), one.tasks.tolist(), one.n_workers) == (["x", "y", "x"], ["c", "b", "a"], 1)
    with pytest.raises(DataError, match=r"X has 3 rows and y has 2 rows"):
        as_targets(np.zeros((2, 2), int), 3)
    with pytest.raises(DataError, match=r"X has 3 rows and y has 2 labels"):
        as_targets(["x", "y"], 3)


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (None, "y is None"),
        (np.array([0.0, np.nan]), "NaN in row 1"),
        (np.array([0.0, np.inf]), "infinity in row 1"),
        (np.array([0.5, 1.0]), "Unknown label type"),
        (np.array(["a", None], object), "NaN in row 1"),
    ],
)
def test_bad_labels(y, message):
    with pytest.raises(DataError, match=message):
        as_targets(y, 2)
