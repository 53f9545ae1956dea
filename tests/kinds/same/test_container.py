"""CrowdSame: spellings of answers, pairs of an item with itself, scores of clusters."""

from __future__ import annotations

import numpy as np
import pytest

from wisecrowd.core.exceptions import DataError
from wisecrowd.core.kinds import kind_of
from wisecrowd.kinds.pairs.container import CrowdPairs
from wisecrowd.kinds.same.answers import known_clusters
from wisecrowd.kinds.same.container import CrowdSame
from wisecrowd.kinds.same.scorer import adjusted_rand_index, matched_accuracy


@pytest.mark.parametrize(
    "answers", [["same", "Different"], ["yes", "no"], [1, 0], [True, False], ["TRUE", "false"]]
)
def test_spellings_of_answers(answers):
    votes = CrowdSame.from_arrays(None, ["u", "u"], ["x", "y"], ["y", "z"], answers)
    assert votes.outcome.tolist() == [1, 0]
    assert votes.to_dict()["outcome"].tolist() == ["same", "different"]
    assert kind_of(votes).name == "same"


def test_bad_answers_are_refused_with_their_place():
    with pytest.raises(DataError, match=r"'maybe'.* in row 2, which is neither same nor different"):
        CrowdSame.from_arrays(None, None, ["x", "y"], ["y", "z"], ["same", "maybe"])
    with pytest.raises(DataError, match="empty in row 1"):
        CrowdSame.from_arrays(None, None, ["x"], ["y"], [None])
    with pytest.raises(DataError, match=r"Item 'y' is compared with itself in row 2"):
        CrowdSame.from_arrays(None, None, ["x", "y"], ["y", "y"], [1, 1])
    with pytest.raises(DataError, match="no column with the answers"):
        CrowdSame.from_arrays(None, None, ["x"], ["y"])


def test_preferences_and_sameness_do_not_mix():
    votes = CrowdPairs.from_arrays(None, None, ["x"], ["y"], ["left"])
    with pytest.raises(DataError, match="CrowdSame are needed"):
        CrowdSame.coerce(votes)
    same = CrowdSame.from_arrays(None, None, ["x"], ["y"], ["same"])
    with pytest.raises(DataError, match="preferences"):
        CrowdPairs.coerce(same)


def test_scores_ignore_the_names_of_clusters():
    truth, found = np.array([0, 0, 1, 1, 2, 2]), np.array([2, 2, 0, 0, 1, 0])
    assert matched_accuracy(truth, found) == pytest.approx(5 / 6)
    # By counting: 2 pairs together in both, 3 in the truth, 4 in the found ones, 15 in all.
    assert adjusted_rand_index(truth, found) == pytest.approx((2 - 0.8) / (3.5 - 0.8))
    assert adjusted_rand_index(truth, truth) == 1.0
    with pytest.raises(DataError, match="fewer than two"):
        known_clusters({"x": 1}, np.array(["x", "y"], dtype=object))
