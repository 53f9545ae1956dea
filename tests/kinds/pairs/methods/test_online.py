"""Elo, WengLin and OnlineCrowdBT: single updates by hand, order of time, compiled kernels."""

from __future__ import annotations

import numpy as np
import pytest
from tests.kinds.pairs.timed_votes import one_vote, timed

from wisecrowd.core.exceptions import DataError, ParameterError
from wisecrowd.kinds.pairs import kernels as reference
from wisecrowd.kinds.pairs import kernels_fast
from wisecrowd.kinds.pairs.container import CrowdPairs
from wisecrowd.kinds.pairs.methods.elo import Elo
from wisecrowd.kinds.pairs.methods.online_crowd_bt import OnlineCrowdBT
from wisecrowd.kinds.pairs.methods.weng_lin import WengLin
from wisecrowd.simulate import votes

METHODS = (Elo, WengLin, OnlineCrowdBT)


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
    for kernels in (reference, kernels_fast):
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
