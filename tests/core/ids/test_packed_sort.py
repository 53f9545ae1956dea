from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wisecrowd.core.ids import packed_sort
from wisecrowd.core.ids.packed_sort import (
    bits_for,
    dense_codes,
    recode,
    sort_annotations,
    stable_order,
)


@pytest.mark.parametrize(
    ("size", "bits"), [(0, 0), (1, 0), (2, 1), (3, 2), (4, 2), (5, 3), (2**31, 31)]
)
def test_bits_hold_every_code(size, bits):
    assert bits_for(size) == bits


@given(st.lists(st.integers(0, 9), max_size=40))
def test_stable_order_is_numpys_stable_argsort(codes):
    codes = np.array(codes, dtype=np.int32)
    assert stable_order(codes, 10).tolist() == np.argsort(codes, kind="stable").tolist()


def test_stable_order_of_codes_too_wide_for_one_key():
    codes = np.array([2**62, 5, 2**62, 0], dtype=np.int64)
    assert stable_order(codes, 2**63).tolist() == [3, 1, 0, 2]


@pytest.mark.parametrize("block", [3, 1 << 16])
@pytest.mark.parametrize("key_bits", [63, 14, 5])  # 14: by ranges of tasks; 5: the two-pass way
def test_annotations_are_sorted_by_task_worker_and_row(monkeypatch, block, key_bits):
    monkeypatch.setattr(packed_sort, "_BLOCK", block)
    rng = np.random.default_rng(0)
    n, sizes = 500, (17, 5, 3)
    task, worker, label = (rng.integers(0, size, n).astype(np.int32) for size in sizes)
    expected = np.lexsort((np.arange(n), worker, task))
    if key_bits == 14:
        monkeypatch.setattr(packed_sort, "_KEY_BITS", 14)
        monkeypatch.setattr(packed_sort, "stable_order", None)  # is not needed
    if key_bits == 5:
        monkeypatch.setattr(packed_sort, "_KEY_BITS", 10)
        monkeypatch.setattr(packed_sort, "stable_order", lambda c, _: np.argsort(c, kind="stable"))
    result = sort_annotations(task.copy(), worker.copy(), label.copy(), sizes)
    assert result.task.tolist() == task[expected].tolist()
    assert result.worker.tolist() == worker[expected].tolist()
    assert result.label.tolist() == label[expected].tolist()
    assert result.rows.tolist() == expected.tolist()


def test_sorted_annotations_stay_as_they_are():
    codes = np.array([0, 0, 1], dtype=np.int32), np.array([0, 2, 1], dtype=np.int32)
    result = sort_annotations(*codes, np.array([1, 0, 1], dtype=np.int32), (2, 3, 2))
    assert result.rows.tolist() == [0, 1, 2]
    assert result.label.tolist() == [1, 0, 1]


@pytest.mark.parametrize(
    "values",
    [
        [3, 1, 3, 2],  # a table
        [-5, 10**12, -5, 7],  # too far apart for a table
        [-(2**63), 2**63 - 1, 0],
        [5],
    ],
)
def test_dense_codes_are_numpys_unique(values):
    values = np.array(values, dtype=np.int64)
    codes, distinct = dense_codes(values)
    expected, inverse = np.unique(values, return_inverse=True)
    assert distinct.tolist() == expected.tolist()
    assert codes.tolist() == inverse.tolist()
    assert codes.dtype == np.int32


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int32, np.uint64, np.int64])
def test_dense_codes_keep_the_type(dtype):
    codes, distinct = dense_codes(np.array([100, 7, 100], dtype=dtype))
    assert distinct.dtype == dtype
    assert distinct[codes].tolist() == [100, 7, 100]


def test_dense_codes_of_a_narrow_type_do_not_overflow():
    for low, high in ((-128, 127), (-100, 100)):
        codes, distinct = dense_codes(np.array([low, high, 45], dtype=np.int8))
        assert distinct.tolist() == [low, 45, high]
        assert codes.tolist() == [0, 2, 1]


def test_dense_codes_leave_their_input_unless_told():
    values = np.array([9, 7, 9], dtype=np.int32)
    dense_codes(values)
    assert values.tolist() == [9, 7, 9]
    codes, _ = dense_codes(values, overwrite=True)
    assert np.shares_memory(codes, values)
    assert codes.tolist() == [1, 0, 1]


def test_recode_serves_the_missing_code():
    codes = np.array([0, -1, 1], dtype=np.int32)
    assert recode(codes, np.array([5, 6, -1], dtype=np.int32)).tolist() == [5, -1, 6]
