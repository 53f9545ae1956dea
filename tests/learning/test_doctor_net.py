from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from wisecrowd.kinds.classes.container import CrowdLabels
from wisecrowd.learning import DoctorNet, TwoStage
from wisecrowd.learning.doctor_net import DoctorModel, Doctors, split_head
from wisecrowd.learning.training.crowd_data import CrowdData


def crowd(n=80, n_workers=3, seed=0):
    rng = np.random.default_rng(seed)
    truth = rng.integers(2, size=n)
    X = np.eye(2)[truth] + 0.3 * rng.normal(size=(n, 2))
    votes = np.where(rng.random((n, n_workers)) < 0.8, truth[:, None], 1 - truth[:, None])
    return X, votes, truth


def test_one_worker_is_supervised_training_on_their_labels():
    X, votes, _ = crowd()
    settings = {"module": "linear", "epochs": 200, "lr": 0.2, "batch_size": 80}
    alone = DoctorNet(**settings).fit(X, votes[:, 0])
    supervised = TwoStage(**settings).fit(X, votes[:, 0])
    # The same convex problem, from two starts and without noise.
    np.testing.assert_allclose(alone.predict_proba(X), supervised.predict_proba(X), atol=1e-3)


def test_a_constant_worker_pulls_the_mean():
    X, votes, _ = crowd(n=200)
    constant = np.zeros((200, 1), int)
    settings = {"module": "linear", "epochs": 40, "lr": 0.1}
    without = DoctorNet(**settings).fit(X, votes).predict_proba(X)[:, 0].mean()
    pulled = DoctorNet(**settings).fit(X, np.hstack([votes, constant])).predict_proba(X)
    assert pulled[:, 0].mean() > without + 0.08


def test_gold_teaches_the_mean_of_the_heads():
    X, votes, truth = crowd()
    flipped = 1 - votes
    settings = {"module": "linear", "epochs": 40, "lr": 0.1}
    taught = DoctorNet(**settings).fit(X, flipped, gold=dict(enumerate(truth.tolist())))
    untaught = DoctorNet(**settings).fit(X, flipped)
    assert taught.score(X, truth) > untaught.score(X, truth)


def test_heads_by_edge_are_the_heads_of_all_tasks():
    torch.manual_seed(0)
    doctors = Doctors(nn.Identity(), 4, 5, 3).double()
    hidden = torch.randn(6, 4, dtype=torch.float64)
    task, worker = torch.tensor([0, 0, 3, 5]), torch.tensor([1, 4, 2, 2])
    every = doctors.of_all(hidden)
    torch.testing.assert_close(doctors.of_edges(hidden, task, worker), every[task, worker])
    loop = torch.stack(
        [
            (
                hidden @ doctors.head.weight[3 * j : 3 * j + 3].T
                + doctors.head.bias[3 * j : 3 * j + 3]
            )
            for j in range(5)
        ],
        dim=1,
    ).softmax(2)
    torch.testing.assert_close(doctors(hidden).exp(), loop.mean(dim=1))


def test_a_worker_without_labels_is_not_asked_and_learns_nothing():
    rng = np.random.default_rng(0)
    X, votes = rng.normal(size=(80, 2)), rng.integers(2, size=240)
    labels = CrowdLabels.from_arrays(
        np.repeat(np.arange(80), 3), np.tile([0, 1, 3], 80), votes, workers=[0, 1, 2, 3]
    )
    data = CrowdData(X, labels, np.full(80, -1))
    model = DoctorModel(Doctors(nn.Identity(), 2, 4, 2), data)
    np.testing.assert_allclose(model.network.log_weight.exp(), [1 / 3, 1 / 3, 0, 1 / 3], atol=1e-6)
    torch.autograd.backward(model.loss(data.batch(torch.arange(80))))
    gradient = model.network.head.weight.grad.reshape(4, 2, 2)
    assert (gradient[2] == 0).all()
    assert (gradient[[0, 1, 3]] != 0).any(dim=2).all()


@pytest.mark.parametrize(
    ("network", "width"),
    [
        (nn.Sequential(nn.Linear(5, 8), nn.ReLU(), nn.Linear(8, 3)), 8),
        (nn.Linear(5, 3), 5),
        (nn.Sequential(nn.Linear(5, 3), nn.ReLU()), 3),  # no linear layer at the end: kept whole
        (nn.Sequential(nn.Sequential(nn.Linear(5, 6)), nn.Sequential(nn.Linear(6, 3))), 6),
    ],
)
def test_the_trunk_is_the_module_without_its_last_layer(network, width):
    trunk, found = split_head(network, 3)
    assert found == width
    assert trunk(torch.zeros(2, 5)).shape == (2, width)


def test_prediction_does_not_depend_on_how_much_is_done_at_once(monkeypatch):
    torch.manual_seed(0)
    doctors = Doctors(nn.Identity(), 4, 5, 3)
    x = torch.randn(7, 4)
    whole = doctors(x)
    monkeypatch.setattr("wisecrowd.learning.doctor_net.AT_ONCE", 30)
    torch.testing.assert_close(doctors(x), whole)


def test_heads_by_edge_have_the_gradients_of_all_heads(monkeypatch):
    monkeypatch.setattr("wisecrowd.learning.doctor_net.EDGES_AT_ONCE", 3)
    torch.manual_seed(0)
    doctors = Doctors(nn.Identity(), 4, 5, 3).double()
    hidden = torch.randn(6, 4, dtype=torch.float64, requires_grad=True)
    task, worker = torch.tensor([0, 0, 3, 5, 3]), torch.tensor([1, 4, 2, 2, 2])
    weight = torch.randn(5, 3, dtype=torch.float64)
    sought = (hidden, *doctors.head.parameters())
    for_edges = (doctors.of_edges(hidden, task, worker) * weight).sum()
    for_all = (doctors.of_all(hidden)[task, worker] * weight).sum()
    torch.testing.assert_close(
        torch.autograd.grad(for_edges, sought), torch.autograd.grad(for_all, sought)
    )
