"""CrowdRankings: forms of rankings, their checks, and their pairs."""

from __future__ import annotations

import numpy as np
import pytest

from wisecrowd.core.exceptions import DataError, ParameterError
from wisecrowd.kinds.rankings.container import CrowdRankings


@pytest.mark.parametrize(
    "column",
    [
        ["x > y > z", "z>x"], ["x|y|z", "z | x"], ['["x", "y", "z"]', '["z", "x"]'],
        [["x", "y", "z"], ["z", "x"]], [("x", "y", "z"), np.array(["z", "x"])],
    ],
)  # fmt: skip
def test_forms_of_a_ranking(column):
    data = CrowdRankings.from_arrays([1, 2], ["ann", "bob"], column)
    assert data.items.tolist() == ["x", "y", "z"]
    assert data.ranking.tolist() == [0, 1, 2, 2, 0]
    assert data.pointer.tolist() == [0, 3, 5]
    assert data.lengths.tolist() == [3, 2]
    assert data.comparisons_per_item.tolist() == [2, 1, 2]


def test_integer_items():
    data = CrowdRankings.from_arrays(None, None, [[10, 2], [2, 10]])
    assert data.items.tolist() == [2, 10]
    assert data.tasks.tolist() == ["10 | 2"]


def test_long_rows():
    data = CrowdRankings.from_long(["t"] * 3, ["a"] * 3, ["x", "y", "z"], [3, 1, 2])
    assert data.ranking.tolist() == [1, 2, 0]
    with pytest.raises(DataError, match="the rank 1, in rows 1 and 2"):
        CrowdRankings.from_long(["t"] * 2, ["a"] * 2, ["x", "y"], [1, 1])
    with pytest.raises(DataError, match="missing in row 2"):
        CrowdRankings.from_long(["t"] * 2, ["a"] * 2, ["x", "y"], [1, None])


@pytest.mark.parametrize(
    ("column", "message"),
    [
        (["x > y", "y > x > y"], "'y' is twice in the ranking in row 2"),
        (["x > y", "x"], "in row 2 has 1 items"),
        (["x > y", None], "in row 2 has no items"),
        (["x > > y"], "empty place"),
        (["[1, 2"], "not a JSON list"),
        ([7], "neither a list nor text"),
        ([["x", None]], "empty item in row 1"),
        (["x > y", "x = y > z"], r"'x = y > z' in row 2 has a tie or two directions.*type='pairs'"),
        (["x > y", "x=y > z"], "in row 2 has a tie"),
        (["x >= y > z"], "in row 1 has a tie"),
        (["x > y", "z > x, y"], "in row 2 has a tie"),
        (["x > y < z"], "two directions"),
        ([["x", "y"], [["x", "y"], "z"]], "in row 2 has a tie"),
        (['[["x", "y"], "z"]'], "in row 1 has a tie"),
        (["[" * 100_000], "not a JSON list"),
    ],
)
def test_bad_rankings_are_refused(column, message):
    with pytest.raises(DataError, match=message):
        CrowdRankings.from_arrays(None, None, column)


def test_signs_may_belong_to_names():
    names = ["lr=0.1 > lr=1", "Smith, J. > lr=1"]
    data = CrowdRankings.from_arrays(None, None, names)
    assert data.items.tolist() == ["Smith, J.", "lr=0.1", "lr=1"]
    again = CrowdRankings.from_arrays(None, None, data.to_dict()["ranking"])
    assert again.items.tolist() == data.items.tolist()
    for texts, options in ((['["x = y", "z"]'], {}), (["x = y > z"], {"items": ["x = y", "z"]})):
        data = CrowdRankings.from_arrays(None, None, texts, **options)
        assert data.items.tolist() == ["x = y", "z"]
        again = CrowdRankings.from_arrays(None, None, data.to_dict()["ranking"])
        assert again.items.tolist() == ["x = y", "z"]


def test_missing_column_and_undeclared_items():
    with pytest.raises(ParameterError, match="ranking"):
        CrowdRankings.from_arrays([1], ["a"])
    with pytest.raises(DataError, match="'y' is not among the declared items"):
        CrowdRankings.from_arrays(None, None, ["x > y"], items=["x", "z"])
    with pytest.raises(DataError, match="no data rows"):
        CrowdRankings.from_arrays(None, None, [])


def test_pairs_of_rankings():
    data = CrowdRankings.from_arrays(["t", "u"], ["a", "b"], ["x > y > z", "z > x"], weight=[1, 2])
    pairs = data.to_pairs()
    won = [(pairs.items[a], pairs.items[b]) for a, b in zip(pairs.left, pairs.right, strict=True)]
    assert won == [("x", "y"), ("x", "z"), ("y", "z"), ("z", "x")]
    assert pairs.weights.tolist() == [1, 1, 1, 2]
    assert pairs.task.tolist() == [0, 0, 0, 1]
    assert (pairs.outcome == 0).all()


def test_tables_round_trip_and_selection():
    data = CrowdRankings.from_arrays([1, 2, 3], list("aba"), ["x > y", "y > z > x", "z > y"])
    again = CrowdRankings.from_frame(data.to_frame("pyarrow"))
    assert np.array_equal(data.ranking, again.ranking)
    assert data[[1]].ranking.tolist() == [1, 2, 0]
    odd = CrowdRankings.from_arrays(None, None, [["a>b", "c"], ["c", "a>b"]])
    again = CrowdRankings.from_frame(odd.to_frame("pyarrow"))
    assert again.items.tolist() == ["a>b", "c"]
