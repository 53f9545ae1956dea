"""Rao-Kupper: closed form of two items, Bradley-Terry as the limit, gradient."""

from __future__ import annotations

import numpy as np
import pytest
from tests.kinds.pairs.finite_differences import assert_gradient, random_votes
from tests.kinds.pairs.methods.test_davidson import two_items

from wisecrowd.kinds.pairs.methods.bradley_terry import BradleyTerry
from wisecrowd.kinds.pairs.methods.rao_kupper import RaoKupper, RaoKupperLaw
from wisecrowd.simulate import votes


@pytest.mark.parametrize(("left", "right", "tie"), [(3, 1, 2), (10, 30, 5), (7, 7, 50)])
def test_two_items(left, right, tie):
    pairs = two_items(1e6 * left, 1e6 * right, 1e6 * tie)  # the weak prior of ε vanishes
    fit = RaoKupper(prior=0, tol=1e-12).fit(pairs)
    total = left + right + tie
    first, second = (np.log(x / (total - x)) for x in (left, right))
    assert fit.scores_[0] - fit.scores_[1] == pytest.approx((first - second) / 2, abs=1e-5)
    assert fit.tie_threshold_level_ == pytest.approx(-(first + second) / 2, rel=1e-5)


def test_probabilities_sum_to_one():
    x = np.linspace(-30, 30, 61)
    for threshold in (1e-6, 0.5, 20.0):
        assert np.allclose(np.exp(RaoKupperLaw(0.5).outcome_logs(x, threshold)).sum(axis=1), 1)


def test_without_ties_it_is_bradley_terry():
    pairs = votes(8, 10, 800, random_state=0).pairs
    fit = RaoKupper(tol=1e-9).fit(pairs)
    assert fit.tie_threshold_level_ < 0.01
    assert np.allclose(fit.scores_, BradleyTerry().fit(pairs).scores_, atol=1e-2)


def test_gradient():
    for g in (1, 2):
        assert_gradient(RaoKupperLaw(0.5), random_votes(), g, 0)
