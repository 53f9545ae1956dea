from __future__ import annotations

import numpy as np

from wisecrowd.core.plain_values import PlainRows, plain


def test_what_json_lacks_becomes_text():
    assert plain(np.datetime64("2020-01-02", "s")) == "2020-01-02 00:00:00"
    assert plain({1.5: float("nan")}) == {"1.5": None}


def test_every_level_is_converted_and_subclasses_become_pythons_own():
    class Share(float):
        pass

    found = plain([{"x": (np.float64(0.5), Share(0.25), True)}, np.array([[1, 2]])])
    assert found == [{"x": [0.5, 0.25, True]}, [[1, 2]]]
    assert [type(value) for value in found[0]["x"]] == [float, float, bool]


def test_the_caller_chooses_what_becomes_of_the_rest():
    given = {"a": np.float64("nan"), "b": [{1}], "c": None}
    assert plain(given, other=repr) == {"a": "nan", "b": ["{1}"], "c": None}


def test_plain_rows_are_not_converted_again():
    rows = PlainRows([{"x": 1}])
    assert plain({"rows": rows})["rows"] is rows
