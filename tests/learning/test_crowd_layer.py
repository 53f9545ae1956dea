"""The crowd layer as published: free weights, a second softmax."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional

from wisecrowd.core.exceptions import ParameterError
from wisecrowd.kinds.classes.container import CrowdLabels
from wisecrowd.learning import CrowdLayer
from wisecrowd.learning.crowd_layer import KINDS, LayerModel
from wisecrowd.learning.training.crowd_data import CrowdData


def crowd(n=40, seed=0):
    rng = np.random.default_rng(seed)
    truth = rng.integers(3, size=n)
    X = 3 * np.eye(3)[truth] + 0.5 * rng.normal(size=(n, 3))
    votes = np.where(rng.random((n, 4)) < 0.7, truth[:, None], rng.integers(3, size=(n, 4)))
    votes[rng.random((n, 4)) < 0.4] = -1
    votes[:, 0] = np.where((votes < 0).all(axis=1), truth, votes[:, 0])
    return X, votes, truth


def make(kind, per_task=False):
    X, votes, _ = crowd()
    labels = CrowdLabels.from_matrix(votes, missing=-1)
    torch.manual_seed(0)
    model = LayerModel(nn.Linear(3, 3), 4, 3, kind, per_task)
    return model, CrowdData(X, labels, np.full(40, -1)).batch(torch.arange(40)), votes


def written_out(model, batch, votes, o):
    p = torch.softmax(model.network(batch.x), 1)
    return torch.stack(
        [
            -torch.log_softmax(o(j, p[i]), 0)[votes[i, j]]
            for i, j in np.argwhere(votes >= 0)
        ]
    )  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_the_loss_is_the_formula(kind):
    model, batch, votes = make(kind)
    with torch.no_grad():
        for parameter in model.crowd_parameters():
            parameter.normal_()
    w, b = model.weight, model.bias
    o = {
        "matrix": lambda j, p: p @ w[:, :, j],
        "vector": lambda j, p: w[j] * p,
        "bias": lambda j, p: p + b[j],
        "vector+bias": lambda j, p: w[j] * p + b[j],
        "scalar": lambda j, p: w[j] * p,
    }[kind]
    each = written_out(model, batch, votes, o)
    torch.testing.assert_close(model.loss(batch), each.mean())
    torch.testing.assert_close(-model.label_log_probas(batch), each)
    by_task = make(kind, per_task=True)[0]
    by_task.load_state_dict(model.state_dict())
    torch.testing.assert_close(by_task.loss(batch), each.sum() / 40)


@pytest.mark.parametrize("kind", KINDS)
def test_all_kinds_start_as_the_identity(kind):
    model, batch, votes = make(kind)
    each = written_out(model, batch, votes, lambda j, p: p)
    torch.testing.assert_close(model.loss(batch), each.mean())


@pytest.mark.parametrize("scale", [3.0, 300.0])
def test_a_scaled_identity_is_cross_entropy_of_scaled_probabilities(scale):
    model, batch, _ = make("matrix")
    with torch.no_grad():
        model.weight.mul_(scale)
    p = torch.softmax(model.network(batch.x), 1)[batch.task]
    loss = model.loss(batch)
    torch.testing.assert_close(loss, functional.cross_entropy(scale * p, batch.label))
    if scale == 300:  # the limit: how far a label is from being the most probable class
        chosen = p.gather(1, batch.label[:, None])[:, 0]
        limit = (p.max(dim=1).values - chosen).mean()
        torch.testing.assert_close(loss / scale, limit, atol=5e-3, rtol=0)


def test_workers_without_labels_in_a_batch_have_no_gradient():
    model, batch, _ = make("matrix")
    keep = batch.worker != 2
    object.__setattr__(batch, "task", batch.task[keep])
    object.__setattr__(batch, "label", batch.label[keep])
    object.__setattr__(batch, "worker", batch.worker[keep])
    (gradient,) = torch.autograd.grad(model.loss(batch), [model.weight])
    gradient = gradient.permute(2, 0, 1)  # workers come last in matrices
    assert not gradient[2].any()
    assert gradient[[0, 1, 3]].flatten(1).any(dim=1).all()


@pytest.mark.parametrize("kind", KINDS)
def test_fits_publish_their_weights(kind):
    X, votes, truth = crowd(n=300)
    model = CrowdLayer(module="linear", epochs=10, lr=0.05, kind=kind)
    model.fit(X, CrowdLabels.from_matrix(votes, missing=-1))
    assert model.score(X, truth) > 0.9
    shapes = {"matrix": (4, 3, 3), "scalar": (4, 1)}
    if kind != "bias":
        assert model.worker_weight_.shape == shapes.get(kind, (4, 3))
    if kind.endswith("bias"):
        assert model.worker_bias_.shape == (4, 3)
    np.testing.assert_allclose(model.confusion_.sum(axis=2), 1)


def test_bad_parameters():
    X, votes, _ = crowd()
    with pytest.raises(ParameterError, match="kind is 'tensor'"):
        CrowdLayer(kind="tensor").fit(X, CrowdLabels.from_matrix(votes, missing=-1))
