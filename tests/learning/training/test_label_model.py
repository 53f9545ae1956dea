from __future__ import annotations

from itertools import product

import numpy as np
from scipy.optimize import minimize

import wisecrowd as wc
from wisecrowd.kinds.classes.container import CrowdLabels
from wisecrowd.learning.training.crowd_data import CrowdData
from wisecrowd.learning.training.label_model import (
    confusion_from,
    expected_counts,
    fit_confusion,
    forecast,
    label_log_probas,
    soft_votes,
)


def problem(n=40, n_workers=3, n_classes=2, seed=0):
    rng = np.random.default_rng(seed)
    f = rng.dirichlet(np.ones(n_classes), size=n)
    votes = rng.integers(n_classes, size=(n, n_workers))
    theta = rng.dirichlet(np.ones(n_classes), size=(n_workers, n_classes))
    return f, votes, theta, CrowdLabels.from_matrix(votes)


def test_the_fit_is_the_maximum_that_a_general_optimiser_finds():
    f, votes, _, labels = problem()
    s, found = 0.1, fit_confusion(problem()[0], labels, max_iter=3000)
    start = s * (1 + 2 * np.eye(2))

    def loss(flat):
        logits = flat.reshape(3, 2, 2)
        theta = np.exp(logits) / np.exp(logits).sum(2, keepdims=True)
        return -objective(theta)

    def objective(theta):
        likelihood = sum(
            np.log(f[i] @ theta[j, :, votes[i, j]]) for i, j in product(range(40), range(3))
        )
        return likelihood + (start * np.log(theta)).sum()

    best = -minimize(loss, np.zeros(12), method="BFGS").fun
    assert objective(found) > best - 1e-3  # EM stops on small changes
    assert objective(found) < best + 1e-6


def test_certain_classes_are_counted():
    f, votes, _, labels = problem()
    sure = np.eye(2)[f.argmax(axis=1)]
    found = fit_confusion(sure, labels, smoothing=0.1)
    counts = np.broadcast_to(0.1 * (1 + 2 * np.eye(2)), (3, 2, 2)).copy()
    for i, j in product(range(40), range(3)):
        counts[j, f[i].argmax(), votes[i, j]] += 1
    np.testing.assert_allclose(found, counts / counts.sum(2, keepdims=True))
    np.testing.assert_allclose(
        confusion_from(sure, labels, 0.0), expected_counts(sure, labels) / expected_counts(
            sure, labels).sum(2, keepdims=True))  # fmt: skip


def test_a_worker_without_labels_leans_to_the_diagonal():
    labels = CrowdLabels.from_arrays([0, 1], ["a", "a"], [0, 1], workers=["a", "b"])
    theta = fit_confusion(np.full((2, 2), 0.5), labels)[1]
    np.testing.assert_allclose(theta, [[0.75, 0.25], [0.25, 0.75]])


def test_weights_are_repetitions():
    f, votes, _, _ = problem()
    task, worker = np.repeat(np.arange(40), 3), np.tile(np.arange(3), 40)
    weight = 1 + task % 2
    weighted = CrowdLabels.from_arrays(task, worker, votes.ravel(), weight=weight)
    repeated = CrowdLabels.from_arrays(
        *(np.repeat(a, weight) for a in (task, worker, votes.ravel())), duplicates="keep"
    )
    np.testing.assert_allclose(fit_confusion(f, weighted), fit_confusion(f, repeated))
    theta = fit_confusion(f, weighted)
    np.testing.assert_allclose(
        forecast(np.log(f), weighted, theta), forecast(np.log(f), repeated, theta)
    )
    np.testing.assert_allclose(expected_counts(f, weighted), expected_counts(f, repeated))


def test_label_probabilities_and_forecast_are_the_formulas():
    f, votes, theta, labels = problem(n_classes=3)
    found = label_log_probas(np.log(f), labels, np.log(theta)).reshape(40, 3)
    posterior = forecast(np.log(f), labels, theta)
    for i in range(40):
        joint = f[i].copy()
        for j in range(3):
            np.testing.assert_allclose(np.exp(found[i, j]), f[i] @ theta[j, :, votes[i, j]])
            joint *= theta[j, :, votes[i, j]]
        np.testing.assert_allclose(posterior[i], joint / joint.sum())


def test_impossible_labels_stay_finite():
    labels = CrowdLabels.from_matrix([[0, 1]])
    values = label_log_probas(np.array([[0.0, -1000.0]]), labels, np.full((2, 2, 2), -690.0))
    np.testing.assert_allclose(values, -690.0)
    bare = CrowdLabels.from_arrays([0], ["a"], [0], tasks=[0, 1], classes=[0, 1])
    np.testing.assert_allclose(
        forecast(np.log([[0.3, 0.7], [0.3, 0.7]]), bare, np.eye(2)[None])[1], [0.3, 0.7]
    )


def data(weight=None, gold=(-1, -1, -1)):
    labels = wc.CrowdLabels.from_arrays(
        [0, 0, 0, 1, 2], [0, 1, 2, 0, 0], ["a", "a", "b", "b", "b"],
        weight=None if weight is None else [*weight, 1.0],
    )  # fmt: skip
    labels = labels.select_annotations(labels.task < 2)  # the last task keeps no label
    return CrowdData(np.zeros((3, 1)), labels, np.array(gold))


def test_votes_are_shares_gold_is_certain_and_no_labels_are_the_mean():
    np.testing.assert_allclose(soft_votes(data()), [[2 / 3, 1 / 3], [0, 1], [0.5, 0.5]])
    weighted = soft_votes(data(weight=[1.0, 1.0, 2.0, 4.0]))
    np.testing.assert_allclose(weighted, [[0.5, 0.5], [0, 1], [0.25, 0.75]])
    np.testing.assert_allclose(soft_votes(data(gold=(1, -1, -1)))[0], [0, 1])


def test_counts_and_matrices_by_hand():
    labels = data(weight=[1.0, 1.0, 2.0, 4.0]).labels
    probas = np.array([[0.75, 0.25], [0.5, 0.5], [1.0, 0.0]])
    counts = expected_counts(probas, labels)
    np.testing.assert_allclose(counts[0], [[0.75, 2], [0.25, 2]])
    np.testing.assert_allclose(counts[2], [[0, 1.5], [0, 0.5]])
    matrix = confusion_from(probas, labels, 1.0)
    np.testing.assert_allclose(matrix[2], [[1 / 3.5, 2.5 / 3.5], [1 / 2.5, 1.5 / 2.5]])
