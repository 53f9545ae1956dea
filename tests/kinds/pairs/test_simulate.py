"""Simulated votes have the shares that they were drawn from."""

from __future__ import annotations

import numpy as np
import pytest

from wisecrowd.core.exceptions import ParameterError
from wisecrowd.simulate import VoteWorkers, votes


def test_shares_of_bradley_terry():
    made = votes(2, 5, 40000, scores=[0.5, -0.5], random_state=0)
    first = np.where(made.pairs.left == 0, made.pairs.outcome == 0, made.pairs.outcome == 1)
    assert first.mean() == pytest.approx(1 / (1 + np.exp(-1)), abs=0.01)
    assert not (made.pairs.outcome == 2).any()
    assert made.truth == {0: 0.5, 1: -0.5}


def test_ties_sides_and_flips():
    people = VoteWorkers(tie_level=0.0, side=1.0)
    made = votes(2, 5, 40000, people, scores=[0, 0], random_state=1)
    weights = np.exp([0.5, -0.5, 0.0])
    shares = np.bincount(made.pairs.outcome, minlength=3) / 40000
    assert np.allclose(shares, weights / weights.sum(), atol=0.01)
    flipped = votes(2, 5, 40000, VoteWorkers(flips=0.5), scores=[2, -2], random_state=2).pairs
    first = np.where(flipped.left == 0, flipped.outcome == 0, flipped.outcome == 1)
    assert first.mean() == pytest.approx(0.5, abs=0.01)


def test_adversaries_and_groups():
    made = votes(6, 40, 4000, VoteWorkers(adversaries=0.25, groups=2), random_state=3)
    assert made.is_adversary.sum() == 10
    assert set(made.group.tolist()) == {0, 1}
    same = votes(6, 40, 4000, VoteWorkers(adversaries=0.25, groups=2), random_state=3)
    assert np.array_equal(made.pairs.outcome, same.pairs.outcome)


def test_tastes_make_workers_agree_with_themselves():
    made = votes(2, 200, 8000, VoteWorkers(taste=3.0), scores=[0, 0], random_state=4).pairs
    first = np.where(made.left == 0, made.outcome == 0, made.outcome == 1).astype(float)
    share = np.bincount(made.worker, first, 200) / np.bincount(made.worker, minlength=200)
    assert share.std() > 0.3


@pytest.mark.parametrize(
    "options", [{"adversaries": 1.5}, {"taste": -1}, {"groups": 0}, {"tie_level": "x"}]
)
def test_bad_populations_are_refused(options):
    with pytest.raises(ParameterError):
        VoteWorkers(**options)


def test_bad_sizes_are_refused():
    with pytest.raises(ParameterError):
        votes(1, 2, 3)
    with pytest.raises(ParameterError, match="scores"):
        votes(3, 2, 3, scores=[1.0])
