"""Common noise, individual noise, and the gate between."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from wisecrowd.kinds.classes.container import CrowdLabels
from wisecrowd.learning import CoNAL
from wisecrowd.learning.co_nal import CommonNoiseModel
from wisecrowd.learning.crowd_layer import LayerModel
from wisecrowd.learning.training.crowd_data import CrowdData


def crowd(n=40, seed=0):
    rng = np.random.default_rng(seed)
    truth = rng.integers(3, size=n)
    X = 3 * np.eye(3)[truth] + 0.5 * rng.normal(size=(n, 3))
    return X, np.where(rng.random((n, 4)) < 0.7, truth[:, None], (truth[:, None] + 1) % 3), truth


def make(**options):
    X, votes, _ = crowd()
    torch.manual_seed(0)
    network = nn.Sequential(nn.Linear(3, 6), nn.ReLU(), nn.Linear(6, 3))
    model = CommonNoiseModel(network, 6, 4, 3, **options)
    data = CrowdData(X, CrowdLabels.from_matrix(votes), np.full(40, -1))
    return model, data, data.batch(torch.arange(40)), votes


def test_the_loss_is_the_formula():
    model, _, batch, votes = make(penalty=0.1)
    with torch.no_grad():
        model.common.normal_()
        model.weight.normal_()
    p = torch.softmax(model.network(batch.x), 1)
    a = model.task_embedding(model.network[:-1](batch.x))
    total = 0.0
    for (i, j), y in np.ndenumerate(votes):
        b = model.worker_embedding[j]
        gate = torch.sigmoid(torch.nn.functional.cosine_similarity(a[i], b, dim=0))
        o = gate * p[i] @ model.common + (1 - gate) * p[i] @ model.weight[j]
        total = total - torch.log_softmax(o, 0)[y]
    apart = sum(torch.linalg.norm(model.weight[j] - model.common) for j in range(4))
    torch.testing.assert_close(model.loss(batch), total / votes.size - 0.1 * apart)
    torch.testing.assert_close(-model.label_log_probas(batch).sum(), total)


def test_it_starts_as_a_crowd_layer_whatever_the_gate():
    model, _, batch, _ = make(scale=1.0, penalty=0.0)
    layer = LayerModel(model.network, 4, 3, "matrix")
    torch.testing.assert_close(model.loss(batch), layer.loss(batch))


def test_the_share_of_common_noise_is_the_mean_of_the_gate():
    model, data, batch, _ = make()
    gate = model.gate(model.outputs(batch)[1], batch).detach()
    expected = [float(gate[batch.worker == j].mean()) for j in range(4)]
    np.testing.assert_allclose(model.common_share(data), expected, rtol=1e-5)


def test_gradients_are_finite_at_the_start_where_all_matrices_agree():
    model, _, batch, _ = make()
    gradients = torch.autograd.grad(model.loss(batch), list(model.parameters()))
    assert all(torch.isfinite(g).all() for g in gradients)


@pytest.mark.parametrize("module", ["linear", "mlp"])
def test_fits(module):
    X, votes, truth = crowd(n=300)
    model = CoNAL(module=module, epochs=12, lr=0.02).fit(X, votes)
    assert model.score(X, truth) > 0.9
    assert model.common_weight_.shape == (3, 3)
    assert model.worker_weight_.shape == (4, 3, 3)
    assert ((model.common_share_ > 0.2) & (model.common_share_ < 0.8)).all()
