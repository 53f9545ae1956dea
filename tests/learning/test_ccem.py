from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from wisecrowd.core.exceptions import ParameterError
from wisecrowd.kinds.classes.container import CrowdLabels
from wisecrowd.learning import CCEM
from wisecrowd.learning.ccem import CoupledModel
from wisecrowd.learning.training.crowd_data import CrowdData
from wisecrowd.nn.heads import SoftmaxConfusion


def crowd(n=60, n_workers=3, seed=0, spread=0.5):
    rng = np.random.default_rng(seed)
    truth = rng.integers(3, size=n)
    X = 3 * np.eye(3)[truth] + spread * rng.normal(size=(n, 3))
    right = rng.random((n, n_workers)) < np.linspace(0.55, 0.9, n_workers)
    votes = np.where(right, truth[:, None], rng.integers(3, size=(n, n_workers)))
    return X, votes, truth


def test_the_loss_is_the_formula():
    X, votes, _ = crowd(n=10)
    torch.manual_seed(0)
    data = CrowdData(X, CrowdLabels.from_matrix(votes), np.full(10, -1))
    model = CoupledModel(nn.Linear(3, 3), SoftmaxConfusion(3, 3, strength=1.5))
    f = torch.softmax(model.network(torch.tensor(X, dtype=torch.float32)), 1)
    theta = model.confusion()
    each = [
        -torch.log(sum(f[i, k] * theta[j, k, votes[i, j]] for k in range(3)))
        for i in range(10)
        for j in range(3)
    ]
    loss = model.loss(data.batch(torch.arange(10)))
    torch.testing.assert_close(loss, torch.stack(each).mean())
    scores = model.label_log_probas(data.batch(torch.arange(10)))
    torch.testing.assert_close(-scores, torch.stack(each))


def test_a_perfect_crowd_and_fixed_identity_is_cross_entropy():
    X, _, truth = crowd(n=12)
    data = CrowdData(X, CrowdLabels.from_matrix(truth[:, None]), np.full(12, -1))
    model = CoupledModel(nn.Linear(3, 3), SoftmaxConfusion(1, 3, strength=200.0))
    logits = model.network(torch.tensor(X, dtype=torch.float32))
    expected = nn.functional.cross_entropy(logits, torch.from_numpy(truth))
    torch.testing.assert_close(model.loss(data.batch(torch.arange(12))), expected)


def test_it_recovers_workers_from_single_labels():
    X, votes, truth = crowd(n=3000)
    worker = np.random.default_rng(1).integers(3, size=3000)
    labels = CrowdLabels.from_arrays(np.arange(3000), worker, votes[np.arange(3000), worker])
    model = CCEM(module="linear", epochs=12, lr=0.05, crowd_lr=0.05).fit(X, labels)
    accuracy = np.linspace(0.55, 0.9, 3)
    true = accuracy[:, None, None] * np.eye(3) + (1 - accuracy)[:, None, None] / 3
    assert np.abs(model.confusion_ - true).max() < 0.08
    assert model.score(X, truth) > 0.97


def test_an_integer_weight_is_a_repetition():
    X, votes, _ = crowd(n=40)
    task, worker = np.repeat(np.arange(40), 3), np.tile(np.arange(3), 40)
    weight = 1 + task % 3
    weighted = CrowdLabels.from_arrays(task, worker, votes.ravel(), weight=weight)
    repeated = CrowdLabels.from_arrays(
        *(np.repeat(a, weight) for a in (task, worker, votes.ravel())), duplicates="keep"
    )
    one, two, plain = (
        CCEM(module="linear", epochs=3, lr=0.1).fit(X, y) for y in (weighted, repeated, votes)
    )
    np.testing.assert_allclose(one.confusion_, two.confusion_, atol=1e-5)
    np.testing.assert_allclose(one.probas_, two.probas_, atol=1e-4)
    assert np.abs(one.confusion_ - plain.confusion_).max() > 1e-3


def test_a_worker_without_labels_keeps_the_start():
    X, votes, _ = crowd(n=40)
    labels = CrowdLabels.from_arrays(
        np.repeat(np.arange(40), 3), np.tile([0, 1, 3], 40), votes.ravel(), workers=range(4)
    )
    model = CCEM(module="linear", epochs=2, strength=3.0).fit(X, labels)
    start = np.exp(3) / (np.exp(3) + 2)
    np.testing.assert_allclose(np.diagonal(model.confusion_[2]), start, atol=1e-6)
    assert (np.abs(np.diagonal(model.confusion_[0]) - start) > 1e-4).any()


def test_bad_parameter():
    X, votes, _ = crowd(n=20)
    with pytest.raises(ParameterError, match="strength is -1"):
        CCEM(strength=-1).fit(X, votes)
