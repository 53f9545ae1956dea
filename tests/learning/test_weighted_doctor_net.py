from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

from wisecrowd.core.exceptions import ParameterError
from wisecrowd.kinds.classes.container import CrowdLabels
from wisecrowd.learning import DoctorNet, WeightedDoctorNet
from wisecrowd.learning.doctor_net import Doctors
from wisecrowd.learning.training.crowd_data import CrowdData
from wisecrowd.learning.weighted_doctor_net import WeightedDoctorModel


def crowd(n=200, seed=0):
    """Three fair workers and one who always says the same."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(2, size=n)
    X = np.eye(2)[truth] + 0.3 * rng.normal(size=(n, 2))
    votes = np.where(rng.random((n, 3)) < 0.85, truth[:, None], 1 - truth[:, None])
    return X, np.hstack([votes, np.zeros((n, 1), int)]), truth


def test_the_constant_worker_weighs_least_and_pulls_less():
    X, votes, _ = crowd()
    settings = {"module": "linear", "epochs": 40, "lr": 0.1}
    model = WeightedDoctorNet(**settings, crowd_lr=0.1).fit(X, votes)
    assert model.worker_weight_.argmin() == 3
    assert model.worker_weight_[3] < 0.05
    np.testing.assert_allclose(model.worker_weight_.sum(), 1, atol=1e-6)
    mean = DoctorNet(**settings).fit(X, votes)
    assert model.predict_proba(X)[:, 0].mean() < mean.predict_proba(X)[:, 0].mean() - 0.05


def small_model(exclude_self, n_workers=3):
    torch.manual_seed(0)
    votes = np.array([[0, 1, 1], [1, 1, 0]])[:, :n_workers]
    labels = CrowdLabels.from_matrix(votes)
    data = CrowdData(np.array([[0.5, 1.0], [-1.0, 0.2]]), labels, np.full(2, -1))
    model = WeightedDoctorModel(Doctors(nn.Identity(), 2, n_workers, 2), data, exclude_self)
    with torch.no_grad():
        model.scores.copy_(torch.arange(n_workers) / 2)
    return model, data.batch(torch.arange(2)), votes


@pytest.mark.parametrize("exclude_self", [True, False])
def test_labels_are_foretold_by_the_formula(exclude_self):
    model, batch, votes = small_model(exclude_self)
    heads = model.network.of_all(batch.x)
    found = model.foretold(heads, model.log_weights(), batch)
    w, p = torch.softmax(model.scores, 0), heads.exp()
    for e, (i, j) in enumerate(zip(batch.task.tolist(), batch.worker.tolist(), strict=True)):
        asked = [u for u in range(3) if u != j or not exclude_self]
        mean = sum(w[u] * p[i, u, votes[i, j]] for u in asked) / sum(w[u] for u in asked)
        torch.testing.assert_close(found[e].exp(), mean)


def test_neither_part_moves_what_is_the_others():
    model, batch, _ = small_model(True)
    torch.autograd.backward(model.loss_of(model.network.trunk(batch.x), batch))
    of_heads = model.network.head.weight.grad.clone()
    assert model.scores.grad is None
    model.network.head.weight.grad = None
    torch.autograd.backward(model.loss(batch))
    torch.testing.assert_close(model.network.head.weight.grad, of_heads)
    assert (model.scores.grad != 0).any()


def test_the_only_worker_asks_themselves():
    model, batch, _ = small_model(True, n_workers=1)
    assert torch.isfinite(model.loss(batch))
    np.testing.assert_allclose(model.log_weights().exp().tolist(), [1.0])


def test_bad_parameter():
    X, votes, _ = crowd(20)
    with pytest.raises(ParameterError, match="exclude_self"):
        WeightedDoctorNet(exclude_self="no").fit(X, votes)


def test_weights_learn_from_the_first_tasks_of_a_large_batch(monkeypatch):
    model, batch, _ = small_model(True)
    monkeypatch.setattr("wisecrowd.learning.weighted_doctor_net.TASKS_FOR_WEIGHTS", 1)
    heads = model.network.of_all(model.network.trunk(batch.x[:1])).detach()
    first = model.foretold(heads, model.log_weights(), batch_part(batch))
    (expected,) = torch.autograd.grad(-first.mean(), model.scores)
    (found,) = torch.autograd.grad(model.loss(batch), model.scores)
    torch.testing.assert_close(found, expected)


def batch_part(batch):
    own = batch.task == 0
    parts = {name: getattr(batch, name)[own] for name in ("task", "worker", "label")}
    return replace(batch, x=batch.x[:1], rows=batch.rows[:1], **parts)
