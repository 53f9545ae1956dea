"""One transition to the union of all workers' labels."""

from __future__ import annotations

import numpy as np
import torch
from torch import nn

from wisecrowd.kinds.classes.container import CrowdLabels
from wisecrowd.learning import UnionNet
from wisecrowd.learning.training.crowd_data import CrowdData
from wisecrowd.learning.union_net import UnionModel


def crowd(n=40, seed=0):
    rng = np.random.default_rng(seed)
    truth = rng.integers(3, size=n)
    X = 3 * np.eye(3)[truth] + 0.5 * rng.normal(size=(n, 3))
    right = rng.random((n, 4)) < np.array([0.9, 0.8, 0.7, 0.4])
    return X, np.where(right, truth[:, None], rng.integers(3, size=(n, 4))), truth


def test_the_transition_sums_to_one_over_the_union_and_starts_at_the_identity():
    model = UnionModel(nn.Linear(3, 3), 4, 3, 0.01)
    transition = model.log_transition().exp().detach()
    torch.testing.assert_close(transition.sum(dim=(0, 2)), torch.ones(3))
    torch.testing.assert_close(
        transition[1], (0.985 * torch.eye(3) + 0.005) / 4, rtol=1e-5, atol=1e-6
    )


def test_the_loss_is_the_cross_entropy_of_the_long_label():
    X, votes, _ = crowd()
    torch.manual_seed(0)
    model = UnionModel(nn.Linear(3, 3), 4, 3, 0.2)
    with torch.no_grad():
        model.logits.normal_()
    data = CrowdData(X, CrowdLabels.from_matrix(votes), np.full(40, -1))
    f = torch.softmax(model.network(torch.tensor(X, dtype=torch.float32)), 1)
    # (K, MK) softmaxed by row, and the M ones among the MK places of a task's labels
    long = torch.softmax(torch.cat(list(model.logits), dim=1), dim=1)
    places = torch.nn.functional.one_hot(torch.from_numpy(votes), 3).reshape(40, -1)
    expected = -(places * (f @ long).log()).sum() / votes.size
    torch.testing.assert_close(model.loss(data.batch(torch.arange(40))), expected)


def test_confusions_are_the_workers_parts_with_rows_normalised():
    model = UnionModel(nn.Linear(3, 3), 4, 3, 0.2)
    with torch.no_grad():
        model.logits.normal_()
    transition = model.log_transition().exp()
    torch.testing.assert_close(model.confusion(), transition / transition.sum(dim=2, keepdim=True))


def test_it_ranks_the_workers():
    X, votes, truth = crowd(n=600)
    model = UnionNet(module="linear", epochs=15, lr=0.05, crowd_lr=0.05, error=0.05).fit(X, votes)
    assert model.score(X, truth) > 0.95
    assert np.argsort(-model.worker_accuracy_).tolist() == [0, 1, 2, 3]
