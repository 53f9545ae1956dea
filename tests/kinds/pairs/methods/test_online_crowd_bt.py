from __future__ import annotations

import numpy as np
import pytest
from tests.kinds.pairs.timed_votes import one_vote, timed

from wisecrowd.aggregation import OnlineCrowdBT
from wisecrowd.kinds.pairs import kernels
from wisecrowd.simulate import VoteWorkers, votes


def test_online_crowd_bt_by_hand():
    """One vote of a new worker: q = 10 / 11, and the Beta matches two moments by quadrature."""
    fit = OnlineCrowdBT().fit(one_vote())
    assert np.allclose(fit.scores_, [10 / 11 - 0.5, 0.5 - 10 / 11])
    # At equal scores the vote says nothing about the worker.
    assert fit.reliability_[0] == pytest.approx(10 / 11)


def test_worker_moments_by_quadrature():
    mean, variance = np.array([1.0, 0.0]), np.array([1e-9, 1e-9])
    alpha, beta = np.array([3.0]), np.array([2.0])
    zero, one = np.zeros(1, np.int64), np.ones(1, np.int64)
    rows = kernels.TimedVotes(zero, one, zero, np.array([0.0]), np.ones(1))
    kernels.crowd_pass(rows, zero, 1e-4, mean, variance, alpha, beta)
    eta = (np.arange(200000) + 0.5) / 200000
    p = 1 / (1 + np.exp(-1.0))
    weight = eta**2 * (1 - eta) * (eta * (1 - p) + (1 - eta) * p)
    weight /= weight.sum()
    expected = weight @ eta
    spread = weight @ (eta - expected) ** 2
    n = alpha[0] + beta[0]
    assert alpha[0] / n == pytest.approx(expected, abs=1e-6)
    assert alpha[0] * beta[0] / (n**2 * (n + 1)) == pytest.approx(spread, abs=1e-6)


def test_adversaries_are_recognised():
    made = votes(15, 10, 4000, VoteWorkers(adversaries=0.2), random_state=2)
    fit = OnlineCrowdBT(alpha=2.0, beta=1.0).fit(timed(made.pairs))
    assert fit.reliability_[made.is_adversary].max() < fit.reliability_[~made.is_adversary].min()
    assert fit.score(made.pairs, made.truth) > 0.8
