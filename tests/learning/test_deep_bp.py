"""deepBP: exact on trees for a fixed network, clamped by one-hot features, and stable."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
import torch
from scipy.special import betaln
from torch import nn

from wisecrowd import simulate
from wisecrowd.aggregation import BeliefPropagation
from wisecrowd.inference.priors import OneCoinPrior
from wisecrowd.kinds.classes.container import CrowdLabels
from wisecrowd.learning import DeepBP, DeepMF
from wisecrowd.learning.training.crowd_data import CrowdData


class Fixed(nn.Module):
    """A network whose logits are the features, whatever it is trained on."""

    def __init__(self):
        super().__init__()
        self.idle = nn.Parameter(torch.zeros(1))

    def forward(self, x):
        return x + 0 * self.idle


def tree():
    """Workers who share one task with the next: a graph without loops."""
    task = [0, 1, 2, 2, 3, 4, 4, 5]
    worker = [0, 0, 0, 1, 1, 1, 2, 2]
    label = [0, 2, 1, 1, 0, 2, 2, 0]
    return CrowdLabels.from_arrays(task, worker, label, classes=[0, 1, 2])


def marginals_by_enumeration(labels, h, a, b):
    """Sum over all classes of all tasks; a one-coin worker's factor is a ratio of Betas."""
    n_tasks, n_classes = h.shape
    total = np.zeros_like(h)
    for z in product(range(n_classes), repeat=n_tasks):
        log_p = sum(np.log(h[i, k]) for i, k in enumerate(z))
        for j in range(labels.n_workers):
            mine = labels.worker == j
            right = int(np.sum(np.array(z)[labels.task[mine]] == labels.label[mine]))
            wrong = int(mine.sum()) - right
            log_p += betaln(a + right, b + wrong) - betaln(a, b) - wrong * np.log(n_classes - 1)
        for i, k in enumerate(z):
            total[i, k] += np.exp(log_p)
    return total / total.sum(axis=1, keepdims=True)


@pytest.mark.parametrize(("a", "b"), [(2.0, 1.0), (1.0, 0.5)])
def test_on_a_tree_the_posterior_is_exact(a, b):
    labels = tree()
    X = np.random.default_rng(0).normal(size=(6, 3))
    model = DeepBP(module=Fixed(), clip=1.0, epochs=3, prior=OneCoinPrior(a, b)).fit(X, labels)
    h = np.exp(X) / np.exp(X).sum(axis=1, keepdims=True)
    expected = marginals_by_enumeration(labels, h, a, b)
    np.testing.assert_allclose(model.probas_, expected, atol=1e-6)
    capped = np.minimum(h, 0.5)
    capped += (capped < 0.5) * (1 - capped.sum(axis=1, keepdims=True)) / 2
    assert (capped <= 0.5).all()
    clipped = DeepBP(module=Fixed(), clip=0.5, epochs=3, prior=OneCoinPrior(a, b)).fit(X, labels)
    expected = marginals_by_enumeration(labels, capped, a, b)
    np.testing.assert_allclose(clipped.probas_, expected, atol=1e-6)


def test_a_certain_network_clamps_the_classes():
    labels = tree()
    truth = np.array([2, 2, 0, 1, 0, 1])
    model = DeepBP(module=Fixed(), clip=1.0, epochs=2).fit(200 * np.eye(3)[truth], labels)
    np.testing.assert_allclose(model.probas_, np.eye(3)[truth], atol=1e-12)
    right = np.bincount(labels.worker, labels.label == truth[labels.task])
    count = labels.labels_per_worker
    # the posterior mean of Beta(2, 1) when all classes are known
    np.testing.assert_allclose(model.confusion_[:, 0, 0], (2 + right) / (3 + count), atol=1e-9)


def test_warm_messages_arrive_where_cold_ones_do():
    made = simulate.crowd(
        200, simulate.OneCoinWorkers(2, 1), simulate.Regular(3, 4), n_workers=150, n_classes=2,
        random_state=0,
    )  # fmt: skip
    X = np.random.default_rng(0).normal(size=(200, 2))
    data = CrowdData(X, made.labels, np.full(200, -1))
    method = DeepBP(rounds=200, module=Fixed())
    model = method._build(Fixed(), data)
    model.method.tol = 1e-10
    for epoch in range(3):
        model.begin_epoch(epoch, data)
        n_iter = model.method.n_iter_
        before = model.messages.clone()
    assert n_iter < 5  # the same network: the messages had nowhere to go
    h = np.exp(X) / np.exp(X).sum(axis=1, keepdims=True)
    task_prior = np.clip(h, 0.1, 0.9)
    cold = BeliefPropagation(tol=1e-10, max_iter=500).fit(made.labels, task_prior=task_prior)
    np.testing.assert_allclose(model.targets, cold.probas_, atol=1e-6)
    assert torch.equal(before, model.messages)
    assert model.messages.abs().max() > 0.1


def test_a_new_task_of_one_label_is_exact_and_a_known_one_keeps_its_belief():
    labels = tree()
    X = np.random.default_rng(0).normal(size=(7, 3))
    h = np.exp(X) / np.exp(X).sum(axis=1, keepdims=True)
    model = DeepBP(module=Fixed(), clip=1.0, epochs=1, prior=OneCoinPrior(2, 1)).fit(X[:6], labels)
    for worker in range(3):
        more = CrowdLabels.from_arrays(
            [*labels.task, 6], [*labels.worker, worker], [*labels.label, 1], classes=[0, 1, 2]
        )
        both = model.predict_proba(X, more)
        np.testing.assert_allclose(both[:6], model.probas_, atol=1e-9)
        # One label more is a leaf of the tree: given the others, its worker's posterior is exact.
        np.testing.assert_allclose(both[6], marginals_by_enumeration(more, h, 2, 1)[6], atol=1e-6)


def test_few_labels_per_worker_from_an_uneven_crowd():
    """Workers who know almost all or nothing: mean field is too sure of too few labels."""
    found = []
    for seed in range(2):
        made = simulate.crowd(
            400, simulate.OneCoinWorkers(0.2, 0.1), simulate.Regular(3, 4), n_workers=300,
            n_classes=2, random_state=seed,
        )  # fmt: skip
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(400, 4))
        X[:, 0] += 2 * made.truth_codes - 1
        options = {"prior": OneCoinPrior(0.2, 0.1), "module": "linear", "epochs": 10, "lr": 0.1}
        bp, mf = (m(**options).fit(X, made.labels) for m in (DeepBP, DeepMF))
        plain = BeliefPropagation(prior=OneCoinPrior(0.2, 0.1)).fit(made.labels)
        found.append([np.mean(m.labels_ == made.truth) for m in (bp, mf, plain)])
    deep_bp, deep_mf, without = np.mean(found, axis=0)
    assert deep_bp > deep_mf + 0.01
    assert deep_bp > without
