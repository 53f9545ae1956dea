"""Outcomes of comparisons: words, numbers, winning items, and what is refused."""

from __future__ import annotations

import pytest

from wisecrowd.core.exceptions import DataError
from wisecrowd.kinds.pairs.container import CrowdPairs


def outcomes(values, left=("x", "x", "y"), right=("y", "z", "z")):
    task = list(range(len(values)))
    return CrowdPairs.from_arrays(task, None, list(left), list(right), values).outcome.tolist()


@pytest.mark.parametrize(
    "values",
    [
        ["left", "right", "tie"], ["L", "r", "Draw"], ["a", "b", "tie (bothbad)"],
        ["model_a", "Model B", "both-good"], [0, 1, 2], ["0", "1", "2"], [0.0, 1.0, 2.0],
        ["x", "z", "tie"], ["first", "second", "equal"],
    ],
)  # fmt: skip
def test_accepted_spellings(values):
    assert outcomes(values) == [0, 1, 2]


def test_integer_items_by_their_ids():
    assert outcomes(["10", "12", "tie"], (10, 10, 11), (11, 12, 12)) == [0, 1, 2]


def test_unknown_outcomes_are_listed_with_their_rows():
    with pytest.raises(DataError, match=r"'maybe'.* in row 2"):
        outcomes(["left", "maybe", "tie"])


def test_the_winner_must_be_one_of_the_two_items():
    with pytest.raises(DataError, match=r"'z' in row 1"):
        outcomes(["z", "z", "y"])


def test_a_mixture_is_refused():
    with pytest.raises(DataError, match="another way to name the winner"):
        outcomes(["left", "1", "tie"])


def test_ids_of_items_that_are_also_codes_are_ambiguous():
    with pytest.raises(DataError, match="can be read in two ways"):
        CrowdPairs.from_arrays(None, None, [1, 0], [0, 1], [1, 1])


def test_ids_that_agree_with_the_codes_are_fine():
    pairs = CrowdPairs.from_arrays([0, 1], None, [0, 0], [1, 1], [0, 1])
    assert pairs.outcome.tolist() == [0, 1]


def test_a_missing_outcome_is_an_error_with_its_row():
    with pytest.raises(DataError, match="empty in row 3"):
        outcomes(["left", "right", None])


def test_ties_alone_are_ties():
    assert outcomes(["tie", "draw", "same"]) == [2, 2, 2]
