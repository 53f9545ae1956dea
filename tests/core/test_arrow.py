from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from wisecrowd.core.arrow import as_arrow, indices_of, is_missing, kind_of, to_one_type
from wisecrowd.core.exceptions import DataError


@pytest.mark.parametrize(
    "value", [None, float("nan"), np.nan, pd.NA, pd.NaT, np.datetime64("NaT", "s")]
)
def test_missing_values(value):
    assert is_missing(value)


@pytest.mark.parametrize("value", [0, "", False, "nan", 0.0])
def test_values_that_are_there(value):
    assert not is_missing(value)


@pytest.mark.parametrize(
    "values",
    [[1, True], [True, 1], [1.5, True], [np.True_, 1], ["a", b"x"], [b"x", "a"], ["a", 1.5]],
)
def test_no_mix_is_taken_for_one_type(values):
    with pytest.raises(DataError, match="mix types"):
        as_arrow(values, "label")


@pytest.mark.parametrize(
    "values",
    [["a", np.str_("b"), None, pd.NA], [1, np.int64(2), None], [True, np.True_], [1, 2.5, np.nan]],
)
def test_one_type_with_gaps_passes(values):
    expected = [None if is_missing(x) else x for x in values]
    assert as_arrow(values, "label").to_pylist() == expected


def test_numpys_variable_text():
    values = np.array(["a", "b"], dtype=np.dtypes.StringDType())
    assert as_arrow(values, "label").to_pylist() == ["a", "b"]


def test_types_have_one_name():
    assert [kind_of(x) for x in (True, np.True_, 1, np.int8(1), 1.5, np.float32(1), "a")] == [
        "bool", "bool", "int", "int", "float", "float", "str",
    ]  # fmt: skip


def test_chunks_of_several_types():
    small, large = pa.array([1], pa.int8()), pa.array([2**40])
    assert [c.type for c in to_one_type([small, large], "task")] == [pa.int64()] * 2
    nothing = pa.nulls(1)
    assert to_one_type([nothing, pa.array(["a"])], "task")[0].to_pylist() == [None]
    with pytest.raises(DataError, match="too large for one numeric type"):
        to_one_type([pa.array([1.5]), pa.array([2**60 + 1])], "task")


def test_codes_of_any_width():
    coded = pa.DictionaryArray.from_arrays(pa.array([0, None], pa.uint8()), ["a"])
    assert indices_of(coded).tolist() == [0, -1]
    assert indices_of(coded).dtype == np.int32


def test_half_a_character_is_refused_with_its_row():
    with pytest.raises(DataError, match=r"label values hold half a character.*first in row 2"):
        as_arrow(["cat", "\ud83d", None], "label")
