"""What is printed as JSON: numbers that are numbers, and text for what JSON has not."""

from __future__ import annotations

import datetime
import json

import numpy as np
import pytest

from wisecrowd.cli.outputs import print_json, rows_of


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


def test_rows_of_a_table():
    table = {"task": np.array(["a", "b"], dtype=object), "confidence": np.array([0.5, np.nan])}
    rows = rows_of(table)
    assert [list(row) for row in rows] == [["task", "confidence"]] * 2
    assert rows[0] == {"task": "a", "confidence": 0.5}
