"""Worker accuracies against closed forms, the observed information and simulated crowds."""

from __future__ import annotations

import numpy as np
import pytest

from wisecrowd import simulate
from wisecrowd.aggregation.classes.dawid_skene import DawidSkene
from wisecrowd.core.labels import CrowdLabels
from wisecrowd.families import worker_accuracy
from wisecrowd.families.worker_accuracy import accuracy_fitted, accuracy_of


def random_labels(n_tasks=40, n_workers=5, n_classes=3, seed=0, weight=False):
    rng = np.random.default_rng(seed)
    mask = rng.random((n_tasks, n_workers)) < 0.6
    task, worker = np.nonzero(mask)
    return CrowdLabels(
        task.astype(np.int32),
        worker.astype(np.int32),
        rng.integers(0, n_classes, len(task)).astype(np.int32),
        np.arange(n_tasks),
        np.arange(n_workers),
        np.arange(n_classes),
        weight=rng.uniform(0.5, 2, len(task)) if weight else None,
    )


def random_params(n_workers=5, n_classes=3, seed=1):
    rng = np.random.default_rng(seed)
    theta = rng.dirichlet(np.ones(n_classes), size=(n_workers, n_classes))
    return theta, rng.dirichlet(np.ones(n_classes))


def test_accuracy_is_the_expected_share_of_right_labels():
    theta, pi = random_params(4, 3)
    counts = np.random.default_rng(0).uniform(50, 500, size=(4, 3))
    accuracy, error = accuracy_of(theta, pi, counts)
    for j in range(4):
        assert accuracy[j] == pytest.approx(sum(pi[k] * theta[j, k, k] for k in range(3)))
        variance = sum(
            pi[k] ** 2 * theta[j, k, k] * (1 - theta[j, k, k]) / (counts[j, k] + 1)
            for k in range(3)
        )
        assert error[j] == pytest.approx(np.sqrt(variance), rel=0.3)


def test_accuracy_is_never_certain_and_never_wider_than_ignorance():
    _, error = accuracy_of(np.eye(2)[None], np.array([0.5, 0.5]), np.array([[10.0, 10.0]]))
    assert error[0] > 0.05
    _, error = accuracy_of(np.full((1, 2, 2), 0.5), np.array([1.0, 0.0]), np.zeros((1, 2)))
    assert error[0] == pytest.approx(0.5)


def expected_counts(labels, probas):
    K = labels.n_classes
    counts = np.zeros((labels.n_workers, K, K))
    weight = np.ones(labels.n_annotations) if labels.weight is None else labels.weight
    np.add.at(
        counts, (labels.worker, slice(None), labels.label), weight[:, None] * probas[labels.task]
    )
    return counts


@pytest.mark.parametrize("chunk", [7, 1 << 16])
def test_error_is_that_of_the_observed_information(monkeypatch, chunk):
    # One worker of unknown accuracy among others who say of each label how probable it is.
    monkeypatch.setattr(worker_accuracy, "CHUNK", chunk)
    n, rng = 400, np.random.default_rng(0)
    others = np.where(rng.random(n) < 0.7, rng.beta(3, 2, n), rng.beta(2, 3, n))

    def log_likelihood(a):
        return float(np.log(others * a + (1 - others) * (1 - a)).sum())

    a = 0.7
    for _ in range(5000):
        right = others * a / (others * a + (1 - others) * (1 - a))
        a = right.mean()
    step = 1e-3
    curvature = (2 * log_likelihood(a) - log_likelihood(a + step) - log_likelihood(a - step)) / (
        step**2
    )
    labels = CrowdLabels.from_arrays(
        np.arange(n), np.zeros(n, int), np.arange(n) % 2, classes=[0, 1]
    )
    probas = np.empty((n, 2))
    probas[np.arange(n), np.arange(n) % 2] = right
    probas[np.arange(n), 1 - np.arange(n) % 2] = 1 - right
    matrix = np.array([[[a, 1 - a], [1 - a, a]]])
    accuracy, error = accuracy_fitted(
        labels, probas, matrix, np.array([0.5, 0.5]), expected_counts(labels, probas)
    )
    assert accuracy == pytest.approx(a)
    assert error == pytest.approx(curvature**-0.5, rel=0.02)
    assert error > 1.5 * np.sqrt(a * (1 - a) / n)  # what known classes would say


@pytest.mark.parametrize("weight", [False, True])
def test_error_with_known_classes_is_that_of_counts_and_what_a_prior_adds(weight):
    labels = random_labels(weight=weight)
    probas = np.eye(3)[np.random.default_rng(2).integers(0, 3, labels.n_tasks)]
    counts, pi = expected_counts(labels, probas), np.array([0.5, 0.3, 0.2])
    plain = counts / counts.sum(axis=2, keepdims=True)
    _, error = accuracy_fitted(labels, probas, plain, pi, counts)
    np.testing.assert_allclose(error, accuracy_of(plain, pi, counts.sum(axis=2))[1])
    pulled = (plain + np.eye(3)) / 2
    _, wider = accuracy_fitted(labels, probas, pulled, pi, counts)
    pull = (1 - np.einsum("jkk->j", counts) / counts.sum(axis=(1, 2))) / 2
    _, alone = accuracy_of(pulled, pi, counts.sum(axis=2))
    np.testing.assert_allclose(wider, np.hypot(alone, pull))


@pytest.mark.parametrize(
    ("n_tasks", "workers", "per_task", "n_classes"),
    [
        (500, 25 * simulate.OneCoinWorkers(6, 2), 5, 2),
        (300, 20 * simulate.OneCoinWorkers(6, 2), 3, 4),  # 45 labels per worker
        (300, 30 * simulate.DirichletWorkers(6, 1), 5, 3),
    ],
)
def test_intervals_of_worker_accuracy_cover(n_tasks, workers, per_task, n_classes):
    covered = []
    for seed in range(20):
        made = simulate.crowd(
            n_tasks, workers, simulate.PerTask(per_task), n_classes=n_classes, random_state=seed
        )
        table = DawidSkene()._fit_without_checks(made.labels).worker_columns()
        truth = made.worker_accuracy
        covered += ((table["accuracy_low"] <= truth) & (truth <= table["accuracy_high"])).tolist()
    assert 0.925 <= np.mean(covered) <= 0.985
