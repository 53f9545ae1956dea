"""GaussianEM against closed forms, its simulator, and what must not matter."""

from __future__ import annotations

import numpy as np
import pytest

from wisecrowd import simulate
from wisecrowd.aggregation import GaussianEM, Mean, StudentEM
from wisecrowd.core.exceptions import DataError, FindingWarning
from wisecrowd.kinds.numbers.container import CrowdNumbers


def least_squares(data, bias, noise, mean, variance):
    """Return the generalised least squares estimate of every task, by dense matrices."""
    values, spread = np.empty(data.n_tasks), np.empty(data.n_tasks)
    for i in range(data.n_tasks):
        rows = slice(data.indptr[i], data.indptr[i + 1])
        j, weight = data.worker[rows], data.weights[rows]
        design = np.ones((len(j) + 1, 1))
        covariance = np.diag(np.append(noise[j] ** 2 / weight, variance))
        target = np.append(data.value[rows] - bias[j], mean)
        inverse = np.linalg.inv(covariance)
        spread[i] = 1 / (design.T @ inverse @ design).item()
        values[i] = spread[i] * (design.T @ inverse @ target).item()
    return values, spread


def test_values_are_generalised_least_squares_at_the_fitted_parameters():
    made = simulate.numbers(50, 8, bias=0.5)
    weight = np.random.default_rng(0).uniform(0.5, 2, made.data.n_annotations)
    data = CrowdNumbers.from_arrays(
        made.data.task, made.data.worker, made.data.value, weight=weight
    )
    fitted = GaussianEM().fit(data)
    values, _ = least_squares(
        data, fitted.bias_, fitted.noise_, fitted.truth_mean_[0], fitted.truth_variance_[0]
    )
    np.testing.assert_allclose(fitted.values_, values, rtol=1e-12, atol=1e-12)
    workers = np.count_nonzero(data.labels_per_worker)
    assert fitted.level_variance_ == pytest.approx(fitted.bias_variance_ / (workers - 1))


def test_equal_workers_and_a_flat_prior_are_the_mean():
    made = simulate.numbers(200, 6, simulate.PerTask(4), noise=np.full(6, 0.5))
    equal = GaussianEM(bias=False, prior=1e8).fit(made.data, task_prior=(0.0, 1e12))
    np.testing.assert_allclose(equal.values_, Mean().fit(made.data).values_, atol=1e-6)
    assert np.ptp(equal.noise_) < 1e-6  # an infinite prior strength means equal weights


def test_one_worker_has_the_posterior_of_a_normal_mean():
    value = np.array([1.0, 2.0, 4.0, 8.0])
    fitted = GaussianEM(bias=False).fit((np.arange(4), ["w"] * 4, value))
    tau, noise = fitted.truth_variance_[0], fitted.noise_[0] ** 2
    shrunk = fitted.truth_mean_[0] + tau / (tau + noise) * (value - fitted.truth_mean_[0])
    np.testing.assert_allclose(fitted.values_, shrunk, rtol=1e-12)


def test_biases_without_noise_are_recovered():
    rng = np.random.default_rng(0)
    bias, z = rng.normal(size=6), rng.normal(size=300)
    task = np.repeat(np.arange(300), 3)
    worker = np.concatenate([rng.choice(6, 3, replace=False) for _ in range(300)])
    fitted = GaussianEM().fit((task, worker, z[task] + bias[worker]))
    np.testing.assert_allclose(np.diff(fitted.bias_), np.diff(bias), atol=1e-5)


def test_the_simulator_is_recovered():
    made = simulate.numbers(2000, 10, simulate.PerTask(5), bias=0.5)
    fitted = GaussianEM().fit(made.data)
    assert np.abs(fitted.noise_ / made.noise - 1).max() < 0.1
    shift = fitted.bias_ - made.bias
    n_labels = np.bincount(made.data.worker)
    assert (np.abs(shift - shift.mean()) < 4 * made.noise / np.sqrt(n_labels)).all()
    assert fitted.score(made.data, made.truth) > Mean().fit(made.data).score(made.data, made.truth)


def test_gains_are_recovered():
    made = simulate.numbers(3000, 8, simulate.PerTask(5), noise=(0.2, 0.5), gain=0.3)
    fitted = GaussianEM(gain=True).fit(made.data)
    assert np.corrcoef(fitted.gain_[:, 0], made.gain)[0, 1] > 0.99
    assert np.diff(fitted.history_).min() > -1e-6
    np.testing.assert_allclose(fitted.predict(made.data), fitted.values_, atol=1e-8)


@pytest.mark.parametrize("options", [{}, {"bias": False}, {"gain": True}, {"prior": 0.0}])
def test_the_objective_never_falls(options):
    for seed in range(40):
        rng = np.random.default_rng(seed)
        made = simulate.numbers(
            int(rng.integers(2, 40)), int(rng.integers(1, 9)), bias=rng.uniform(0, 2),
            noise=(0.01, 3.0), nu=rng.choice([1.0, 4.0, np.inf]), random_state=seed,
        )  # fmt: skip
        history = np.array(GaussianEM(max_iter=60, **options).fit(made.data).history_)
        assert np.diff(history).min(initial=0.0) >= -1e-9 * np.abs(history).max()


def questions(seed=0):
    made = [simulate.numbers(80, 10, bias=0.3, random_state=seed + q) for q in (0, 1)]
    task = np.concatenate([made[0].data.task, 80 + made[1].data.task])
    value = np.concatenate([made[0].data.value, 100 + 20 * made[1].data.value])
    worker = np.concatenate([one.data.worker for one in made])
    name = np.repeat(["small", "large"], [len(one.data.task) for one in made])
    return task, worker, value, name


