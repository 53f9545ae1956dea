from __future__ import annotations

import datetime
from functools import partial

import numpy as np
import pyarrow as pa
import pytest

from wisecrowd.core.exceptions import DataError
from wisecrowd.core.messages.descriptions import Places
from wisecrowd.core.value_columns import as_numbers, as_texts, as_timestamps, as_weights

HERE = Places({"cost": "Reward"})


@pytest.mark.parametrize(
    "values",
    [
        [0.05, None, 2],
        ["$0.05", "", "2"],
        [" €0.05 ", None, "2 €"],
        pa.array(["0.05", "", "2.0"]).dictionary_encode(),
        pa.chunked_array([["0.05"], ["", "2"]]),
        pa.array(["0.05", None, "2"], pa.string_view()),
    ],
)
def test_costs_are_floats(values):
    if isinstance(values, list) and isinstance(values[0], float):
        values = np.array([np.nan if v is None else v for v in values])
    assert np.array_equal(as_numbers(values, "cost", HERE), [0.05, np.nan, 2], equal_nan=True)


def test_durations_are_seconds():
    spans = pa.array([datetime.timedelta(seconds=1.5), None])
    assert np.array_equal(as_numbers(spans, "duration", HERE), [1.5, np.nan], equal_nan=True)


def test_text_that_is_no_number_is_refused_with_rows():
    with pytest.raises(DataError) as error:
        as_numbers(["1", "cheap", "2", "free"], "cost", HERE)
    message = str(error.value)
    assert "cost ('Reward') column holds 'cheap', which is not a number, in rows 2, 4" in message
    with pytest.raises(DataError, match="must hold numbers"):
        as_numbers(pa.array([datetime.date(2024, 1, 1)]), "cost", HERE)


@pytest.mark.parametrize("bad", [-1.0, np.nan, np.inf])
def test_weights_must_be_finite_and_positive(bad):
    with pytest.raises(DataError, match=r"weight column is negative, infinite or missing in row 2"):
        as_weights([1.0, bad], HERE)
    assert as_weights(["0.5", "2"], HERE).tolist() == [0.5, 2.0]
    with pytest.raises(DataError, match=r"'heavy', which is not a number, in row 1"):
        as_weights(["heavy"], HERE)


@pytest.mark.parametrize(
    "values",
    [
        ["2024-05-31T14:00:00Z", "", "2024-06-01T00:00:00Z"],
        ["2024-05-31T16:00:00+02:00", "", "2024-06-01T00:00:00Z"],
        ["2024-05-31 14:00:00", "", "2024-06-01"],
        [
            np.datetime64("2024-05-31T14:00:00"),
            np.datetime64("NaT", "s"),
            np.datetime64("2024-06-01"),
        ],
        pa.array(
            [datetime.datetime(2024, 5, 31, 14), None, datetime.datetime(2024, 6, 1)],
            pa.timestamp("ms", "UTC"),
        ),
    ],
)
def test_times_are_utc(values):
    if isinstance(values, list) and not isinstance(values[0], str):
        values = np.array(values)
    times = as_timestamps(values, HERE)
    assert times.dtype == "datetime64[us]"
    assert str(times[0]) == "2024-05-31T14:00:00.000000"
    assert np.isnat(times[1])
    assert str(times[2]) == "2024-06-01T00:00:00.000000"


def test_plain_numbers_stay_numbers_as_times():
    assert as_timestamps(["1700000000", "1700000001.5"], HERE).tolist() == [1.7e9, 1.7e9 + 1.5]
    assert as_timestamps([3, 1], HERE).tolist() == [3.0, 1.0]


def test_text_that_is_no_time_is_refused_with_rows():
    with pytest.raises(DataError, match=r"'soon' in row 2; write times like 2024-05-31T14:00:00Z"):
        as_timestamps(["2024-05-31", "soon"], HERE)


def test_names_share_their_objects():
    names = as_texts(["q1", None, "q1"], "question", HERE)
    assert names.tolist() == ["q1", None, "q1"]
    assert names[0] is names[2]


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_durations_and_counts_of_any_size_are_numbers(unit):
    long = pa.array([10**18, None]).cast(pa.duration(unit))
    seconds = 1e18 / {"s": 1, "ms": 1e3, "us": 1e6, "ns": 1e9}[unit]
    found = as_numbers(long, "duration", HERE)
    assert np.array_equal(found, [seconds, np.nan], equal_nan=True)
    nanoseconds = 1_717_164_000_000_000_001  # since 1970, not exact as a float
    assert as_timestamps(pa.array([nanoseconds]), HERE)[0] == pytest.approx(nanoseconds)


@pytest.mark.parametrize("role", ["timestamp", "duration", "cost"])
@pytest.mark.parametrize("values", [[1.0, np.inf], ["1", "1e400"], ["1", "-inf"]])
def test_infinite_numbers_are_refused(role, values):
    read = as_timestamps if role == "timestamp" else partial(as_numbers, role=role)
    with pytest.raises(DataError, match=r"column is infinite in row 2; correct it or leave it"):
        read(values, places=HERE)
