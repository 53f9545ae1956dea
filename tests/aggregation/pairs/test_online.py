"""Elo, WengLin and OnlineCrowdBT: single updates by hand, order of time, compiled kernels."""

from __future__ import annotations

import numpy as np
import pytest

from wisecrowd.aggregation.pairs.elo import Elo
from wisecrowd.aggregation.pairs.online_crowd_bt import OnlineCrowdBT
from wisecrowd.aggregation.pairs.weng_lin import WengLin
from wisecrowd.core.exceptions import DataError, ParameterError
from wisecrowd.core.pairs import CrowdPairs
from wisecrowd.kernels.online_ratings import fast, reference
from wisecrowd.simulate import VoteWorkers, votes

METHODS = (Elo, WengLin, OnlineCrowdBT)


def one_vote(outcome="left"):
    return CrowdPairs.from_arrays(None, None, ["x"], ["y"], [outcome], timestamp=[1.0])


def timed(pairs, seed=0):
    from dataclasses import replace

    times = np.random.default_rng(seed).permutation(pairs.n_annotations).astype(float)
    return replace(pairs, columns={"timestamp": times})


def test_elo_moves_half_of_the_step_after_one_vote():
    fit = Elo(step=32).fit(one_vote())
    points = 400 / np.log(10) * fit.scores_
    assert np.allclose(points, [16, -16])
    assert np.allclose(Elo(step=32).fit(one_vote("tie")).scores_, 0)


def test_weng_lin_by_hand():
    v, noise = (25 / 3) ** 2, 2 * (25 / 6) ** 2
    c = np.sqrt(2 * v + noise)
    fit = WengLin().fit(one_vote())
    assert np.allclose(fit.scores_ * np.sqrt(noise), [v / c * 0.5, -v / c * 0.5])


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
    rows = reference.TimedVotes(zero, one, zero, np.array([0.0]), np.ones(1))
    reference.crowd_pass(rows, zero, 1e-4, mean, variance, alpha, beta)
    eta = (np.arange(200000) + 0.5) / 200000
    p = 1 / (1 + np.exp(-1.0))
    weight = eta**2 * (1 - eta) * (eta * (1 - p) + (1 - eta) * p)
    weight /= weight.sum()
    expected = weight @ eta
    spread = weight @ (eta - expected) ** 2
    n = alpha[0] + beta[0]
    assert alpha[0] / n == pytest.approx(expected, abs=1e-6)
    assert alpha[0] * beta[0] / (n**2 * (n + 1)) == pytest.approx(spread, abs=1e-6)


@pytest.mark.parametrize("method", METHODS)
def test_time_decides_and_the_spread_over_orders_is_reported(method):
    pairs = votes(6, 5, 300, random_state=1).pairs
    first, second = method().fit(timed(pairs, 0)), method().fit(timed(pairs, 1))
    assert not np.allclose(first.scores_, second.scores_)
    assert (first.order_spread_ > 0).all()
    assert (first.high_ - first.low_ > 2 * 1.96 * first.order_spread_).all()
    moved = np.abs(first.scores_ - second.scores_).mean()
    assert moved < 6 * first.order_spread_.mean()


@pytest.mark.parametrize("method", METHODS)
def test_without_times_votes_are_refused(method):
    with pytest.raises(DataError, match="timestamp"):
        method().fit((["x"], ["y"], ["left"]))
    gap = CrowdPairs.from_arrays(
        None, None, ["x", "x"], ["y", "z"], ["left"] * 2, timestamp=[1.0, None]
    )
    with pytest.raises(DataError, match="1 votes have no timestamp"):
        method().fit(gap)


def test_adversaries_are_recognised():
    made = votes(15, 10, 4000, VoteWorkers(adversaries=0.2), random_state=2)
    fit = OnlineCrowdBT(alpha=2.0, beta=1.0).fit(timed(made.pairs))
    assert fit.reliability_[made.is_adversary].max() < fit.reliability_[~made.is_adversary].min()
    assert fit.score(made.pairs, made.truth) > 0.8


@pytest.mark.parametrize("name", ["elo_pass", "weng_lin_pass", "crowd_pass"])
def test_compiled_passes_agree_with_the_specification(name):
    rng = np.random.default_rng(3)
    n = 400
    left = rng.integers(0, 6, n)
    rows = reference.TimedVotes(
        left, (left + rng.integers(1, 6, n)) % 6, rng.integers(0, 4, n),
        rng.choice([0.0, 0.5, 1.0], n), rng.uniform(0, 2, n),
    )  # fmt: skip
    order, results = rng.permutation(n), []
    for kernels in (reference, fast):
        state = {
            "elo_pass": (np.zeros(6),),
            "weng_lin_pass": (np.full(6, 25.0), np.full(6, 69.0)),
            "crowd_pass": (np.zeros(6), np.ones(6), np.full(4, 10.0), np.ones(4)),
        }[name]
        numbers = {"elo_pass": (0.1,), "weng_lin_pass": (34.7, 1e-4), "crowd_pass": (1e-4,)}[name]
        getattr(kernels, name)(rows, order, *numbers, *state)
        results.append(state)
    for one, two in zip(*results, strict=True):
        np.testing.assert_allclose(one, two, rtol=1e-9)


@pytest.mark.parametrize(
    "method", [Elo(step=0), WengLin(noise=0), WengLin(spread="x"), OnlineCrowdBT(alpha=-1)]
)
def test_bad_parameters_are_refused(method):
    with pytest.raises(ParameterError):
        method.fit(one_vote())
