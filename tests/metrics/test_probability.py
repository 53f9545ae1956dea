"""Hand-computed values, scikit-learn and a plain loop as oracles."""

from __future__ import annotations

import math

import numpy as np
import pytest
import sklearn.metrics

from wisecrowd import metrics
from wisecrowd.core.exceptions import DataError, ParameterError


@pytest.fixture
def forecast() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(5)
    probas = rng.dirichlet([0.4, 0.8, 1.5], size=400)
    truth = np.array([rng.choice(3, p=row**2 / np.sum(row**2)) for row in probas])
    return truth, probas


def test_agrees_with_scikit_learn(forecast):
    truth, probas = forecast
    assert metrics.log_loss(truth, probas) == pytest.approx(
        sklearn.metrics.log_loss(truth, probas), rel=1e-12
    )
    assert metrics.brier_score(truth, probas) == pytest.approx(
        sklearn.metrics.brier_score_loss(truth, probas, scale_by_half=False), rel=1e-12
    )


def test_log_loss_of_a_certain_mistake_is_finite():
    assert metrics.log_loss([1], [[1.0, 0.0]]) == pytest.approx(52 * math.log(2))
    assert metrics.log_loss([1], [[1.0, 0.0]], eps=0.1) == pytest.approx(-math.log(0.1))
    assert metrics.log_loss([0], [[1.0, 0.0]]) == 0.0


def test_brier_score_extremes():
    assert metrics.brier_score([0], [[1.0, 0.0]]) == 0.0
    assert metrics.brier_score([1], [[1.0, 0.0]]) == 2.0


def plain_calibration_error(truth: np.ndarray, probas: np.ndarray, n_bins: int) -> float:
    total = 0.0
    for b in range(n_bins):
        low, high = b / n_bins, (b + 1) / n_bins
        members = [i for i, row in enumerate(probas) if low < max(row) <= high]
        if members:
            correct = np.mean([np.argmax(probas[i]) == truth[i] for i in members])
            stated = np.mean([max(probas[i]) for i in members])
            total += len(members) / len(truth) * abs(correct - stated)
    return total


@pytest.mark.parametrize("n_bins", [1, 2, 10, 15])
def test_calibration_error_agrees_with_a_plain_loop(forecast, n_bins):
    truth, probas = forecast
    assert metrics.expected_calibration_error(truth, probas, n_bins=n_bins) == pytest.approx(
        plain_calibration_error(truth, probas, n_bins), abs=1e-12
    )


def test_calibration_bins_are_closed_on_the_right():
    # .5 falls into (0, .5], 1.0 into (.5, 1]: were both in one bin, the gaps would cancel.
    probas = [[0.5, 0.5 - 1e-7, 1e-7], [0.5, 0.5 - 1e-7, 1e-7], [1.0, 0.0, 0.0]]
    error = metrics.expected_calibration_error([0, 0, 1], probas, n_bins=2)
    assert error == pytest.approx((2 * 0.5 + 1.0) / 3)


def test_calibration_of_ties_is_their_expectation():
    assert metrics.expected_calibration_error([0, 0], [[0.5, 0.5]] * 2) == 0.0
    assert metrics.expected_calibration_error([1, 1], [[0.5, 0.5]] * 2) == 0.0


def test_class_ids_are_looked_up(forecast):
    truth, probas = forecast
    classes = np.array(["z", "a", "m"])
    for metric in (
        metrics.log_loss,
        metrics.brier_score,
        metrics.expected_calibration_error,
    ):
        assert metric(classes[truth], probas, classes=classes) == metric(truth, probas)


def test_the_input_is_left_alone(forecast):
    truth, probas = forecast
    before = probas.copy()
    metrics.brier_score(truth, probas)
    metrics.log_loss(truth, probas)
    np.testing.assert_array_equal(probas, before)


@pytest.mark.parametrize(
    "metric", [metrics.log_loss, metrics.brier_score, metrics.expected_calibration_error]
)
@pytest.mark.parametrize(
    ("truth", "probas", "message"),
    [
        ([0], [[0.5, 0.4]], "Row 0 of `probas` is not a probability vector"),
        ([0, 0], [[0.5, 0.5], [1.5, -0.5]], "Row 1"),
        ([0], [[np.nan, 0.5]], "Row 0"),
        ([0], [["a", "b"]], "must be numbers"),
        ([], np.empty((0, 2)), "shape"),
        ([0], [0.5, 0.5], "shape"),
        ([0, 1], [[0.5, 0.5]], "2 values for 1 rows"),
    ],
)
def test_bad_input_is_named(metric, truth, probas, message):
    with pytest.raises(DataError, match=message):
        metric(truth, probas)


@pytest.mark.parametrize("n_bins", [0, -1, 2.5, True])
def test_bad_number_of_bins(n_bins):
    with pytest.raises(ParameterError, match="n_bins"):
        metrics.expected_calibration_error([0], [[1.0]], n_bins=n_bins)


@pytest.mark.parametrize("eps", [0.0, 1.0, float("nan")])
def test_bad_floor(eps):
    with pytest.raises(ParameterError, match="eps"):
        metrics.log_loss([0], [[1.0]], eps=eps)
