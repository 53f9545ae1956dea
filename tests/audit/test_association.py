from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

from wisecrowd import CrowdLabels
from wisecrowd.audit.association import association


def random_labels(n_tasks=6, n_workers=4, n_classes=3, seed=0, missing=0.3):
    rng = np.random.default_rng(seed)
    task, worker = np.nonzero(rng.random((n_tasks, n_workers)) > missing)
    label = rng.integers(0, n_classes, len(task))
    return CrowdLabels.from_arrays(
        task, worker, label, tasks=range(n_tasks), workers=range(n_workers),
        classes=range(n_classes),
    )  # fmt: skip


def statistic(labels, weights, j, own):
    """T of worker j, whose labels are ``own``, from its definition."""
    tasks = labels.task[labels.worker == j]
    scores = np.zeros((len(tasks), labels.n_classes))
    for row, i in enumerate(tasks):
        for e in np.flatnonzero((labels.task == i) & (labels.worker != j)):
            scores[row, labels.label[e]] += weights[labels.worker[e]]
    scores -= scores.mean(axis=1, keepdims=True)
    scores -= scores.mean(axis=0)
    return sum(scores[row, label] for row, label in enumerate(own)), (scores**2).sum()


@pytest.mark.parametrize("seed", range(3))
def test_slope_and_error_are_those_of_all_permutations(seed):
    labels = random_labels(seed=seed)
    weights = np.random.default_rng(seed + 10).random(labels.n_workers)
    found = association(labels, weights)
    for j in range(labels.n_workers):
        own = labels.label[labels.worker == j]
        if len(own) < 2:
            continue
        total, size = statistic(labels, weights, j, own)
        draws = [statistic(labels, weights, j, order)[0] for order in permutations(own)]
        assert found.slope[j] == pytest.approx(total / size)
        assert np.mean(draws) == pytest.approx(0, abs=1e-12)
        assert found.error[j] == pytest.approx(np.std(draws) / size)


def test_integer_weight_is_repetition():
    labels = random_labels(n_tasks=8, missing=0)
    weight = np.where(labels.worker == 2, 3.0, 1.0)
    heavy = CrowdLabels(
        labels.task, labels.worker, labels.label, labels.tasks, labels.workers, labels.classes,
        weight=weight,
    )  # fmt: skip
    votes = np.array([1.0, 1.0, 3.0, 1.0])
    np.testing.assert_allclose(
        association(heavy, np.ones(4)).slope[:2], association(labels, votes).slope[:2]
    )


def test_renaming_classes_changes_nothing():
    labels = random_labels(n_tasks=30)
    turned = CrowdLabels(
        labels.task, labels.worker, ((labels.label + 1) % 3).astype(np.int32), labels.tasks,
        labels.workers, labels.classes,
    )  # fmt: skip
    one, other = association(labels, np.ones(4)), association(turned, np.ones(4))
    for name in ("slope", "error", "typical_error", "z"):
        np.testing.assert_allclose(getattr(one, name), getattr(other, name), atol=1e-12)


def test_worker_alone_or_without_labels_tells_nothing():
    labels = CrowdLabels.from_arrays([0, 1, 2], ["a", "a", "b"], [0, 1, 0], workers=["a", "b", "c"])
    found = association(labels, np.ones(3))
    assert found.slope.tolist() == [0, 0, 0]
    assert np.isinf(found.error).all()
    assert found.z.tolist() == [0, 0, 0]


def test_null_distribution_is_standard_normal():
    rng = np.random.default_rng(3)
    truth = rng.integers(0, 3, 400)
    honest = np.where(rng.random((400, 5)) < 0.7, truth[:, None], rng.integers(0, 3, (400, 5)))
    spam = rng.choice(3, p=[0.6, 0.3, 0.1], size=(400, 200))
    labels = CrowdLabels.from_matrix(np.hstack([honest, spam]))
    weights = np.r_[np.ones(5), np.zeros(200)]
    z = association(labels, weights).z
    assert (z[:5] > 8).all()
    assert abs(z[5:].mean()) < 0.25  # three standard errors and a bit
    assert 0.85 < z[5:].std() < 1.15
