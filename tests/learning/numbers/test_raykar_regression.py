"""RaykarRegression: closed forms, recovery, the trace correction, equivariance, real data."""

from __future__ import annotations

import numpy as np
import pytest

from wisecrowd.core.exceptions import DataError, FindingWarning, ParameterError
from wisecrowd.kinds.numbers.container import CrowdNumbers
from wisecrowd.kinds.numbers.methods.gaussian_em import GaussianEM
from wisecrowd.learning import RaykarRegression
from wisecrowd.learning.numbers.raykar_regression import Ridge
from wisecrowd.testing.learners import features_and_numbers


def crowd(seed=0, n_tasks=400, n_workers=12, tau=0.5):
    """Return features, numbers, true numbers, weights, bias and noise."""
    rng = np.random.default_rng(seed)
    X, w = rng.normal(size=(n_tasks, 4)), np.array([2.0, -1.0, 0.5, 0.0])
    z = 10 + X @ w + tau * rng.normal(size=n_tasks)
    bias, noise = rng.normal(0, 1, n_workers), rng.uniform(0.2, 2.0, n_workers)
    task = np.repeat(np.arange(n_tasks), 4)
    worker = np.concatenate([rng.choice(n_workers, 4, replace=False) for _ in range(n_tasks)])
    value = z[task] + bias[worker] + noise[worker] * rng.normal(size=len(task))
    return X, CrowdNumbers.from_arrays(task, worker, value), z, w, bias, noise


def r2(found, truth):
    return 1 - np.mean((found - truth) ** 2) / np.var(truth)


def test_it_recovers_weights_workers_and_the_spread_around_the_regression():
    X, numbers, z, w, bias, noise = crowd()
    fit = RaykarRegression().fit(X, numbers)
    np.testing.assert_allclose(fit.coef_, w, atol=0.1)
    np.testing.assert_allclose(fit.bias_, bias - bias.mean(), atol=0.25)
    np.testing.assert_allclose(fit.noise_, noise, rtol=0.25)
    assert fit.residual_variance_ == pytest.approx(0.25, rel=0.35)
    labels_only = GaussianEM().fit(numbers).values_
    level = z.mean()
    assert r2(fit.values_ - fit.values_.mean() + level, z) > r2(
        labels_only - labels_only.mean() + level, z
    )
    inside = (fit.low_ - fit.values_.mean() <= z - level) & (
        z - level <= fit.high_ - fit.values_.mean()
    )
    assert 0.88 < inside.mean() <= 1.0


def test_predictions_with_labels_are_the_posterior_of_a_normal_mean():
    X, numbers, *_ = crowd()
    fit = RaykarRegression().fit(X, numbers)
    mine = numbers.task == 7
    precision = 1 / fit.residual_variance_ + (1 / fit.noise_[numbers.worker[mine]] ** 2).sum()
    total = fit.predict(X)[7] / fit.residual_variance_
    total += ((numbers.value - fit.bias_[numbers.worker])[mine]
              / fit.noise_[numbers.worker[mine]] ** 2).sum()  # fmt: skip
    assert fit.values_[7] == pytest.approx(total / precision, rel=1e-12)
    assert fit.variance_[7] == pytest.approx(1 / precision, rel=1e-12)


def test_the_fixed_point_satisfies_both_steps():
    """The ridge of the posterior means is the regression, and tau² has the trace of its matrix."""
    X, numbers, *_ = crowd()
    fit = RaykarRegression(tol=1e-10, max_iter=300, l2=3.0).fit(X, numbers)
    standard = (X - X.mean(axis=0)) / X.std(axis=0)
    inverse = np.linalg.inv(standard.T @ standard + 3.0 * np.eye(4))
    coef = inverse @ standard.T @ (fit.values_ - fit.values_.mean()) / X.std(axis=0)
    np.testing.assert_allclose(fit.coef_, coef, rtol=1e-5, atol=1e-6)
    trace = 1 + np.trace(standard @ inverse @ standard.T)
    gap = ((fit.values_ - fit.predict(X)) ** 2 + fit.variance_).sum()
    assert fit.residual_variance_ == pytest.approx(gap / (len(X) - trace), rel=1e-5)


