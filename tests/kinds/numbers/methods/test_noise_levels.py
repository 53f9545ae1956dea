"""NoiseLevels: exact on trees, near the truth on loops, and the same on both kernels."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from wisecrowd import simulate
from wisecrowd.aggregation import Mean, NoiseLevels
from wisecrowd.core.exceptions import ParameterError
from wisecrowd.kinds.numbers import kernels as reference
from wisecrowd.kinds.numbers import kernels_fast
from wisecrowd.kinds.numbers.container import CrowdNumbers

LEVELS = (0.2, 1.0, 4.0)


def enumerate_levels(data, levels, mean, variance):
    """Return beliefs (J, S), means and variances (N,) by a sum over the levels of all workers."""
    J, S = data.n_workers, len(levels)
    belief, first, second, total = np.zeros((J, S)), 0.0, 0.0, 0.0
    weights = []
    for combination in itertools.product(range(S), repeat=J):
        noise = levels[list(combination)]
        log_p, m, v = 0.0, np.empty(data.n_tasks), np.empty(data.n_tasks)
        for i in range(data.n_tasks):
            rows = slice(data.indptr[i], data.indptr[i + 1])
            y, s = data.value[rows], noise[data.worker[rows]]
            covariance = np.diag(s) + variance
            away = y - mean
            solved = np.linalg.solve(covariance, away)
            log_p -= 0.5 * (away @ solved + np.linalg.slogdet(2 * np.pi * covariance)[1])
            m[i] = mean + variance * solved.sum()
            v[i] = 1 / (1 / variance + (1 / s).sum())
        weights.append((log_p, combination, m, v))
    top = max(one[0] for one in weights)
    for log_p, combination, m, v in weights:
        w = np.exp(log_p - top)
        belief[np.arange(J), list(combination)] += w
        first, second, total = first + w * m, second + w * (v + m**2), total + w
    return belief / total, first / total, second / total - (first / total) ** 2


def tree():
    # t0: a b c, t1: c d, t2: d e: no cycle.
    task, worker = [0, 0, 0, 1, 1, 2, 2], [0, 1, 2, 2, 3, 3, 4]
    return CrowdNumbers.from_arrays(task, worker, [1.0, 1.4, -0.8, 2.0, 0.1, -1.0, 2.5])


@pytest.mark.parametrize("compile_from", [0, 10**12])
def test_trees_are_exact(monkeypatch, compile_from):
    monkeypatch.setattr("wisecrowd.kernels.COMPILE_FROM", compile_from)
    data = tree()
    fitted = NoiseLevels(levels=LEVELS, learn=False, tol=1e-13).fit(data)
    belief, mean, variance = enumerate_levels(
        data, fitted.levels_, fitted.truth_mean_, fitted.truth_variance_
    )
    np.testing.assert_allclose(fitted.level_probas_, belief, atol=1e-9)
    np.testing.assert_allclose(fitted.values_, mean, atol=1e-9)
    np.testing.assert_allclose(fitted.variance_, variance, atol=1e-9)


def test_loops_are_close():
    errors, plain = [], []
    for seed in range(5):
        made = simulate.numbers(8, 5, simulate.PerTask(3), random_state=seed, noise=(0.3, 2.0))
        fitted = NoiseLevels(levels=LEVELS, learn=False).fit(made.data)
        _, mean, _ = enumerate_levels(
            made.data, fitted.levels_, fitted.truth_mean_, fitted.truth_variance_
        )
        errors.append(np.abs(fitted.values_ - mean).max())
        plain.append(np.abs(Mean().fit(made.data).values_ - mean).max())
    assert np.mean(errors) < 0.1 * np.mean(plain)


def test_the_projected_version_is_close_to_the_exact_one():
    data = simulate.numbers(60, 10, simulate.PerTask(4)).data
    exact, projected = (NoiseLevels(exact=exact).fit(data) for exact in (True, False))
    assert np.abs(exact.values_ - projected.values_).max() < 0.1


def test_good_workers_are_told_from_bad_ones():
    noise = np.repeat([0.2, 2.0], 5)
    made = simulate.numbers(150, 10, simulate.PerTask(4), noise=noise)
    fitted = NoiseLevels(exact=False).fit(made.data)
    assert fitted.noise_[:5].max() < fitted.noise_[5:].min()
    assert fitted.score(made.data, made.truth) > Mean().fit(made.data).score(made.data, made.truth)


def test_centring_removes_biases():
    made = simulate.numbers(200, 8, simulate.PerTask(4), noise=(0.2, 0.5), bias=1.0)
    plain, centred = (
        NoiseLevels(exact=False, center=center).fit(made.data) for center in ("none", "gaussian-em")
    )
    truth = made.truth
    assert centred.score(made.data, truth) > plain.score(made.data, truth) + 0.05
    assert np.corrcoef(centred.bias_, made.bias)[0, 1] > 0.98


@pytest.mark.parametrize("levels", [(), (1.0, 1.0), (0.0, 1.0), "x", 3.0, (1e9,)])
def test_levels_that_make_no_sense_are_refused(levels):
    with pytest.raises(ParameterError, match="levels is"):
        NoiseLevels(levels=levels).fit(tree())


def test_labels_far_apart_do_not_make_a_grid_of_millions():
    """Precise workers, tasks far apart, and one new task with a typing error."""
    task = np.repeat(np.arange(4), 3)
    labels = np.repeat([0.0, 1e6, 2e6, 3e6], 3) + np.tile([-1.0, 0.5, 1.0], 4)
    model = NoiseLevels().fit((task, np.tile(["a", "b", "c"], 4), labels))
    points = reference._grids(*_grid_input(model, labels.reshape(4, 3)))[2]
    assert points.max() < 1000
    spoiled = model.predict((["t"] * 3, ["a", "b", "c"], [5.0, 6.0, 5e12]))
    assert np.isfinite(spoiled).all()
    points = reference._grids(*_grid_input(model, np.array([[5.0, 6.0, 5e12]])))[2]
    assert points.max() <= reference.MOST_POINTS + 2


@pytest.mark.parametrize("far", [5.0, 5e12])
def test_kernels_agree_on_labels_far_apart(far):
    levels = np.array([0.1, 1.0, 10.0])
    found = []
    for kernels in (reference, kernels_fast):
        edges = reference.Edges(
            np.array([0, 3, 3]), np.array([1.0, 2.0, far]), np.ones(3), np.zeros(3)
        )
        priors = reference.NormalPriors(np.zeros(2), np.ones(2), np.full(2, np.nan))
        answer, mean, variance = np.empty((3, 3)), np.empty(2), np.empty(2)
        message = np.full((3, 3), -np.log(3))
        kernels.level_step(edges, priors, levels, message, answer, mean, variance)
        found.append((mean, variance))
    assert np.allclose(found[0][0], found[1][0])
    assert np.allclose(found[0][1], found[1][1])
    assert (found[0][1] > 0).all()


def _grid_input(model, labels):
    n, width = labels.shape
    edges = reference.Edges(
        np.arange(0, n * width + 1, width), labels.ravel(), np.ones(n * width), np.zeros(n * width)
    )
    priors = reference.NormalPriors(
        np.full(n, model.truth_mean_), np.full(n, 1 / model.truth_variance_), np.full(n, np.nan)
    )
    return edges, priors, model.levels_
