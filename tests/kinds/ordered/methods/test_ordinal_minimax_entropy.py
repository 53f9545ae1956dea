"""OrdinalMinimaxEntropy: the case of two classes, a general optimiser as oracle, monotone."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import log_softmax, logsumexp

from wisecrowd import simulate
from wisecrowd.aggregation import MinimaxEntropy, OrdinalMinimaxEntropy
from wisecrowd.kinds.ordered.methods.ordinal_minimax_entropy import cut_basis


def crowd(n_tasks=60, n_classes=4, seed=0):
    graph = simulate.PerTask(5)
    return simulate.graded_responses(n_tasks, 8, graph, n_classes=n_classes, random_state=seed)


def test_two_classes_are_minimax_entropy():
    labels = crowd(n_classes=2).labels
    ordinal = OrdinalMinimaxEntropy(anchor=0.0, max_iter=30, tol=0.0).fit(labels)
    nominal = MinimaxEntropy(max_iter=30, tol=0.0).fit(replace(labels, ordered=False))
    np.testing.assert_allclose(ordinal.probas_, nominal.probas_, atol=1e-5)
    np.testing.assert_allclose(ordinal.cut_logits_[:, 0], nominal.worker_logits_, atol=1e-5)
    np.testing.assert_allclose(ordinal.task_cut_logits_[:, 0], nominal.task_logits_, atol=1e-4)


def test_basis_has_both_sides_of_every_cut():
    basis = cut_basis(4).reshape(3, 2, 2, 4, 4)
    k, label = np.indices((4, 4))
    for s in range(3):
        for a in range(2):
            for b in range(2):
                expected = ((k > s) == a) & ((label > s) == b)
                assert np.array_equal(basis[s, a, b], expected)


def penalised(labels, basis, workers, tasks, worker_penalty, task_penalty):
    """Return the objective, one annotation at a time."""
    K = labels.n_classes
    scores = np.full((labels.n_tasks, K), -np.log(K))
    for e in range(labels.n_annotations):
        i, j = labels.task[e], labels.worker[e]
        logits = np.tensordot(workers[j] + tasks[i], basis, 1)
        scores[i] += log_softmax(logits, axis=1)[:, labels.label[e]]
    centre = np.tile([0.35, -0.35, -0.35, 0.35], K - 1)  # an anchor of 0.7
    off = workers - centre
    penalty = 0.5 * worker_penalty * (off**2).sum() + 0.5 * task_penalty * (tasks**2).sum()
    return logsumexp(scores, axis=1).sum() - penalty


def test_objective_is_at_a_maximum():
    labels = crowd(8, 3).labels
    basis = cut_basis(3)
    model = OrdinalMinimaxEntropy(
        worker_penalty=1.0, task_penalty=2.0, anchor=0.7, tol=0.0, max_iter=3000
    ).fit(labels)
    shapes = (8, 8), (8, 8)
    start = np.concatenate([model.cut_logits_.ravel(), model.task_cut_logits_.ravel()])

    def minus(theta):
        workers, tasks = (
            part.reshape(s) for part, s in zip(np.split(theta, 2), shapes, strict=True)
        )
        return -penalised(labels, basis, workers, tasks, 1.0, 2.0)

    assert -minus(start) == pytest.approx(model.history_[-1], rel=1e-5)
    best = minimize(minus, start, method="L-BFGS-B", options={"maxiter": 30})
    assert -best.fun == pytest.approx(model.history_[-1], rel=1e-4)


def test_objective_never_falls():
    for seed in range(3):
        history = OrdinalMinimaxEntropy(max_iter=100).fit(crowd(seed=seed).labels).history_
        assert np.diff(history).min() >= -1e-9


def test_infinite_task_penalty_has_no_task_logits():
    model = OrdinalMinimaxEntropy(task_penalty=np.inf).fit(crowd().labels)
    assert not hasattr(model, "task_cut_logits_")
    assert np.isfinite(model.probas_).all()
    np.testing.assert_allclose(model.confusion_.sum(axis=2), 1.0)


def test_few_labels_per_worker_are_a_finding():
    graph = simulate.PerTask(5)
    few = simulate.graded_responses(60, 30, graph, n_classes=4).labels
    with pytest.warns(match="labels on average"):
        model = OrdinalMinimaxEntropy(max_iter=5).fit(few)
    assert "sparse-workers" in {one.id for one in model.findings_}
    many = OrdinalMinimaxEntropy(max_iter=5).fit(crowd().labels)
    assert "sparse-workers" not in {one.id for one in many.findings_}
