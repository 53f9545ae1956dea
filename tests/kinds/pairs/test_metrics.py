"""Metrics of rankings against enumeration."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from wisecrowd import metrics
from wisecrowd.core.exceptions import DataError


def test_pair_accuracy_by_enumeration():
    rng = np.random.default_rng(0)
    truth, scores = rng.integers(0, 4, 12).astype(float), rng.integers(0, 6, 12).astype(float)
    right, total = 0.0, 0
    for a, b in combinations(range(12), 2):
        if truth[a] != truth[b]:
            total += 1
            sign = (truth[a] - truth[b]) * (scores[a] - scores[b])
            right += 1.0 if sign > 0 else 0.5 if sign == 0 else 0.0
    assert metrics.pair_accuracy(truth, scores) == pytest.approx(right / total)


def test_blocks_of_pairs_add_up(monkeypatch):
    from wisecrowd.kinds.pairs import metrics as ranking

    rng = np.random.default_rng(1)
    truth, scores = rng.normal(size=30), rng.normal(size=30)
    whole = metrics.pair_accuracy(truth, scores)
    monkeypatch.setattr(ranking, "BLOCK", 70)
    assert metrics.pair_accuracy(truth, scores) == pytest.approx(whole)


def test_kendall_tau_without_ties_is_twice_the_pair_accuracy_less_one():
    rng = np.random.default_rng(2)
    truth, scores = rng.normal(size=20), rng.normal(size=20)
    expected = 2 * metrics.pair_accuracy(truth, scores) - 1
    assert metrics.kendall_tau(truth, scores) == pytest.approx(expected)
    gaps = truth.copy()
    gaps[0] = np.nan
    assert metrics.kendall_tau(gaps, scores) == pytest.approx(
        metrics.kendall_tau(truth[1:], scores[1:])
    )


def test_vote_metrics():
    probas = [[0.5, 0.3, 0.2], [0.1, 0.2, 0.7]]
    assert metrics.vote_log_loss([0, 1], probas) == pytest.approx(-(np.log(0.5) + np.log(0.2)) / 2)
    assert metrics.vote_accuracy([0, 1], probas) == 0.5
    assert metrics.vote_log_loss([0, 1], probas, [1, 0]) == pytest.approx(-np.log(0.5))
    assert np.isfinite(metrics.vote_log_loss([2], [[0.5, 0.5, 0.0]]))


@pytest.mark.parametrize(
    "job",
    [
        lambda: metrics.kendall_tau([1, 2], [1]),
        lambda: metrics.kendall_tau([1, np.nan], [1, 2]),
        lambda: metrics.pair_accuracy([1, 1], [1, 2]),
        lambda: metrics.vote_log_loss([0], [[0.5, 0.5]]),
        lambda: metrics.vote_log_loss([3], [[0.5, 0.3, 0.2]]),
    ],
)
def test_bad_input_is_refused(job):
    with pytest.raises(DataError):
        job()
