"""The ability-times-easiness model against enumeration, finite differences and integrals."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import integrate, optimize, stats
from scipy.special import expit, log_expit, logsumexp

from wisecrowd import simulate
from wisecrowd.inference.engine import cut_tasks
from wisecrowd.kinds.classes.container import CrowdLabels
from wisecrowd.kinds.classes.kernels import glad, glad_fast
from wisecrowd.kinds.classes.methods.glad import GLADModel, GLADParams, GLADState, Normal, _kernels
from wisecrowd.kinds.classes.prior import TaskPrior

STANDARD = GLADModel(Normal(1.0, 1.0), Normal(1.0, 1.0), 6, 3, None)


def crowd(n_tasks=25, n_workers=6, n_classes=3, seed=0):
    return simulate.crowd(
        n_tasks,
        n_workers * simulate.GLADWorkers(),
        simulate.PerTask(4),
        class_prior=np.arange(1, n_classes + 1) / np.arange(1, n_classes + 1).sum(),
        difficulty=simulate.GLADDifficulty(0, 0.7),
        random_state=seed,
    ).labels


def setting(labels, seed=0):
    rng = np.random.default_rng(seed)
    prior = TaskPrior(np.log(rng.dirichlet(np.ones(labels.n_classes), size=1)))
    (shard,) = cut_tasks(labels, prior, 1)
    params = GLADParams(
        rng.normal(0.5, 1, labels.n_workers), np.log(rng.dirichlet(np.ones(labels.n_classes)))
    )
    return shard, params, prior


def settle(shard, params):
    (easiness, probas), stats_ = STANDARD.answer(shard, None, params)
    return easiness, probas, stats_


def log_likelihoods(labels, ability, b, log_prior):
    """Return the log-likelihood of each task, one label at a time."""
    K = labels.n_classes
    joint = np.tile(log_prior, (labels.n_tasks, 1))
    weight = np.ones(labels.n_annotations) if labels.weight is None else labels.weight
    for i, j, y, w in zip(labels.task, labels.worker, labels.label, weight, strict=True):
        x = ability[j] * np.exp(b[i])
        for k in range(K):
            joint[i, k] += w * (log_expit(x) if k == y else log_expit(-x) - np.log(max(K - 1, 1)))
    return logsumexp(joint, axis=1)


def block_arguments(block, params):
    return (
        block.indptr, block.worker, block.label, block.weight, params.ability, params.log_class,
        block.prior_rows, block.prior_index,
    )  # fmt: skip


@pytest.mark.parametrize("n_classes", [1, 2, 4])
def test_values_are_those_of_enumeration(n_classes):
    labels = crowd(n_classes=n_classes)
    shard, params, prior = setting(labels)
    b = np.random.default_rng(1).normal(0, 1, labels.n_tasks)
    values = glad.difficulty_values(*block_arguments(shard, params), b)
    expected = log_likelihoods(labels, params.ability, b, params.log_class + prior.rows[0])
    np.testing.assert_allclose(values, expected, rtol=1e-10)


def test_weights_are_repetitions():
    once = crowd()
    weight = np.random.default_rng(0).integers(1, 4, once.n_annotations)
    columns = once.to_dict()
    weighted = CrowdLabels.from_arrays(
        columns["task"], columns["worker"], columns["label"], weight=weight.astype(float)
    )
    repeated = CrowdLabels.from_arrays(
        *(np.repeat(columns[c], weight) for c in ("task", "worker", "label")), duplicates="keep"
    )
    shard, params, _ = setting(weighted)
    other, _, _ = setting(repeated)
    first, second = settle(shard, params), settle(other, params)
    np.testing.assert_allclose(first[0], second[0], atol=1e-8)
    np.testing.assert_allclose(first[1], second[1], atol=1e-8)
    np.testing.assert_allclose(first[2].sums, second[2].sums, rtol=1e-7, atol=1e-7)
    assert first[2].log_likelihood == pytest.approx(second[2].log_likelihood, rel=1e-10)


def test_gradients_are_finite_differences():
    labels = crowd()
    shard, params, prior = setting(labels)
    block = shard
    b = np.random.default_rng(1).normal(0, 1, labels.n_tasks)
    log_prior = params.log_class + prior.rows[0]
    sums, mass = np.zeros((labels.n_workers, 3)), np.zeros(3)
    glad.difficulty_step(*block_arguments(block, params), b.copy(), 0.0, 0.0, 0, sums, mass, None)
    h = 1e-6
    for j in range(labels.n_workers):
        up, down = params.ability.copy(), params.ability.copy()
        up[j] += h
        down[j] -= h
        rise = log_likelihoods(labels, up, b, log_prior) - log_likelihoods(
            labels, down, b, log_prior
        )
        assert sums[j, 0] == pytest.approx(rise.sum() / (2 * h), abs=1e-6)
    point = glad._Block(*block_arguments(block, params)).at(b, 1.0, 1.0)
    rise = log_likelihoods(labels, params.ability, b + h, log_prior)
    rise -= log_likelihoods(labels, params.ability, b - h, log_prior)
    np.testing.assert_allclose(point.slope, rise / (2 * h) - (b - 1), atol=1e-6)


def test_curvature_bound_holds_everywhere():
    """The step of an ability is that of a parabola below the expected log-likelihood."""
    x = np.concatenate([np.linspace(-8, 8, 81), [1e-9, -1e-5]])
    bend = glad.half_tanh_ratio(x, expit(x))
    at = np.linspace(-12, 12, 97)
    for origin, curvature in zip(x, bend, strict=True):
        slope = 1 - expit(origin)
        parabola = -np.logaddexp(0, -origin) + slope * (at - origin)
        parabola -= 0.5 * curvature * (at - origin) ** 2
        assert (parabola <= -np.logaddexp(0, -at) + 1e-12).all()


def test_no_step_loses():
    for seed in range(5):
        labels = crowd(seed=seed)
        shard, params, _ = setting(labels, seed)
        state, value = GLADState(np.random.default_rng(seed).normal(0, 2, labels.n_tasks)), -np.inf
        for _ in range(10):
            state, stats_ = STANDARD.local_step(shard, state, params)
            reached = STANDARD.objective(stats_, params)
            assert reached >= value - 1e-10
            params, value = STANDARD.global_step(stats_, params), reached


@pytest.mark.parametrize("kernels", [glad, glad_fast])
def test_steps_that_would_lose_are_cut(kernels):
    """Far from the optimum, and with heavy labels, a plain Newton step overshoots."""
    labels = replace(crowd(), weight=np.full(100, 20.0))
    shard, params, _ = setting(labels)
    arguments = block_arguments(shard, params)
    for place in np.linspace(-4, 5, 19):
        start = np.full(labels.n_tasks, place)
        moved = start.copy()
        kernels.difficulty_step(*arguments, moved, 1.0, 1.0, 1, None, None, None)
        before = kernels.difficulty_values(*arguments, start) - 0.5 * (start - 1) ** 2
        after = kernels.difficulty_values(*arguments, moved) - 0.5 * (moved - 1) ** 2
        assert (after >= before - 1e-9 * np.abs(before)).all()


def test_a_guess_that_is_taken_back_costs_nothing():
    labels = crowd()
    shard, params, _ = setting(labels)
    block = shard
    best, _, before = settle(shard, params)
    wild = GLADParams(-5 * params.ability, params.log_class, extrapolated=True)
    state, _ = STANDARD.local_step(block, GLADState(best), wild)
    assert np.abs(state.log_easiness - best).max() > 0.5
    _, after = STANDARD.local_step(block, state, params)
    assert STANDARD.objective(after, params) == pytest.approx(
        STANDARD.objective(before, params), rel=1e-9
    )


def test_settled_easiness_is_the_best_there_is():
    labels = crowd()
    shard, params, prior = setting(labels)
    found, probas, stats_ = settle(shard, params)
    log_prior = params.log_class + prior.rows[0]
    grid = np.linspace(-6, 8, 1401)
    values = np.stack(
        [log_likelihoods(labels, params.ability, np.full(labels.n_tasks, b), log_prior)
         - 0.5 * (b - 1) ** 2 for b in grid]
    )  # fmt: skip
    reached = log_likelihoods(labels, params.ability, found, log_prior) - 0.5 * (found - 1) ** 2
    assert (reached >= values.max(axis=0) - 1e-9).all()
    assert stats_.log_likelihood + stats_.log_prior == pytest.approx(reached.sum(), rel=1e-10)
    np.testing.assert_allclose(probas.sum(axis=1), 1)


def test_held_out_likelihood_integrates_over_the_easiness():
    labels = crowd(n_tasks=4)
    shard, params, prior = setting(labels)
    log_prior = params.log_class + prior.rows[0]

    def density(b, i):
        value = log_likelihoods(labels, params.ability, np.full(4, b), log_prior)[i]
        return np.exp(value) * stats.norm.pdf(b, 1, 1)

    expected = sum(np.log(integrate.quad(density, -7, 9, args=(i,))[0]) for i in range(4))
    assert STANDARD.integrate(shard, None, params)[1].log_likelihood == pytest.approx(
        expected, abs=1e-3
    )


def test_abilities_from_counts_maximise_the_posterior():
    right, total = np.array([9.0, 2.0, 0.0]), np.array([10.0, 8.0, 0.0])
    found = STANDARD.abilities_from(right, total)

    def loss(a, j):
        x = a * np.e
        gain = -right[j] * np.logaddexp(0, -x) - (total[j] - right[j]) * np.logaddexp(0, x)
        return 0.5 * (a - 1) ** 2 - gain

    for j in range(3):
        best = optimize.minimize_scalar(loss, args=(j,)).x
        assert found[j] == pytest.approx(best, abs=0.01)


def test_log_density_of_a_normal_prior_is_zero_at_its_mean():
    values = np.array([0.0, 1.0, 4.0])
    at = Normal(1.0, 2.5)
    normal = stats.norm(1.0, 2.5**-0.5)
    expected = normal.logpdf(values) - normal.logpdf(1.0)
    assert at.log_density(values) == pytest.approx(expected.sum())
    assert Normal(1.0, 0.0).log_density(values) == 0.0
    assert Normal(1.0, np.inf).log_density(values) == 0.0


@pytest.mark.parametrize(("n", "module"), [(99, glad), (100, glad_fast)])
def test_kernels_are_compiled_for_large_blocks_only(monkeypatch, n, module):
    """By annotations × classes / 2, and five times as many as elsewhere."""
    monkeypatch.setattr("wisecrowd.kernels.COMPILE_FROM", 40)
    labels = CrowdLabels.from_arrays(np.arange(n), np.zeros(n, dtype=int), np.arange(n) % 4)
    (block,) = cut_tasks(labels, TaskPrior(np.zeros((1, 4))), 1)
    assert _kernels(block, GLADParams(np.ones(1), np.zeros(4))) is module