def test_without_the_trace_the_spread_collapses(monkeypatch):
    """With nearly as many features as tasks, an uncorrected tau² ends at f = m."""
    rng = np.random.default_rng(0)
    X, numbers, *_ = crowd(n_tasks=100)
    wide = np.hstack([X, rng.normal(size=(100, 85))])
    good = RaykarRegression(l2=0.1).fit(wide, numbers).residual_variance_
    monkeypatch.setattr(Ridge, "degrees_left", lambda self, l2: float(len(self.left)))
    bad = RaykarRegression(l2=0.1).fit(wide, numbers).residual_variance_
    assert bad < 0.01 * good


@pytest.mark.parametrize(("factor", "offset"), [(3.0, 100.0), (-0.01, 5.0)])
def test_units_of_the_numbers_do_not_matter(factor, offset):
    X, numbers, *_ = crowd(n_tasks=100)
    other = CrowdNumbers.from_arrays(
        numbers.task, numbers.worker, offset + factor * numbers.value
    )  # fmt: skip
    one, two = RaykarRegression().fit(X, numbers), RaykarRegression().fit(X, other)
    assert two.l2_ == one.l2_
    np.testing.assert_allclose(two.values_, offset + factor * one.values_, rtol=1e-6)
    np.testing.assert_allclose(two.coef_, factor * one.coef_, rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(two.noise_, abs(factor) * one.noise_, rtol=1e-5)


def test_units_of_the_features_do_not_matter():
    X, numbers, *_ = crowd(n_tasks=100)
    one = RaykarRegression().fit(X, numbers)
    two = RaykarRegression().fit(5 + X * np.array([1.0, 10, 0.1, -2]), numbers)
    np.testing.assert_allclose(one.values_, two.values_, rtol=1e-8)


def test_generalised_cross_validation_is_that_of_the_hat_matrix():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 5)), rng.normal(size=30)
    ridge = Ridge.of(X, np.ones(30, bool))
    standard = (X - X.mean(axis=0)) / X.std(axis=0)

    def error(l2):
        hat = standard @ np.linalg.solve(standard.T @ standard + l2 * np.eye(5), standard.T)
        hat += 1 / 30
        return ((y - hat @ y) ** 2).sum() / (30 - np.trace(hat)) ** 2

    candidates = 10.0 ** np.arange(-2, 6.5, 0.5)
    assert ridge.best_penalty(y) == pytest.approx(min(candidates, key=error))


def test_gold_is_kept_and_fixes_the_level():
    X, numbers, z, *_ = crowd(n_tasks=150)
    shifted = CrowdNumbers.from_arrays(numbers.task, numbers.worker, numbers.value + 3)
    gold = {i: float(z[i]) for i in range(0, 150, 3)}
    fit = RaykarRegression().fit(X, shifted, gold=gold)
    np.testing.assert_array_equal(fit.values_[::3], z[::3])
    assert (fit.variance_[::3] == 0).all()
    without = RaykarRegression().fit(X, shifted)
    assert abs((fit.predict(X) - z).mean()) < 0.3 < abs((without.predict(X) - z).mean())


@pytest.mark.filterwarnings("ignore:.*have no labels")
def test_degenerate_input_gives_finite_answers():
    X = np.random.default_rng(0).normal(size=(6, 2))
    cases = {
        "one annotation": ([0], ["ann"], [3.0]),
        "one worker": (list(range(6)), ["ann"] * 6, [1.0, 2, 3, 4, 5, 6]),
        "constant": ([0, 0, 1, 1], ["ann", "bob"] * 2, [2.0] * 4),
    }
    for columns in cases.values():
        fit = RaykarRegression().fit(X, CrowdNumbers.from_arrays(*columns, tasks=range(6)))
        for found in (fit.values_, fit.variance_, fit.noise_, fit.bias_, fit.predict(X)):
            assert np.isfinite(found).all()
    constant = RaykarRegression().fit(X, CrowdNumbers.from_arrays(*columns, tasks=range(6)))
    np.testing.assert_allclose(constant.values_, 2.0, atol=1e-5)
    same = RaykarRegression().fit(np.ones((6, 2)), np.arange(6.0))
    np.testing.assert_allclose(same.coef_, 0)


