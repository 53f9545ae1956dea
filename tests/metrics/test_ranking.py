"""All ways to break the ties, and scikit-learn, as oracles."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import sklearn.metrics

from wisecrowd import metrics
from wisecrowd.core.exceptions import DataError


def mean_over_tie_breaks(metric, truth: np.ndarray, scores: np.ndarray) -> float:
    """Mean of a scikit-learn metric over the equally likely choices of the k called positive."""
    k, values = int(truth.sum()), []
    for chosen in itertools.combinations(range(truth.size), k):
        inside = np.isin(np.arange(truth.size), chosen)
        if scores[inside].min() >= scores[~inside].max(initial=-np.inf):
            values.append(metric(truth, inside.astype(int)))
    return float(np.mean(values))


@pytest.mark.parametrize("seed", range(6))
def test_agrees_with_all_tie_breaks(seed):
    rng = np.random.default_rng(seed)
    truth = (rng.random(10) < 0.35).astype(int)
    truth[0] = 1
    scores = rng.integers(0, 4, size=10) / 4 + 0.2 * truth  # coarse, hence many ties
    assert metrics.top_k_f1(truth, scores) == pytest.approx(
        mean_over_tie_breaks(sklearn.metrics.f1_score, truth, scores)
    )
    assert metrics.top_k_accuracy(truth, scores) == pytest.approx(
        mean_over_tie_breaks(sklearn.metrics.accuracy_score, truth, scores)
    )


def test_all_positive_and_perfect_ranking():
    assert metrics.top_k_f1([1, 1], [0.3, 0.3]) == 1.0
    assert metrics.top_k_accuracy([True, False, False], [3.0, -1.0, 2.0]) == 1.0
    assert metrics.top_k_accuracy([True, False, False, False], [0.0, 1.0, 0.0, 0.0]) == 0.5


def test_constant_scores_are_chance():
    assert metrics.top_k_f1([1, 0, 0, 0], [0.5] * 4) == pytest.approx(0.25)


@pytest.mark.parametrize("metric", [metrics.top_k_accuracy, metrics.top_k_f1])
@pytest.mark.parametrize(
    ("truth", "scores", "message"),
    [
        ([0, 0], [0.1, 0.2], "no positive"),
        ([0, 2], [0.1, 0.2], "outside 0..1"),
        ([0, 1], [0.1, np.nan], "not finite at position 1"),
        ([0, 1], ["a", "b"], "must be numbers"),
        ([0, 1], [0.1], "2 values for 1 rows"),
        ([], [], "empty"),
    ],
)
def test_bad_input_is_named(metric, truth, scores, message):
    with pytest.raises(DataError, match=message):
        metric(truth, scores)
