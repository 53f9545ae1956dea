"""Trace regularisation: the published loss, and its relatives without penalty."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch
from torch import nn

from wisecrowd.core.exceptions import ParameterError
from wisecrowd.kinds.classes.container import CrowdLabels
from wisecrowd.learning import CCEM, GeoCrowdNet, TraceRegularized
from wisecrowd.learning.ccem import CoupledModel
from wisecrowd.learning.geo_crowd_net import GeoModel
from wisecrowd.learning.training.crowd_data import CrowdData
from wisecrowd.learning.training.crowd_model import TraceModel
from wisecrowd.nn.heads import SoftmaxConfusion, SoftplusConfusion


def crowd(n=40, n_workers=4, missing=0.4, seed=0):
    """Return features, a votes matrix with gaps, and truth."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(3, size=n)
    X = 3 * np.eye(3)[truth] + 0.5 * rng.normal(size=(n, 3))
    right = rng.random((n, n_workers)) < 0.7
    votes = np.where(right, truth[:, None], rng.integers(3, size=(n, n_workers)))
    votes[rng.random(votes.shape) < missing] = -1
    votes[:, 0] = np.where((votes < 0).all(axis=1), truth, votes[:, 0])
    return X, votes, truth


def whole_batch(X, votes):
    labels = CrowdLabels.from_matrix(votes, missing=-1)
    return CrowdData(X, labels, np.full(len(X), -1)).batch(torch.arange(len(X)))


def loss_and_gradients(model, batch):
    loss = model.loss(batch)
    return [loss.detach(), *torch.autograd.grad(loss, list(model.parameters()))]


@pytest.mark.parametrize("log_trace", [False, True])
def test_the_loss_is_the_published_one_per_label(log_trace):
    X, votes, _ = crowd()
    torch.manual_seed(0)
    model = TraceModel(nn.Linear(3, 3), SoftplusConfusion(4, 3), 0.3, log_trace)
    f = torch.softmax(model.network(torch.tensor(X, dtype=torch.float32)), 1).detach().numpy()
    theta = model.confusion().detach().numpy()
    given = [(i, j, y) for (i, j), y in np.ndenumerate(votes) if y >= 0]
    entropy = sum(-np.log(f[i] @ theta[j, :, y]) for i, j, y in given) / len(X)
    diagonals = np.diagonal(theta, axis1=1, axis2=2)
    trace = (np.log(diagonals) if log_trace else diagonals).sum(axis=1).mean()
    published = entropy + 0.3 * trace
    loss = float(model.loss(whole_batch(X, votes)).detach())
    assert loss == pytest.approx(published * len(X) / len(given), rel=1e-5)


@pytest.mark.parametrize("kind", [SoftmaxConfusion, SoftplusConfusion])
def test_without_penalty_it_is_coupled_cross_entropy_and_so_is_geocrowdnet(kind):
    X, votes, _ = crowd()
    network, head = nn.Linear(3, 3), kind(4, 3)
    batch = whole_batch(X, votes)
    models = (
        CoupledModel(network, head),
        TraceModel(network, head, 0.0),
        GeoModel(network, head, 0.0, "F"),
        GeoModel(network, head, 0.0, "W"),
    )
    plain, *others = (loss_and_gradients(copy.deepcopy(model), batch) for model in models)
    for other in others:
        torch.testing.assert_close(other, plain)


def test_whole_fits_without_penalty_are_the_same():
    X, votes, _ = crowd()
    y = CrowdLabels.from_matrix(votes, missing=-1)
    start = float(np.exp(4) / (np.exp(4) + 2))
    shared = {"module": "linear", "epochs": 3, "lr": 0.05}
    plain = CCEM(**shared, strength=4.0).fit(X, y)
    for other in (
        TraceRegularized(**shared, penalty=0, head="softmax", start=start),
        GeoCrowdNet(**shared, penalty=0, start=start),
    ):
        np.testing.assert_allclose(other.fit(X, y).confusion_, plain.confusion_, atol=1e-5)
        np.testing.assert_allclose(other.probas_, plain.probas_, atol=1e-4)


def test_weights_repeat_labels():
    X, votes, _ = crowd()
    batch = whole_batch(X, votes)
    twice = copy.copy(batch)
    object.__setattr__(twice, "weight", torch.full((len(batch.task),), 2.0))
    model = TraceModel(nn.Linear(3, 3), SoftplusConfusion(4, 3), 0.3)
    penalty = float(
        (model.loss(batch) - TraceModel(model.network, model.head, 0.0).loss(batch)).detach()
    )
    halved = float(
        (model.loss(twice) - TraceModel(model.network, model.head, 0.0).loss(twice)).detach()
    )
    assert halved == pytest.approx(penalty / 2, rel=1e-4)


def test_a_penalty_lowers_diagonals_and_flippers_are_learned_from_single_labels():
    rng = np.random.default_rng(3)
    n = 2000
    truth = rng.integers(3, size=n)
    X = 3 * np.eye(3)[truth] + 0.5 * rng.normal(size=(n, 3))
    worker = rng.integers(3, size=n)
    theta = np.stack(
        [0.55 * np.eye(3) + 0.45 * np.eye(3)[p] for p in ([1, 2, 0], [2, 0, 1], [1, 0, 2])]
    )
    theta[2, 2] = [0.45, 0.0, 0.55]
    cumulated = theta[worker, truth].cumsum(axis=1)
    label = (rng.random((n, 1)) > cumulated).sum(axis=1)
    labels = CrowdLabels.from_arrays(np.arange(n), worker, label)
    shared = {"module": "linear", "epochs": 25, "lr": 0.1, "crowd_lr": 0.1, "batch_size": 250}
    found = TraceRegularized(**shared).fit(X, labels)
    assert np.abs(found.confusion_ - theta).max() < 0.12
    assert found.score(X, truth) > 0.97
    strict = TraceRegularized(**shared, penalty=0.2).fit(X, labels)
    assert np.trace(strict.confusion_.mean(axis=0)) < np.trace(found.confusion_.mean(axis=0))


def test_bad_parameters():
    X, votes, _ = crowd()
    y = CrowdLabels.from_matrix(votes, missing=-1)
    for parameters, message in (
        ({"penalty": -1}, "penalty is -1"),
        ({"head": "sigmoid"}, "head is 'sigmoid'"),
        ({"log_trace": 1}, "log_trace is 1"),
        ({"start": 1.5}, "start is 1.5"),
    ):
        with pytest.raises(ParameterError, match=message):
            TraceRegularized(**parameters).fit(X, y)
