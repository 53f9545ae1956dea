"""Brute force over permutations, plain loops and SciPy as oracles."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import scipy.stats

from wisecrowd import metrics
from wisecrowd.core.exceptions import DataError, ParameterError


@pytest.fixture
def pair() -> tuple[np.ndarray, np.ndarray]:
    """Truth and a noisy, shuffled estimate: 5 workers, 4 classes, asymmetric rows."""
    rng = np.random.default_rng(11)
    truth = rng.dirichlet([4.0, 1.0, 0.5, 0.2], size=(5, 4))
    noise = rng.dirichlet(np.ones(4), size=(5, 4))
    return (0.7 * truth + 0.3 * noise)[:, [2, 0, 3, 1]], truth


def test_confusion_errors_agree_with_plain_loops(pair):
    estimate, truth = pair
    squared = sum(np.linalg.norm(a - b, "fro") ** 2 for a, b in zip(estimate, truth, strict=True))
    assert metrics.confusion_error(estimate, truth) == pytest.approx(squared / (5 * 4))
    variation = [
        0.5 * np.abs(estimate[j, k] - truth[j, k]).sum() for j in range(5) for k in range(4)
    ]
    assert metrics.confusion_total_variation(estimate, truth) == pytest.approx(np.mean(variation))


@pytest.mark.parametrize("metric", [metrics.confusion_error, metrics.confusion_total_variation])
@pytest.mark.parametrize("seed", range(5))
def test_permuted_error_is_the_minimum_over_all_permutations(metric, seed):
    rng = np.random.default_rng(seed)
    estimate, truth = rng.dirichlet(np.ones(4), size=(2, 3, 4))
    best = min(metric(estimate[:, list(p)], truth) for p in itertools.permutations(range(4)))
    assert metric(estimate, truth, permute=True) == pytest.approx(best, abs=1e-14)


def test_match_classes_finds_the_planted_renaming(pair):
    estimate, truth = pair
    for distance in ("squared", "total_variation"):
        permutation = metrics.match_classes(estimate, truth, distance=distance)
        assert permutation.tolist() == [1, 3, 0, 2]  # the inverse of [2, 0, 3, 1]
    aligned = metrics.confusion_error(estimate[:, permutation], truth)
    assert metrics.confusion_error(estimate, truth, permute=True) == aligned
    assert aligned < metrics.confusion_error(estimate, truth)


def test_only_rows_are_renamed():
    # Two columns exchanged cannot be mended by renaming the latent classes.
    truth = np.array([[[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.0, 0.0, 1.0]]])
    assert metrics.confusion_error(truth[:, :, [1, 0, 2]], truth, permute=True) > 0


def test_identical_matrices_have_no_error(pair):
    _, truth = pair
    assert metrics.confusion_error(truth, truth, permute=True) == 0.0
    assert metrics.confusion_total_variation(truth, truth) == 0.0


@pytest.mark.parametrize("seed", range(4))
def test_rank_correlations_agree_with_scipy_under_ties(seed):
    rng = np.random.default_rng(seed)
    estimate = rng.integers(0, 6, size=30) / 6
    truth = estimate + rng.integers(0, 4, size=30) / 4
    assert metrics.worker_rank_correlation(estimate, truth) == pytest.approx(
        scipy.stats.spearmanr(estimate, truth).statistic, abs=1e-12
    )
    signs = [
        (np.sign(estimate[a] - estimate[b]), np.sign(truth[a] - truth[b]))
        for a, b in itertools.combinations(range(30), 2)
    ]
    tau = sum(x * y for x, y in signs) / np.sqrt(
        sum(x != 0 for x, _ in signs) * sum(y != 0 for _, y in signs)
    )
    assert metrics.worker_rank_correlation(estimate, truth, kind="kendall") == pytest.approx(tau)


def test_reversed_ranking_and_no_ranking():
    assert metrics.worker_rank_correlation([1, 2, 3], [9, 4, 1]) == pytest.approx(-1.0)
    assert np.isnan(metrics.worker_rank_correlation([1, 1, 1], [9, 4, 1]))
    assert np.isnan(metrics.worker_rank_correlation([1, 2], [5, 5], kind="kendall"))


@pytest.mark.parametrize("metric", [metrics.confusion_error, metrics.confusion_total_variation])
@pytest.mark.parametrize(
    ("estimate", "truth", "message"),
    [
        (np.eye(2), np.eye(2), "shape"),
        (np.empty((0, 2, 2)), np.empty((0, 2, 2)), "at least one"),
        (np.ones((1, 2, 2)), np.ones((2, 2, 2)), r"\(1, 2, 2\) but `truth` has \(2, 2, 2\)"),
        (np.full((1, 2, 2), np.nan), np.ones((1, 2, 2)), "`estimate` is not finite for worker 0"),
    ],
)
def test_bad_confusion_is_named(metric, estimate, truth, message):
    with pytest.raises(DataError, match=message):
        metric(estimate, truth)


def test_bad_choices_are_named():
    with pytest.raises(ParameterError, match="distance"):
        metrics.match_classes(np.ones((1, 1, 1)), np.ones((1, 1, 1)), distance="euclid")
    with pytest.raises(ParameterError, match="kind"):
        metrics.worker_rank_correlation([1, 2], [1, 2], kind="pearson")
    with pytest.raises(DataError, match="at least two"):
        metrics.worker_rank_correlation([1], [1])
    with pytest.raises(DataError, match="3 workers but `truth` has 2"):
        metrics.worker_rank_correlation([1, 2, 3], [1, 2])
