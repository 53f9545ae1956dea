"""Errors of numbers against the full precision matrix and simulations, and their calibration."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

import wisecrowd as wc
from wisecrowd import simulate
from wisecrowd.aggregation import GaussianEM, StudentEM
from wisecrowd.core.exceptions import DataError
from wisecrowd.kinds.numbers.container import CrowdNumbers
from wisecrowd.kinds.numbers.methods import intervals as number_intervals
from wisecrowd.kinds.numbers.methods.intervals import (
    SHARED_BIAS,
    Errors,
    _line,
    average_errors,
    with_known,
)


def full_variance(data, own, cross, bias, prior, omega, known=None, level=True):
    """Return the variances of numbers from one precision matrix of numbers, biases and level."""
    N, J = data.n_tasks, data.n_workers
    H = np.zeros((N + J + 1, N + J + 1))
    for e, (i, j) in enumerate(zip(data.task, data.worker + N, strict=True)):
        H[i, i] += own[e]
        H[j, j] += bias[e]
        H[i, j] += cross[e]
        H[j, i] += cross[e]
    for i in range(N):
        H[i, i] += prior[i]
        if level:
            H[-1, -1] += prior[i]
            H[i, -1] -= prior[i]
            H[-1, i] -= prior[i]
    H[np.arange(N, N + J), np.arange(N, N + J)] += 1 / omega if omega > 0 else 1e14
    H[-1, -1] += 0.0 if level else 1.0
    free = np.ones(N + J + 1, bool)
    if known is not None:
        free[:N] = ~known
    found = np.zeros(N + J + 1)
    found[free] = np.diag(np.linalg.inv(H[np.ix_(free, free)]))
    return found[:N]


def crowd(seed=0, n_tasks=30, n_workers=9):
    made = simulate.numbers(n_tasks, n_workers, simulate.PerTask(4), bias=0.6, random_state=seed)
    weight = np.random.default_rng(seed).uniform(0.5, 2, made.data.n_annotations)
    return CrowdNumbers.from_arrays(
        made.data.task, made.data.worker, made.data.value, weight=weight
    ), made.truth


def test_variances_are_those_of_the_full_precision_matrix():
    data, _ = crowd()
    fitted = GaussianEM().fit(data)
    precision = data.weights / fitted.noise_[data.worker] ** 2
    prior = np.full(data.n_tasks, 1 / fitted.truth_variance_[0])
    omega = fitted.bias_variance_[0] * 9 / 8  # the mean bias was removed
    expected = full_variance(data, precision, precision, precision, prior, omega)
    np.testing.assert_allclose(fitted.variance_, expected, rtol=1e-11)
    width = stats.t.ppf(0.975, fitted.freedom_) * np.sqrt(expected)
    np.testing.assert_allclose(fitted.high_ - fitted.values_, width, rtol=1e-9)


def test_known_numbers_and_a_prior_have_their_own_precision_matrix():
    data, truth = crowd(1)
    gold = np.where(np.arange(30) < 6, truth, np.nan)
    fitted = GaussianEM().fit(data, gold=gold)
    precision = data.weights / fitted.noise_[data.worker] ** 2
    prior, omega = np.full(30, 1 / fitted.truth_variance_[0]), fitted.bias_variance_[0]
    expected = full_variance(data, *[precision] * 3, prior, omega, known=~np.isnan(gold))
    np.testing.assert_allclose(fitted.variance_, expected, rtol=1e-11, atol=1e-15)
    given = GaussianEM().fit(data, task_prior=(0.0, 2.0))
    precision = data.weights / given.noise_[data.worker] ** 2
    expected = full_variance(
        data, *[precision] * 3, np.full(30, 0.5), given.bias_variance_[0], level=False
    )
    np.testing.assert_allclose(given.variance_, expected, rtol=1e-11)


def test_without_biases_only_the_level_is_added():
    data, _ = crowd(2)
    fitted = GaussianEM(bias=False).fit(data)
    precision = data.weights / fitted.noise_[data.worker] ** 2
    prior = 1 / fitted.truth_variance_[0]
    D = prior + np.bincount(data.task, precision, 30)
    level = 1 / (30 * prior - (prior**2 / D).sum())
    np.testing.assert_allclose(fitted.variance_, 1 / D + (prior / D) ** 2 * level, rtol=1e-11)


def test_student_labels_have_the_information_of_their_weights():
    data, _ = crowd(3)
    fitted = StudentEM(nu=4).fit(data)
    alone = StudentEM(nu=1e0 * 4, bias=False).fit(data)
    for one, has_bias in ((fitted, True), (alone, False)):
        scale = one.noise_[data.worker] ** 2
        c = one.question_bias_variance_[data.worker, 0]
        prior = 1 / one.truth_variance_[0]
        spread = np.full(30, 0.1)
        for _ in range(500):  # the variance of the E-step, of which the weights depend on
            away = data.value - one.values_[data.task] - one.bias_[data.worker]
            u = 5 / (4 + (away**2 + spread[data.task] + c) / scale)
            spread = 1 / (prior + np.bincount(data.task, data.weights * u / scale, 30))
        P = data.weights * u / scale * 5 / 7
        omega = one.bias_variance_[0] * 9 / 8 if has_bias else 0.0
        expected = full_variance(data, P, P, P, np.full(30, prior), omega)
        np.testing.assert_allclose(one.variance_, expected, rtol=1e-5)


def test_many_workers_have_independent_biases(monkeypatch):
    data, _ = crowd(4)
    exact = GaussianEM().fit(data)
    monkeypatch.setattr(number_intervals, "MOST_CELLS", 50)
    fitted = GaussianEM().fit(data)
    assert "joint_variance_" not in vars(fitted)
    a = data.weights / fitted.noise_[data.worker] ** 2
    D = 1 / fitted.truth_variance_[0] + np.bincount(data.task, a, 30)
    own = fitted.question_bias_variance_[:, 0]
    shared = np.bincount(data.task, (a / D[data.task]) ** 2 * own[data.worker], 30)
    np.testing.assert_allclose(
        fitted.variance_, 1 / D + shared + fitted.level_variance_[0], rtol=1e-11
    )
    assert 0.6 < (fitted.variance_ / exact.variance_).mean() < 1.6
    np.testing.assert_allclose(fitted.predict(data), fitted.values_, rtol=1e-9)


def test_errors_of_averages_are_those_of_repeated_labels():
    rng = np.random.default_rng(0)
    task, worker = np.array([0, 0, 0, 1]), np.array([0, 1, 1, 2])
    share, noise, omega = np.array([1.0, 2.0, 1.0, 3.0]), np.array([1.0, 0.5, 2.0]), 0.7
    errors = average_errors(task, worker, share, noise, omega, 2)
    bias = rng.normal(0, np.sqrt(omega), (200_000, 3))
    labels = bias[:, worker] + rng.normal(size=(200_000, 4)) * np.sqrt(noise[worker])
    for i in range(2):
        rows = task == i
        mean = labels[:, rows] @ share[rows] / share[rows].sum()
        assert errors.variance[i] == pytest.approx(mean.var(), rel=0.02)


def test_degrees_of_freedom_by_satterthwaite():
    errors = Errors(np.array([1.0, 1.0, 0.0]), np.array([0.0, 1.0, 0.0]))
    found = errors.freedom(20, 4)
    np.testing.assert_allclose(found[:2], [20, 4 / (1 / 20 + 1 / 4)])
    assert found[2] == number_intervals.MOST_FREEDOM
    assert (errors.freedom(0, 0)[:2] >= 1).all()


@pytest.mark.parametrize(("workers", "each"), [(3, 3), (8, 4)])
def test_intervals_of_few_workers_hold_the_truth(workers, each):
    inside = []
    for seed in range(12):
        made = simulate.numbers(40, workers, simulate.PerTask(each), bias=0.5, random_state=seed)
        fitted = GaussianEM().fit(made.data)
        inside.append(np.mean((fitted.low_ <= made.truth) & (made.truth <= fitted.high_)))
    assert 0.88 < np.mean(inside) < 0.995


@pytest.mark.parametrize("size", [1e-90, 1e90])
def test_errors_of_numbers_near_the_limits_of_size_are_finite(size):
    value = np.random.default_rng(0).normal(size=36)
    task, worker = np.divmod(np.arange(36), 3)
    plain, scaled = (GaussianEM().fit((task, worker, value * c)) for c in (1.0, size))
    np.testing.assert_allclose(scaled.high_ / size, plain.high_, rtol=1e-3)


@pytest.fixture(scope="module")
def made():
    return simulate.numbers(100, 8, simulate.PerTask(4), bias=0.3)


def gold_of(made, n, a=0.0, c=1.0):
    return dict(zip(range(n), a + c * made.truth[:n], strict=True))


def test_nine_known_numbers_are_too_few(made):
    with pytest.raises(DataError, match=r"Gold has 9 tasks .* needs 10"):
        GaussianEM().fit(made.data).calibrated(gold_of(made, 9))


def test_ten_known_numbers_change_the_width_only(made):
    fitted = GaussianEM().fit(made.data)
    wide = fitted.calibrated(gold_of(made, 10, a=5.0))
    assert wide.interval_factor_ > 2
    assert wide.correction_ == (0.0, 1.0)
    np.testing.assert_array_equal(wide.values_, fitted.values_)


def test_known_numbers_answer_the_finding_on_shared_errors(made):
    fitted = GaussianEM().fit(made.data)
    calibrated = fitted.calibrated(gold_of(made, 10))
    assert SHARED_BIAS in {finding.id for finding in fitted.findings_}
    assert SHARED_BIAS not in {finding.id for finding in calibrated.findings_}
    assert calibrated.warnings_ == tuple(map(str, calibrated.findings_))


def test_known_tasks_have_their_known_numbers(made):
    fitted = GaussianEM().fit(made.data)
    found = with_known(fitted, gold_of(made, 12, a=3.0))
    for values in (found.values_, found.low_, found.high_):
        np.testing.assert_array_equal(values[:12], 3 + made.truth[:12])
    np.testing.assert_array_equal(found.variance_[:12], 0)
    np.testing.assert_array_equal(found.low_[12:], fitted.low_[12:])
    np.testing.assert_array_equal(found.interval(0.5)[1][:12], found.values_[:12])
    assert fitted.variance_.min() > 0


def test_thirty_known_numbers_correct_level_and_slope(made, tmp_path):
    fitted = GaussianEM().fit(made.data)
    moved = fitted.calibrated(gold_of(made, 30, a=-4.0, c=1.6))
    rest = -4 + 1.6 * made.truth[30:]
    inside = (moved.low_[30:] <= rest) & (rest <= moved.high_[30:])
    assert np.sqrt(np.mean((moved.values_[30:] - rest) ** 2)) < 0.7
    assert 0.85 < inside.mean() <= 1
    level, slope = moved.correction_
    np.testing.assert_allclose(moved.values_, level + slope * fitted.values_, rtol=1e-12)
    np.testing.assert_allclose(moved.predict(made.data), moved.values_, rtol=1e-9)
    moved.save(tmp_path / "model")
    again = wc.load(tmp_path / "model")
    assert again.correction_ == moved.correction_
    np.testing.assert_array_equal(again.predict(made.data), moved.predict(made.data))


def test_the_line_is_least_squares_and_errors_are_those_without_each_number():
    rng = np.random.default_rng(0)
    x = rng.normal(size=12)
    y = 3 + 2 * x + rng.normal(size=12)
    level, slope, error = _line(x, y)
    np.testing.assert_allclose((slope, level), np.polyfit(x, y, 1), rtol=1e-10)
    for i in range(12):
        others = np.polyfit(np.delete(x, i), np.delete(y, i), 1)
        assert error[i] == pytest.approx(y[i] - np.polyval(others, x[i]))


def test_numbers_that_fall_where_values_rise_correct_the_level_only():
    x = np.arange(40.0)
    level, slope, _ = _line(x, 100 - x)
    assert slope == 1.0
    assert level == pytest.approx(100 - 2 * x.mean())
