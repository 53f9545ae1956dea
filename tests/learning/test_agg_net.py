from __future__ import annotations

from itertools import product

import numpy as np
import pytest
import torch
from torch import nn

from wisecrowd.aggregation import DawidSkene
from wisecrowd.core.exceptions import ParameterError
from wisecrowd.kinds.classes.container import CrowdLabels
from wisecrowd.learning import AggNet
from wisecrowd.learning.agg_net import PosteriorModel
from wisecrowd.learning.training.crowd_data import CrowdData


def crowd(n=80, n_workers=4, seed=0):
    rng = np.random.default_rng(seed)
    truth = rng.integers(3, size=n)
    X = 2 * np.eye(3)[truth] + 0.6 * rng.normal(size=(n, 3))
    right = rng.random((n, n_workers)) < np.linspace(0.5, 0.9, n_workers)
    votes = np.where(right, truth[:, None], rng.integers(3, size=(n, n_workers)))
    return X, votes, truth


class Silent(nn.Module):
    """A network that prefers no class."""

    def forward(self, x):
        return x.new_zeros(len(x), 3)


def model_of(network, X, votes, smoothing=0.01, gold=None):
    gold = np.full(len(X), -1) if gold is None else gold
    data = CrowdData(X, CrowdLabels.from_matrix(votes), gold)
    return PosteriorModel(network, data, 1, smoothing), data


def test_the_e_step_is_the_brute_force_posterior():
    X, votes, _ = crowd(n=15)
    torch.manual_seed(0)
    model, data = model_of(nn.Linear(3, 3), X, votes)
    theta = model.table.numpy().copy()
    model.begin_epoch(1, data)
    f = torch.softmax(model.network(torch.tensor(X, dtype=torch.float32)), 1).detach().numpy()
    joint = np.ones((15, 3))
    for i, k in product(range(15), range(3)):
        joint[i, k] = f[i, k] * np.prod([theta[j, k, votes[i, j]] for j in range(4)])
    joint /= joint.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(model.targets, joint, atol=1e-5)


def test_the_m_step_counts_the_posterior():
    X, votes, _ = crowd(n=15)
    model, data = model_of(nn.Linear(3, 3), X, votes, smoothing=0.3)
    model.begin_epoch(1, data)
    q, counts = model.targets.numpy(), np.full((4, 3, 3), 0.3)
    for i, j, k in product(range(15), range(4), range(3)):
        counts[j, k, votes[i, j]] += q[i, k]
    np.testing.assert_allclose(model.table, counts / counts.sum(2, keepdims=True), atol=1e-6)


def test_a_silent_network_leaves_dawid_and_skene():
    X, votes, _ = crowd()
    model, data = model_of(Silent(), X, votes, smoothing=0.5)
    for epoch in range(1, 300):
        model.begin_epoch(epoch, data)
    plain = DawidSkene(prior=0.5, class_prior="uniform", tol=1e-12, max_iter=300).fit(votes)
    np.testing.assert_allclose(model.targets, plain.probas_, atol=1e-3)
    np.testing.assert_allclose(model.table, plain.confusion_, atol=1e-3)


def test_known_classes_stay_what_they_are():
    X, votes, truth = crowd()
    gold = np.where(np.arange(80) < 20, truth, -1)
    model, data = model_of(nn.Linear(3, 3), X, votes, gold=gold)
    model.begin_epoch(1, data)
    np.testing.assert_array_equal(model.targets[:20], np.eye(3)[truth[:20]])


def test_e_steps_come_every_few_epochs_and_never_first():
    X, votes, _ = crowd()
    model, data = model_of(nn.Linear(3, 3), X, votes)
    model.steps, moved = 3, []
    for epoch in range(7):
        before = model.targets.clone()
        with torch.no_grad():
            model.network.weight += 0.1 * torch.eye(3)
        model.begin_epoch(epoch, data)
        moved.append(not torch.equal(before, model.targets))
    assert moved == [False, False, False, True, False, False, True]


def test_one_label_per_task_keeps_the_identity_of_the_vote():
    X, _, truth = crowd(n=300)
    rng = np.random.default_rng(1)
    worker = rng.integers(3, size=300)
    label = np.where(rng.random(300) < 0.5, truth, (truth + 1) % 3)  # half of all are wrong
    labels = CrowdLabels.from_arrays(np.arange(300), worker, label)
    model = AggNet(module="linear", epochs=15, lr=0.05).fit(X, labels)
    diagonal = model.confusion_[:, np.arange(3), np.arange(3)]
    assert diagonal.min() > 0.95  # and the truth is a half


def test_it_recovers_workers_from_several_labels():
    X, votes, truth = crowd(n=1000)
    model = AggNet(module="linear", epochs=15, lr=0.02).fit(X, votes)
    accuracy = np.linspace(0.5, 0.9, 4)
    true = accuracy[:, None, None] * np.eye(3) + (1 - accuracy)[:, None, None] / 3
    assert np.abs(model.confusion_ - true).max() < 0.09
    assert np.mean(model.labels_ == truth) > 0.95
    np.testing.assert_array_equal(model.predict(X, votes), model.labels_)


@pytest.mark.parametrize("settings", [{"steps": 0}, {"smoothing": 0.0}])
def test_bad_parameters(settings):
    X, votes, _ = crowd(n=20)
    with pytest.raises(ParameterError, match=next(iter(settings))):
        AggNet(**settings).fit(X, votes)
