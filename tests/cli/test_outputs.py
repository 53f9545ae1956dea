"""What is printed as JSON: numbers that are numbers, and text for what JSON has not."""

from __future__ import annotations

import datetime
import json

import numpy as np
import pytest

from wisecrowd.cli.run.outputs import print_json, rounded_estimates, rows_of


class Percent(float):
    """A float of a kind of its own."""


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, None),
        (True, True),
        (2**70, 2**70),
        ("é", "é"),
        (0.25, 0.25),
        (float("nan"), None),
        (float("-inf"), None),
        (Percent(0.5), 0.5),
        (Percent("nan"), None),
        (np.float64(0.5), 0.5),
        (np.float32("nan"), None),
        (np.int64(3), 3),
        (np.bool_(True), True),
        (np.array([[1.0, np.inf]]), [[1.0, None]]),
        (datetime.date(2024, 2, 29), "2024-02-29"),
        ((1, [2, (float("nan"),)]), [1, [2, [None]]]),
        ({3: {"x": np.float64("nan")}}, {"3": {"x": None}}),
    ],
)
def test_values_as_json_has_them(capfd, value, expected):
    print_json({"value": value})
    printed = capfd.readouterr().out
    assert printed.count("\n") == 1
    assert json.loads(printed) == {"value": expected}
    assert type(json.loads(printed)["value"]) is type(expected)


def test_rows_of_a_table_are_what_the_values_are_one_by_one(capfd):
    table = {
        "task": np.array(["a", np.int64(7)], dtype=object),
        "day": np.array(["2024-02-29", "2024-03-01"], dtype="datetime64[D]"),
        "name": np.array(["x", "é"]),
        "n": np.array([1, 2], dtype=np.uint8),
        "sure": np.array([True, False]),
        "confidence": np.array([np.nan, 0.5]),
        "soft": np.array([[0.25, np.inf], [1.0, 0.0]], dtype=np.float32),
    }
    one_by_one = [{name: values[i] for name, values in table.items()} for i in range(2)]
    print_json({"rows": rows_of(table)})
    print_json({"rows": [row | {"day": str(row["day"])} for row in one_by_one]})
    rows, expected = (json.loads(line)["rows"] for line in capfd.readouterr().out.splitlines())
    assert rows == expected
    assert rows[0]["confidence"] is None
    assert rows[0]["soft"] == [0.25, None]


def test_estimates_have_six_digits_and_ids_keep_theirs():
    table = {
        "task": np.array([0.123456789, 2.5]),
        "p": np.array([0.123456789, 1.23456789e-7]),
        "weight": np.array([-123456.789, np.inf]),
        "n": np.array([1234567, 2]),
    }
    rounded = rounded_estimates(table)
    assert rounded["task"] is table["task"]
    assert rounded["n"] is table["n"]
    assert rounded["p"].tolist() == [0.123457, 1.23457e-7]
    assert rounded["weight"].tolist() == [-123457.0, np.inf]


def test_rounding_makes_nothing_certain():
    values = np.array([1 - 1e-12, 1.0, 0.0, 1e-300, np.nan])
    rounded = rounded_estimates({"confidence": values})["confidence"]
    assert rounded[:4].tolist() == [0.999999, 1.0, 0.0, 1e-300]
    assert np.isnan(rounded[4])