def test_forms_of_input_agree():
    rng = np.random.default_rng(0)
    X, matrix = rng.normal(size=(20, 2)), rng.normal(size=(20, 3))
    matrix[rng.random((20, 3)) < 0.2] = np.nan
    row, worker = np.nonzero(~np.isnan(matrix))
    long = CrowdNumbers.from_arrays(row, worker, matrix[row, worker], tasks=range(20))
    one, two = RaykarRegression().fit(X, matrix), RaykarRegression().fit(X, long)
    np.testing.assert_array_equal(one.values_, two.values_)
    ids = [f"t{i}" for i in range(20)]
    named = CrowdNumbers.from_arrays([ids[i] for i in row], worker, matrix[row, worker])
    three = RaykarRegression().fit(X, named, tasks=ids)
    np.testing.assert_allclose(one.values_, three.values_, rtol=1e-9)


def test_score_and_interval():
    X, numbers, z, *_ = crowd()
    fit = RaykarRegression().fit(X, numbers)
    assert fit.score(X, z) == pytest.approx(r2(fit.predict(X), z))
    variance = fit.residual_variance_ + fit.noise_[numbers.worker] ** 2
    error = numbers.value - fit.predict(X)[numbers.task] - fit.bias_[numbers.worker]
    density = -0.5 * (np.log(2 * np.pi * variance) + error**2 / variance)
    assert fit.score(X, numbers) == pytest.approx(density.mean())
    low, high = fit.interval(0.5, X)
    np.testing.assert_allclose((high - low) / 2, 0.6745 * fit.residual_variance_**0.5, rtol=1e-3)
    narrow = fit.interval(0.5)
    assert (narrow[1] - narrow[0] < high - low).all()


def test_unknown_workers_do_not_count():
    X, numbers, *_ = crowd(n_tasks=50)
    fit = RaykarRegression().fit(X, numbers)
    strange = CrowdNumbers.from_arrays([0], ["nobody"], [1e6])
    with pytest.warns(UserWarning, match="were not in the fit"):
        found = fit.predict(X[:1], strange)
    np.testing.assert_allclose(found, fit.predict(X[:1]))


def test_wrong_input():
    X, numbers = features_and_numbers()
    for options, words in (({"l2": "much"}, "or 'auto'"), ({"max_iter": 0}, "max_iter"),
                           ({"l2": -1.0}, "l2")):  # fmt: skip
        with pytest.raises(ParameterError, match=words):
            RaykarRegression(**options).fit(X, numbers)
    with pytest.raises(ParameterError, match="without resume"):
        RaykarRegression().fit(X, numbers, resume=True)
    with pytest.raises(DataError, match="60 rows and y has 2 rows"):
        RaykarRegression().fit(X, [1.0, 2.0])
    with pytest.raises(DataError, match="NaN or infinity in row 1"):
        RaykarRegression().fit(X[:2], [1.0, np.nan])
    with pytest.raises(DataError, match="cannot be read as numbers"):
        RaykarRegression().fit(X[:2], ["a", "b"])
    with pytest.warns(FindingWarning, match="validation set was not used"):
        RaykarRegression().fit(X, numbers, valid=(X[:2], [1.0, 2.0]))
    fit = RaykarRegression().fit(X, numbers)
    with pytest.raises(ParameterError, match="level"):
        fit.interval(1.5)


def test_movie_reviews(data_directory):
    """Test R² of the crowd's own regression: above ridge on the means, .390."""
    folder = data_directory / "movie_reviews"
    X, other = np.load(folder / "features.npy"), np.load(folder / "features_test.npy")
    table = np.genfromtxt(folder / "answers.csv", delimiter=",", skip_header=1)
    numbers = CrowdNumbers.from_arrays(
        table[:, 0].astype(int), table[:, 1].astype(int), table[:, 2]
    )
    truth = np.genfromtxt(folder / "truth_test.csv", delimiter=",", skip_header=1)[:, 1]
    assert RaykarRegression(l2=30.0).fit(X, numbers).score(other, truth) >= 0.42
