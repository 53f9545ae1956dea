"""Forecasts of votes: against simulated crowds whose tasks differ in difficulty."""

from __future__ import annotations

import numpy as np
import pytest

from wisecrowd.truth.vote_forecast import (
    beta_of,
    counted,
    forecast,
    vote_accuracy,
    votes_that_change,
)


def labels_of(p, size, n_classes, rng):
    """Return counts by class of labels; class 0 is right with probability p."""
    wrong = np.repeat(((1 - p) / (n_classes - 1))[:, None], n_classes - 1, axis=1)
    return rng.multinomial(size, np.column_stack([p, wrong]))


def right_votes(counts):
    best = counts == counts.max(axis=1, keepdims=True)
    return (best[:, 0] / best.sum(axis=1)).mean()


@pytest.mark.parametrize("n_classes", [2, 4])
def test_accuracy_of_a_vote_is_that_of_simulated_votes(n_classes):
    rng = np.random.default_rng(1)
    p = rng.beta(2, 1, 100_000)
    found = vote_accuracy(2, 1, 1e4, n_classes, [1, 3, 6])
    expected = [right_votes(labels_of(p, size, n_classes, rng)) for size in (1, 3, 6)]
    np.testing.assert_allclose(found, expected, atol=0.015)


def test_a_pilot_of_three_labels_tells_votes_of_nine():
    rng = np.random.default_rng(2)
    p = rng.beta(1.5, 1, 200)
    truth = np.zeros(200, dtype=np.int64)
    pilot = labels_of(p, 3, 2, rng)
    value, low, high = forecast(pilot, truth, [9], np.ones(200))
    actual = np.mean([right_votes(labels_of(p, 9, 2, rng)) for _ in range(50)])
    independent = vote_accuracy(1e6 * p.mean(), 1e6 * (1 - p.mean()), 1, 2, [9])[0]
    assert value[0] == pytest.approx(actual, abs=0.06)
    assert independent > actual + 0.07
    assert low[0] < actual < high[0]


def test_weights_count_as_tasks():
    right, n = np.array([3.0, 1.0]), np.array([3.0, 3.0])
    weighted = beta_of(counted(right, n, np.array([40.0, 20.0])))
    repeated = beta_of(counted(np.repeat(right, [40, 20]), np.full(60, 3.0), np.ones(60)))
    np.testing.assert_allclose(weighted, repeated)


def test_votes_change_more_where_workers_disagree():
    rng = np.random.default_rng(3)
    noisy = labels_of(np.full(500, 0.6), 3, 2, rng)
    clear = labels_of(np.full(500, 0.97), 3, 2, rng)
    assert votes_that_change(noisy, [9])[0] > 4 * votes_that_change(clear, [9])[0]
    assert votes_that_change(noisy, [3]).tolist() == [0.0]


def test_wrong_labels_that_agree_spoil_votes():
    rng = np.random.default_rng(4)
    p, truth = rng.beta(2, 2, 300), np.zeros(300, dtype=np.int64)
    spread = labels_of(p, 4, 4, rng)
    agreeing = np.zeros_like(spread)
    agreeing[:, :2] = rng.binomial(4, p)[:, None]
    agreeing[:, 1] = 4 - agreeing[:, 0]
    good, bad = (forecast(one, truth, [9], np.ones(300))[0][0] for one in (spread, agreeing))
    assert good > bad + 0.1
