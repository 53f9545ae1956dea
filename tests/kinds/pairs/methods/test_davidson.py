"""Davidson: closed form of two items, Bradley-Terry as the limit, gradient, its own simulator."""

from __future__ import annotations

import numpy as np
import pytest
from tests.kinds.pairs.finite_differences import assert_gradient, random_votes

from wisecrowd.kinds.pairs.container import CrowdPairs
from wisecrowd.kinds.pairs.methods.bradley_terry import BradleyTerry
from wisecrowd.kinds.pairs.methods.davidson import Davidson, DavidsonLaw
from wisecrowd.simulate import VoteWorkers, votes


def two_items(left, right, tie):
    return CrowdPairs.from_arrays(
        None, None, ["x"] * 3, ["y"] * 3, ["left", "right", "tie"], weight=[left, right, tie]
    )


@pytest.mark.parametrize(("left", "right", "tie"), [(3, 1, 2), (10, 30, 5), (7, 7, 50)])
def test_two_items(left, right, tie):
    pairs = two_items(1e6 * left, 1e6 * right, 1e6 * tie)  # the weak prior of θ vanishes
    fit = Davidson(prior=0, tol=1e-12).fit(pairs)
    assert fit.scores_[0] - fit.scores_[1] == pytest.approx(np.log(left / right), abs=1e-5)
    assert np.exp(fit.tie_level_) == pytest.approx(tie / np.sqrt(left * right), rel=1e-5)
    shares = np.array([left, right, tie]) / (left + right + tie)
    assert np.allclose(fit.predict_proba(pairs)[0], shares, atol=1e-5)


def test_without_ties_it_is_bradley_terry():
    pairs = votes(8, 10, 800, random_state=0).pairs
    davidson = Davidson(tol=1e-9).fit(pairs)
    plain = BradleyTerry().fit(pairs)
    assert davidson.tie_level_ < -5
    assert np.allclose(davidson.scores_, plain.scores_, atol=1e-2)


def test_ranks_like_half_won_ties_but_on_another_scale():
    pairs = votes(10, 10, 4000, VoteWorkers(tie_level=0.5), random_state=1).pairs
    davidson, half = Davidson().fit(pairs), BradleyTerry().fit(pairs)
    assert np.corrcoef(davidson.scores_, half.scores_)[0, 1] > 0.999
    assert np.polyfit(half.scores_, davidson.scores_, 1)[0] > 1.3


def test_recovers_scores_level_and_side():
    people = VoteWorkers(tie_level=-0.3, side=0.4)
    made = votes(8, 40, 12000, people, random_state=2)
    fit = Davidson(side=True).fit(made.pairs)
    assert fit.tie_level_ == pytest.approx(-0.3, abs=0.06)
    assert abs(fit.side_bias_ - 0.4) < 4 * fit.side_bias_error_ < 0.2
    assert np.abs(fit.scores_ - made.scores).max() < 0.2


def test_gradient():
    for g in (1, 2):
        assert_gradient(DavidsonLaw(0.5), random_votes(), g, 0)
