"""Thurstone: two items in closed form, gradient, far tails."""

from __future__ import annotations

from statistics import NormalDist

import numpy as np
import pytest
from tests.kinds.pairs.finite_differences import assert_gradient, random_votes

from wisecrowd.kinds.pairs.container import CrowdPairs
from wisecrowd.kinds.pairs.methods.thurstone import Thurstone, ThurstoneLaw, log_phi


@pytest.mark.parametrize(("wins", "losses"), [(3, 1), (10, 30), (1, 99)])
def test_two_items(wins, losses):
    pairs = CrowdPairs.from_arrays(
        None, None, ["x"] * 2, ["y"] * 2, ["left", "right"], weight=[wins, losses]
    )
    fit = Thurstone(prior=0, tol=1e-12).fit(pairs)
    expected = np.sqrt(2) * NormalDist().inv_cdf(wins / (wins + losses))
    assert fit.scores_[0] - fit.scores_[1] == pytest.approx(expected, abs=1e-6)


def test_far_tails_are_finite():
    value, slope = log_phi(np.array([-40.0, -6.0, 0.0, 6.0, 40.0]))
    assert np.isfinite(value).all()
    assert np.isfinite(slope).all()
    assert slope[0] == pytest.approx(40.025, abs=1e-3)  # ρ(x) → -x + 1 / -x


def test_gradient_and_curvature():
    assert_gradient(ThurstoneLaw(0.5), random_votes(), 0, 0)
    law, s, step = ThurstoneLaw(0.7), np.array([-1.0, 0.3, 2.0]), 1e-6
    numeric = (law.item_prior(s - step)[1] - law.item_prior(s + step)[1]) / (2 * step)
    assert np.allclose(law.item_prior(s)[2], numeric, atol=1e-6)


def test_population_shares_return_the_scores():
    true = np.array([1.0, 0.2, -0.4, -0.8])
    left, right = np.triu_indices(4, 1)
    share = np.exp(log_phi((true[left] - true[right]) / np.sqrt(2))[0])
    pairs = CrowdPairs.from_arrays(
        None, None, np.tile(left, 2), np.tile(right, 2), ["left"] * 6 + ["right"] * 6,
        weight=1e6 * np.concatenate([share, 1 - share]),
    )  # fmt: skip
    assert np.allclose(Thurstone(prior=0, tol=1e-12).fit(pairs).scores_, true, atol=1e-5)