def test_questions_have_their_own_level_and_spread():
    task, worker, value, name = questions()
    data = CrowdNumbers.from_arrays(task, worker, value, question=name)
    fitted = GaussianEM().fit(data)
    assert fitted.questions_ == ("large", "small")
    np.testing.assert_allclose(fitted.truth_mean_, [100, 0], atol=10)
    assert fitted.question_noise_[0] > 5 * fitted.question_noise_[1]
    np.testing.assert_allclose(np.prod(fitted.question_noise_), 1.0)
    assert np.diff(fitted.history_).min() > -1e-6
    np.testing.assert_allclose(fitted.predict(data), fitted.values_, atol=1e-8)
    np.testing.assert_allclose(fitted.predict(data[:80]), fitted.values_[:80], atol=1e-8)
    with pytest.raises(DataError, match="question 'other' was not in the fit"):
        fitted.predict(CrowdNumbers.from_arrays([1], [1], [1.0], question=["other"]))
    with pytest.raises(DataError, match="labels for two questions"):
        GaussianEM().fit(CrowdNumbers.from_arrays([1, 1], [1, 2], [1, 2], question=["a", "b"]))


def test_gold_teaches_the_level():
    made = simulate.numbers(300, 6, simulate.PerTask(3), noise=(0.2, 0.4))
    shifted = CrowdNumbers.from_arrays(made.data.task, made.data.worker, made.data.value + 5)
    gold = dict(enumerate(made.truth[:50]))
    fitted = GaussianEM().fit(shifted, gold=gold)
    assert np.abs(fitted.values_[50:] - made.truth[50:]).mean() < 0.5
    np.testing.assert_allclose(fitted.bias_, 5, atol=0.5)


def test_the_likelihood_is_that_of_a_normal_vector():
    from scipy.stats import multivariate_normal

    made = simulate.numbers(6, 4, simulate.PerTask(3), bias=0.4)
    fitted = GaussianEM().fit(made.data)
    data, total = made.data, 0.0
    for i in range(6):
        rows = slice(data.indptr[i], data.indptr[i + 1])
        j = data.worker[rows]
        covariance = np.diag(fitted.noise_[j] ** 2) + fitted.truth_variance_[0]
        mean = fitted.truth_mean_[0] + fitted.bias_[j]
        total += multivariate_normal(mean, covariance).logpdf(data.value[rows])
    np.testing.assert_allclose(fitted.score(data), total / data.n_annotations, rtol=1e-10)


def test_three_tasks_do_not_show_that_all_tasks_are_equal():
    labels = (["1", "1", "2", "2", "3", "3"], ["a", "b"] * 3, [2, 3.3, 4, 4.4, 4.5, 2])
    fit = GaussianEM().fit(labels)
    assert fit.converged_
    assert np.ptp(fit.values_) > 0.5
    assert (fit.high_ - fit.low_ > 1).all()


@pytest.mark.parametrize("method", [GaussianEM, StudentEM])
def test_a_worker_who_decides_alone_is_a_finding(method):
    rng = np.random.default_rng(1)
    truth = rng.normal(5, 2, 50)
    labels = truth[:, None] + rng.normal(size=(50, 3))
    honest = labels.flatten()
    labels[:, 0] = 5.0 + 0.1 * rng.normal(size=50)
    task, worker = np.repeat(np.arange(50), 3), np.tile(["same", "ann", "bob"], 50)
    with pytest.warns(FindingWarning, match="'same' has"):
        found = method().fit((task, worker, labels.ravel())).findings_
    assert [one.affected for one in found if one.id == "one-worker-decides"] == [("same",)]
    noise = rng.normal(size=150)  # tasks that do not differ are not a finding
    for values in (honest, noise):
        found = method().fit((task, worker, values)).findings_
        assert "one-worker-decides" not in [one.id for one in found]


def test_a_worker_who_repeats_one_number_does_not_decide():
    rng = np.random.default_rng(0)
    truth = rng.normal(5, 2, 200)
    labels = truth[:, None] + 1.5 * rng.normal(size=(200, 3))
    labels[:, 0] = 5.0
    task, worker = np.repeat(np.arange(200), 3), np.tile(np.arange(3), 200)
    fit = GaussianEM().fit((task, worker, labels.ravel()))
    assert np.corrcoef(fit.values_, truth)[0, 1] > 0.7
    assert fit.noise_[0] >= np.std(labels) * 0.99


def test_values_follow_the_majority_if_one_of_three_stands_apart():
    rng = np.random.default_rng(0)
    truth, task, worker = rng.normal(size=60), np.repeat(np.arange(60), 3), np.tile(range(3), 60)
    value = truth[task] + 1.5 * (worker == 2) + 0.3 * rng.normal(size=180)
    fitted = GaussianEM().fit((task, worker, value))
    assert np.median(fitted.bias_) == pytest.approx(0, abs=1e-12)
    assert np.sqrt(np.mean((fitted.values_ - truth) ** 2)) < 0.3
    (found,) = [finding for finding in fitted.findings_ if finding.id == "workers-apart"]
    assert found.affected == (2,)
    assert "1 of 3 workers stands apart by 1.4" in str(found) or "by 1.5" in str(found)
    np.testing.assert_allclose(fitted.predict((task, worker, value)), fitted.values_, rtol=1e-9)


def test_spread_biases_and_known_numbers_keep_the_level():
    made = simulate.numbers(60, 9, bias=1.0)
    fitted = GaussianEM().fit(made.data)
    assert fitted.bias_.mean() == pytest.approx(0, abs=1e-9)
    assert "workers-apart" not in {finding.id for finding in fitted.findings_}
