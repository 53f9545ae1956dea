"""Losses against sums written out over classes and labels."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from wisecrowd.nn.batches import CrowdBatch
from wisecrowd.nn.objectives import (
    coupled_cross_entropy,
    label_log_probas,
    log_joint,
    marginal_log_likelihood,
    posterior_cross_entropy,
)

N_TASKS, N_WORKERS, N_CLASSES, N_LABELS = 5, 4, 3, 12


@pytest.fixture(params=[None, "weights"])
def world(request):
    rng = np.random.default_rng(1)
    f = rng.dirichlet(np.ones(N_CLASSES), N_TASKS)
    theta = rng.dirichlet(np.ones(N_CLASSES), (N_WORKERS, N_CLASSES))
    task = np.sort(rng.integers(0, N_TASKS - 1, N_LABELS))  # the last task has no labels
    worker = rng.integers(0, N_WORKERS, N_LABELS)
    label = rng.integers(0, N_CLASSES, N_LABELS)
    weight = rng.integers(1, 4, N_LABELS).astype(float) if request.param else None
    return f, theta, task, worker, label, weight


def as_tensors(world):
    f, theta, task, worker, label, weight = world
    batch = CrowdBatch(
        torch.zeros(N_TASKS, 1), torch.arange(N_TASKS),
        torch.from_numpy(task), torch.from_numpy(worker), torch.from_numpy(label),
        None if weight is None else torch.from_numpy(weight),
    )  # fmt: skip
    rows = torch.from_numpy(np.log(theta[worker, :, label]))
    return torch.from_numpy(np.log(f)), rows, batch


def weights_of(world):
    return np.ones(N_LABELS) if world[5] is None else world[5]


def test_coupled_cross_entropy_is_each_label_explained_alone(world):
    f, theta, task, worker, label, _ = world
    each = [
        math.log(sum(f[i, k] * theta[j, k, y] for k in range(N_CLASSES)))
        for i, j, y in zip(task, worker, label, strict=True)
    ]
    np.testing.assert_allclose(label_log_probas(*as_tensors(world)), each)
    expected = -np.average(each, weights=weights_of(world))
    assert float(coupled_cross_entropy(*as_tensors(world))) == pytest.approx(expected)


def test_marginal_likelihood_and_posterior_are_sums_over_classes(world):
    f, theta, task, worker, label, _ = world
    joint = f.copy()
    for i, j, y, w in zip(task, worker, label, weights_of(world), strict=True):
        joint[i] *= theta[j, :, y] ** w
    np.testing.assert_allclose(log_joint(*as_tensors(world)).exp(), joint)
    expected = np.log(joint.sum(axis=1)).mean()
    assert float(marginal_log_likelihood(*as_tensors(world))) == pytest.approx(expected)


def test_one_label_per_task_makes_both_likelihoods_one(world):
    f, theta, *_ = world
    batch = CrowdBatch(
        torch.zeros(3, 1), torch.arange(3), torch.arange(3),
        torch.tensor([0, 3, 1]), torch.tensor([1, 1, 2]),
    )  # fmt: skip
    log_f = torch.from_numpy(np.log(f[:3]))
    rows = torch.from_numpy(np.log(theta[batch.worker, :, batch.label]))
    coupled = coupled_cross_entropy(log_f, rows, batch)
    torch.testing.assert_close(-coupled, marginal_log_likelihood(log_f, rows, batch))


def test_the_expected_log_is_below_and_meets_at_one_hot_outputs(world):
    log_f, rows, batch = as_tensors(world)

    def bound(outputs):  # Σ_k f_k log θ[k, y], the tied-delta evidence bound
        losses = -(outputs[batch.task] * rows).sum(dim=1)
        return batch.mean(losses)

    assert bound(log_f.exp()) >= coupled_cross_entropy(log_f, rows, batch)
    sure = torch.eye(N_CLASSES, dtype=torch.float64)[torch.arange(N_TASKS) % N_CLASSES]
    torch.testing.assert_close(
        bound(sure), coupled_cross_entropy((sure + 1e-300).log(), rows, batch)
    )


def test_posterior_cross_entropy(world):
    f = world[0]
    targets = np.random.default_rng(2).dirichlet(np.ones(N_CLASSES), N_TASKS)
    losses = -(targets * np.log(f)).sum(axis=1)
    log_f, q = torch.from_numpy(np.log(f)), torch.from_numpy(targets)
    assert float(posterior_cross_entropy(log_f, q)) == pytest.approx(losses.mean())
    weight = np.array([1.0, 2, 0, 1, 3])
    found = posterior_cross_entropy(log_f, q, torch.from_numpy(weight))
    assert float(found) == pytest.approx(np.average(losses, weights=weight))
