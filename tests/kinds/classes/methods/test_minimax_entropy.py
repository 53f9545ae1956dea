"""MinimaxEntropy: gradient, bound, the limit without tasks, a general optimiser as oracle."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import log_softmax, logsumexp

from wisecrowd.core.exceptions import ParameterError
from wisecrowd.inference.engine import cut_tasks
from wisecrowd.kinds.classes.container import CrowdLabels
from wisecrowd.kinds.classes.families import minimax_logits
from wisecrowd.kinds.classes.families.minimax_logits import (
    MinimaxModel,
    MinimaxParams,
    MinimaxState,
)
from wisecrowd.kinds.classes.methods.minimax_entropy import MinimaxEntropy
from wisecrowd.kinds.classes.prior import TaskPrior
from wisecrowd.simulate import ClassExperts, PerTask, crowd

PRIOR = np.log([0.5, 0.3, 0.2])
WORKER, TASK = 0.7, 1.9


def small_crowd(seed: int = 0, weighted: bool = False) -> CrowdLabels:
    workers = 4 * ClassExperts(n_known=1, p=0.95, q=0.6)
    labels = crowd(10, workers, PerTask(3), n_classes=3, random_state=seed).labels
    if not weighted:
        return labels
    weight = np.random.default_rng(seed).uniform(0.5, 2, labels.n_annotations)
    return CrowdLabels.from_arrays(labels.task, labels.worker, labels.label, weight=weight)


def log_likelihood(labels: CrowdLabels, task: np.ndarray, worker: np.ndarray) -> float:
    """Return the log-likelihood, one annotation at a time."""
    scores = np.tile(PRIOR, (labels.n_tasks, 1))
    weight = np.ones(labels.n_annotations) if labels.weight is None else labels.weight
    for e in range(labels.n_annotations):
        i, j = labels.task[e], labels.worker[e]
        scores[i] += weight[e] * log_softmax(task[i] + worker[j], axis=1)[:, labels.label[e]]
    return float(logsumexp(scores, axis=1).sum())


def penalised(labels: CrowdLabels, task: np.ndarray, worker: np.ndarray) -> float:
    penalty = 0.5 * WORKER * (worker**2).sum() + 0.5 * TASK * (task**2).sum()
    return log_likelihood(labels, task, worker) - float(penalty)


def one_pass(labels: CrowdLabels, task: np.ndarray, worker: np.ndarray, penalty: float = 1.0):
    model = MinimaxModel(penalty * WORKER, penalty * TASK, labels.n_workers, 3, PRIOR)
    (shard,) = cut_tasks(labels, TaskPrior(np.zeros((1, 3))), 1)
    params = MinimaxParams(worker, PRIOR)
    state, stats = model.local_step(shard, MinimaxState(task), params)
    return model, params, state, stats


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("stretch", [1, 1 << 21])
def test_objective_and_gradient(monkeypatch, weighted, stretch):
    monkeypatch.setattr(minimax_logits, "STRETCH", stretch)
    labels = small_crowd(1, weighted)
    rng = np.random.default_rng(0)
    task, worker = rng.normal(0, 0.5, (10, 3, 3)), rng.normal(0, 0.5, (4, 3, 3))
    model, params, state, stats = one_pass(labels, task, worker)
    value = penalised(labels, task, worker)
    assert model.objective(stats, params) == pytest.approx(value, rel=1e-12)
    step = 1e-6
    for index in [(0, 0, 0), (3, 2, 1), (1, 1, 2)]:
        moved = worker.copy()
        moved[index] += step
        numeric = (penalised(labels, task, moved) - value) / step
        slope = stats.slope[index] - WORKER * worker[index]
        assert slope == pytest.approx(numeric, abs=1e-4)
        moved = task.copy()
        moved[index] += step
        numeric = (penalised(labels, moved, worker) - value) / step
        # The step is the gradient through a positive definite matrix: it must point uphill.
        way = state.coefs - task
        ahead = penalised(labels, task + 1e-6 * way, worker) - value
        assert ahead > 0 or abs(numeric) < 1e-6


@pytest.mark.parametrize("size", [0.1, 1.0, 5.0])
def test_a_pass_climbs_from_anywhere(size):
    rng = np.random.default_rng(1)
    # Many labels per task and per worker and hardly a penalty: only the bound holds the step back.
    many = CrowdLabels.from_matrix(rng.integers(0, 3, (12, 15)))
    for labels, penalty in ((small_crowd(2), 1.0), (many, 1e-6)):
        task = rng.normal(0, size, (labels.n_tasks, 3, 3))
        worker = rng.normal(0, size, (labels.n_workers, 3, 3))
        model, params, state, stats = one_pass(labels, task, worker, penalty)
        for _ in range(30):
            value = model.objective(stats, params)
            params = model.global_step(stats, params)
            model, _, state, stats = one_pass(labels, state.coefs, params.coefs, penalty)
            assert model.objective(stats, params) >= value - 1e-9


def test_reaches_a_stationary_point_that_a_general_optimiser_cannot_improve():
    labels = small_crowd(3)
    model = MinimaxEntropy(
        worker_penalty=WORKER,
        task_penalty=TASK,
        class_prior=np.exp(PRIOR),
        max_iter=5000,
        tol=1e-14,
    ).fit(labels)
    shape = model.task_logits_.shape

    def minus(flat: np.ndarray) -> float:
        task, worker = np.split(flat, [np.prod(shape)])
        return -penalised(labels, task.reshape(shape), worker.reshape(4, 3, 3))

    start = np.concatenate([model.task_logits_.ravel(), model.worker_logits_.ravel()])
    assert -minus(start) == pytest.approx(model.history_[-1], abs=1e-5)
    better = minimize(minus, start, method="L-BFGS-B", options={"maxiter": 50})
    assert -better.fun <= model.history_[-1] + 1e-5


def test_without_tasks_it_is_dawid_skene_with_normal_logits():
    workers = 5 * ClassExperts(n_known=1, p=0.95, q=0.8)
    labels = crowd(60, workers, PerTask(4), n_classes=3, random_state=0).labels
    model = MinimaxEntropy(task_penalty=np.inf, worker_penalty=0.5, max_iter=3000, tol=1e-14)
    model.fit(labels)
    # EM with exact M-steps by a general optimiser, from the same start.
    q = np.zeros((60, 3))
    np.add.at(q, (labels.task, labels.label), 1.0)
    q /= q.sum(axis=1, keepdims=True)
    logits = np.zeros((5, 3, 3))
    for _ in range(60):
        counts = np.zeros((5, 3, 3))
        for i, j, label in zip(labels.task, labels.worker, labels.label, strict=True):
            counts[j, :, label] += q[i]

        def minus(flat, counts=counts):
            rows = flat.reshape(5, 3, 3)
            table = log_softmax(rows, axis=2)
            value = (counts * table).sum() - 0.25 * (rows**2).sum()
            slope = counts - counts.sum(axis=2, keepdims=True) * np.exp(table) - 0.5 * rows
            return -value, -slope.ravel()

        logits = minimize(minus, logits.ravel(), jac=True, tol=1e-10).x.reshape(5, 3, 3)
        scores = np.zeros((60, 3))
        table = log_softmax(logits, axis=2)
        for i, j, label in zip(labels.task, labels.worker, labels.label, strict=True):
            scores[i] += table[j, :, label]
        q = np.exp(scores - logsumexp(scores, axis=1, keepdims=True))
    np.testing.assert_allclose(model.probas_, q, atol=1e-3)
    np.testing.assert_allclose(model.confusion_, np.exp(table), atol=1e-3)
    with pytest.raises(AttributeError, match="task_logits_"):
        _ = model.task_logits_


def test_a_large_task_penalty_comes_near_the_limit():
    workers = 6 * ClassExperts(n_known=1, p=0.95, q=0.7)
    labels = crowd(200, workers, PerTask(5), n_classes=3, random_state=4).labels
    limit, near = (
        MinimaxEntropy(task_penalty=penalty, tol=1e-12, max_iter=3000).fit(labels)
        for penalty in (np.inf, 1e7)
    )
    np.testing.assert_allclose(limit.probas_, near.probas_, atol=1e-4)


def test_automatic_penalties_are_the_published_ones_for_two_classes():
    labels = CrowdLabels.from_matrix(
        [[0, 1, 1], [1, 1, 0], [0, 0, 0], [1, 0, 1], [1, 1, 1], [0] * 3]
    )
    assert MinimaxEntropy()._penalties(labels) == (1.0, pytest.approx(6 / 3))


def test_a_class_that_nobody_chose_is_no_class_unless_gold_says_so():
    labels = CrowdLabels.from_matrix([[0, 1, 2], [1, 1, 2], [2, 2, 2], [0, 0, 1]], classes=range(4))
    model = MinimaxEntropy().fit(labels)
    assert model.probas_[:, 3].max() < 1e-12
    assert MinimaxEntropy().fit(labels, gold={0: 3}).labels_[0] == 3


def test_new_tasks_are_treated_as_the_fitted_ones():
    labels = small_crowd(5)
    model = MinimaxEntropy(max_iter=7).fit(labels)
    np.testing.assert_allclose(model.predict_proba(labels), model.probas_, atol=1e-12)
    alone = model.predict_proba(labels[[2]])
    np.testing.assert_allclose(alone[0], model.probas_[2], atol=1e-9)


def test_workers_with_one_task_each_are_taken_for_one():
    votes = CrowdLabels.from_matrix([[0, 0, 0, 1], [1, 1, 1, 1], [0] * 4, [1, 1, 0, 1]] * 3)
    single = CrowdLabels.from_arrays(votes.task, np.arange(votes.n_annotations), votes.label)
    model = MinimaxEntropy().fit(single)
    assert model.labels_.tolist() == [0, 1] * 6
    assert model.confidence_.min() > 0.75
    assert np.ptp(model.worker_logits_, axis=0).max() == 0
    # As if one worker had given all the labels.
    one = CrowdLabels.from_arrays(
        votes.task, np.zeros(votes.n_annotations), votes.label, duplicates="keep"
    )
    pooled = MinimaxEntropy()._fit_without_checks(one)  # whose claims are not capped
    np.testing.assert_allclose(model.probas_, pooled.probas_, atol=1e-9)


def test_workers_with_several_tasks_are_their_own_beside_those_with_one():
    labels = small_crowd(6)
    task = np.concatenate([labels.task, np.arange(6)])
    worker = np.concatenate([labels.worker, 4 + np.arange(6)])
    label = np.concatenate([labels.label, [0, 1, 2, 0, 1, 2]])
    logits = MinimaxEntropy().fit(CrowdLabels.from_arrays(task, worker, label)).worker_logits_
    assert np.ptp(logits[4:], axis=0).max() == 0
    assert np.ptp(logits[:4], axis=0).max() > 0.1


@pytest.mark.parametrize(
    "options", [{"worker_penalty": -1}, {"task_penalty": 0.0}, {"task_penalty": "x"}]
)
def test_bad_penalties(options):
    with pytest.raises(ParameterError, match="penalty"):
        MinimaxEntropy(**options).fit(small_crowd(0))


# ---------------------------------------------------------------------------------------- real data


def error_of(labels, truth) -> float:
    return 1 - MinimaxEntropy().fit(labels).score(labels, truth)


@pytest.mark.parametrize(("name", "error"), [("bluebird", 0.0833), ("rte", 0.0750)])
def test_published_error_rates(real_crowd, name, error):
    assert error_of(*real_crowd(name)) == pytest.approx(error, abs=0.002)


def test_dog_has_no_published_rate_and_must_not_get_worse(real_crowd):
    assert error_of(*real_crowd("dog")) <= 0.166
