from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse

from wisecrowd.core import features
from wisecrowd.core.exceptions import DataError
from wisecrowd.core.features import as_features, is_dataset


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
