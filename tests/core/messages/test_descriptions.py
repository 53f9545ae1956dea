from __future__ import annotations

import numpy as np

from wisecrowd.core.messages.descriptions import Places, describe_ids, describe_rows, suggestion


def test_rows_count_from_one_and_are_limited():
    assert describe_rows(np.array([0])) == "row 1"
    assert describe_rows(np.arange(8)) == "rows 1, 2, 3, 4, 5 and 3 more"


def test_ids_are_quoted_and_limited():
    assert describe_ids(np.array(["a", "b"], dtype=object)) == "'a', 'b'"
    assert describe_ids(np.arange(7)) == "0, 1, 2, 3, 4 and 2 more"


def test_near_and_differently_typed_ids_are_suggested():
    assert suggestion("catt", ["cat", "dog"]) == " (did you mean 'cat'?)"
    assert suggestion("zebra", ["cat", "dog"]) == ""
    assert suggestion("1", [1, 2]) == " (there is 1 of type int, not str: convert one of them)"
    assert suggestion("x", range(200_000)) == ""


def test_columns_keep_their_own_names():
    places = Places({"task": "HITId", "label": "label"})
    assert places.column("task") == "task ('HITId')"
    assert places.column("label") == "label"
    assert places.where(np.array([False, True])) == "row 2"
