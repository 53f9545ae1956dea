"""deepMF: its E-step by hand, and how its bound relates to the coupled cross entropy."""

from __future__ import annotations

import numpy as np
import torch
from scipy.special import digamma
from torch import nn

from wisecrowd.aggregation import MeanField
from wisecrowd.kinds.classes.container import CrowdLabels
from wisecrowd.learning import DeepMF
from wisecrowd.learning.training.crowd_data import CrowdData
from wisecrowd.learning.training.label_model import forecast
from wisecrowd.nn.objectives import coupled_cross_entropy


def crowd(per_task, n=40, n_workers=5, seed=0):
    rng = np.random.default_rng(seed)
    task = np.repeat(np.arange(n), per_task)
    worker = np.concatenate([rng.permutation(n_workers)[:per_task] for _ in range(n)])
    label = rng.integers(3, size=n * per_task)
    labels = CrowdLabels.from_arrays(task, worker, label, classes=[0, 1, 2])
    return rng.normal(size=(n, 4)), labels, rng


def test_the_e_step_by_hand():
    X, labels, _ = crowd(per_task=3)
    torch.manual_seed(0)
    network = nn.Linear(4, 3)
    method = DeepMF(clip=1.0, rounds=1, prior=1 + 3 * np.eye(3))
    data = CrowdData(X, labels, np.full(len(X), -1))
    model = method._build(network, data)
    model.begin_epoch(0, data)
    q = model.targets.double().numpy()
    model.begin_epoch(1, data)
    beta = np.tile(1 + 3 * np.eye(3), (labels.n_workers, 1, 1))
    for i, j, y in zip(labels.task, labels.worker, labels.label, strict=True):
        beta[j, :, y] += q[i]
    f = torch.softmax(network(torch.tensor(X, dtype=torch.float32)), 1).detach().double().numpy()
    score = np.log(f)
    logs = digamma(beta) - digamma(beta.sum(axis=2, keepdims=True))
    for i, j, y in zip(labels.task, labels.worker, labels.label, strict=True):
        score[i] += logs[j, :, y]
    expected = np.exp(score) / np.exp(score).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(model.targets, expected, atol=1e-6)


def test_the_bound_rises_while_the_network_is_fixed():
    X, labels, rng = crowd(per_task=3)
    h = rng.dirichlet(np.ones(3), size=len(X))
    fit = MeanField(class_prior="uniform", accelerate=False, max_iter=50, tol=0.0)
    assert (np.diff(fit.fit(labels, task_prior=h).history_) > -1e-9).all()


# ----------------------------------------------------- the bound and the coupled cross entropy


def likelihoods(X, labels, f, theta):
    """Return the coupled log-likelihood, the bound at the best q, and the bound at q = f."""
    data = CrowdData(X, labels, np.full(len(X), -1))
    batch = data.batch(torch.arange(len(X)))
    rows = torch.from_numpy(np.log(theta[labels.worker, :, labels.label]))
    log_f = torch.from_numpy(np.log(f))
    coupled = -labels.n_annotations * float(coupled_cross_entropy(log_f, rows, batch))

    def bound(q):
        value = np.sum(q * (np.log(f) - np.log(np.maximum(q, 1e-300))))
        return float(value + np.sum(q[labels.task] * rows.numpy()))

    return coupled, bound(forecast(np.log(f), labels, theta)), bound(f)


def test_one_label_per_task_makes_the_best_bound_the_coupled_cross_entropy():
    X, labels, rng = crowd(per_task=1)
    f, theta = rng.dirichlet(np.ones(3), len(X)), rng.dirichlet(np.ones(3), (5, 3))
    coupled, best, tied = likelihoods(X, labels, f, theta)
    np.testing.assert_allclose(best, coupled, rtol=1e-12)
    assert tied < coupled - 0.1


def test_the_library_s_own_bound_says_so_too():
    """Dirichlet rows so sure of themselves that the matrices are points."""
    X, labels, rng = crowd(per_task=1)
    f, theta = rng.dirichlet(np.ones(3), len(X)), rng.dirichlet(2 * np.ones(3), 3)
    fit = MeanField(prior=1e9 * theta, class_prior="uniform", tol=1e-12).fit(labels, task_prior=f)
    coupled, _, _ = likelihoods(X, labels, f, np.tile(theta, (5, 1, 1)))
    # its uniform class prior is one more factor of 1 / 3 per task
    np.testing.assert_allclose(fit.history_[-1] + len(X) * np.log(3), coupled, rtol=1e-4)


def test_with_more_labels_the_bound_at_f_is_a_jensen_bound_and_the_best_one_another_likelihood():
    X, labels, rng = crowd(per_task=3)
    for _ in range(20):
        f, theta = rng.dirichlet(np.ones(3), len(X)), rng.dirichlet(np.ones(3), (5, 3))
        coupled, best, tied = likelihoods(X, labels, f, theta)
        joint = np.log(f)
        np.add.at(joint, labels.task, np.log(theta[labels.worker, :, labels.label]))
        np.testing.assert_allclose(best, np.log(np.exp(joint).sum(axis=1)).sum(), rtol=1e-12)
        assert tied < min(coupled, best)
        assert abs(best - coupled) > 1e-3


def test_a_certain_network_makes_all_three_equal():
    X, labels, rng = crowd(per_task=3)
    f = np.maximum(np.eye(3)[rng.integers(3, size=len(X))], 1e-200)
    theta = rng.dirichlet(np.ones(3), (5, 3))
    coupled, best, tied = likelihoods(X, labels, f, theta)
    np.testing.assert_allclose([best, tied], coupled, rtol=1e-9)
