"""COINNet: deviations that vanish under a large penalty, and find odd tasks under a small one."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.stats import rankdata
from torch import nn

from wisecrowd.kinds.classes.container import CrowdLabels
from wisecrowd.learning import COINNet
from wisecrowd.learning.coin_net import OutlierModel
from wisecrowd.learning.geo_crowd_net import GeoModel
from wisecrowd.learning.training.crowd_data import CrowdData
from wisecrowd.nn.heads import SoftmaxConfusion


def crowd(n=60, n_workers=5, seed=0):
    """Return features, votes, and the tenth of tasks that look like another class."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(3, size=n)
    X = 3 * np.eye(3)[truth] + 0.5 * rng.normal(size=(n, 3))
    right = rng.random((n, n_workers)) < 0.75
    votes = np.where(right, truth[:, None], rng.integers(3, size=(n, n_workers)))
    odd = np.arange(n) < n // 10
    fooled = rng.random((n, n_workers)) < 0.8
    votes = np.where(odd[:, None] & fooled, (truth[:, None] + 1) % 3, votes)
    return X, votes, odd


def make(n=30, penalty=0.2, outlier_penalty=0.5):
    X, votes, _ = crowd(n)
    data = CrowdData(X, CrowdLabels.from_matrix(votes), np.full(n, -1))
    torch.manual_seed(0)
    network, head = nn.Linear(3, 3), SoftmaxConfusion(5, 3, strength=1.0)
    model = OutlierModel(network, head, data.labels.n_annotations, outlier_penalty, penalty, 0.4)
    return model, data, data.batch(torch.arange(n))


def test_the_loss_is_the_formula():
    model, data, batch = make()
    with torch.no_grad():
        model.outliers.normal_(std=0.3)
    f = torch.softmax(model.network(batch.x), 1).detach().numpy()
    theta, e = model.confusion().detach().numpy(), model.outliers.detach().numpy()
    e = e - e.mean(axis=1, keepdims=True)
    labels, entropy = data.labels, 0.0
    for n, (i, j, y) in enumerate(zip(labels.task, labels.worker, labels.label, strict=True)):
        p = np.maximum(f[i] @ theta[j] + e[n], 1e-10)
        entropy -= np.log(p[y] / p.sum())
    size = np.bincount(labels.task, (e**2).sum(axis=1), 30)
    expected = entropy / len(e) + 0.5 * np.mean((size + 1e-10) ** 0.2)
    expected -= 0.2 * np.log(np.linalg.det(3 * f.T @ f / 30))
    assert float(model.loss(batch).detach()) == pytest.approx(expected, rel=1e-4)


def test_without_deviations_it_is_geocrowdnet_with_its_gradients():
    model, _, batch = make()
    geo = GeoModel(model.network, model.head, 0.2, "F")
    shared = list(geo.parameters())
    constant = 0.5 * (1e-10) ** 0.2
    loss, other = model.loss(batch), geo.loss(batch)
    torch.testing.assert_close(loss - constant, other)
    torch.testing.assert_close(
        torch.autograd.grad(loss, shared), torch.autograd.grad(other, shared), atol=1e-6, rtol=1e-4
    )


def test_deviations_vanish_as_their_penalty_grows():
    sizes = []
    for outlier_penalty in (0.01, 10.0, 1000.0):
        model, _, batch = make(outlier_penalty=outlier_penalty)
        optimizer = torch.optim.Adam([model.outliers], lr=1e-3)
        for step in range(150):
            optimizer.param_groups[0]["lr"] = 1e-3 * 0.95**step
            optimizer.zero_grad()
            model.loss(batch).backward()
            optimizer.step()
        sizes.append(float(model.outliers.detach().square().sum(dim=1).mean()))
    assert sizes[0] > 30 * sizes[1] > 0
    assert sizes[2] < 1e-6


def test_adding_a_constant_to_a_deviation_changes_nothing():
    model, _, batch = make()
    with torch.no_grad():
        model.outliers.normal_(std=0.1)
        before = model.loss(batch)
        model.outliers += torch.randn(len(model.outliers), 1)
        torch.testing.assert_close(model.loss(batch), before, rtol=1e-4, atol=1e-4)


def test_outlier_scores_rank_odd_tasks_first():
    X, votes, odd = crowd(n=400)
    model = COINNet(module="linear", epochs=25, lr=0.05).fit(X, votes)
    ranks = rankdata(model.outlier_score_)
    n = odd.sum()
    auc = (ranks[odd].sum() - n * (n + 1) / 2) / (n * (~odd).sum())
    assert auc >= 0.85
    assert model.outlier_score_.shape == (400,)
    np.testing.assert_allclose(model.confusion_.sum(axis=2), 1, atol=1e-6)


def test_tasks_without_labels_have_score_zero():
    X, votes, _ = crowd()
    votes = votes.copy()
    votes[7] = -1
    with pytest.warns(UserWarning, match="have no labels"):
        model = COINNet(module="linear", epochs=2).fit(
            X, CrowdLabels.from_matrix(votes, missing=-1)
        )
    assert model.outlier_score_[7] == 0
    assert (np.delete(model.outlier_score_, 7) > 0).all()


def test_a_held_out_task_needs_no_deviation_of_its_own():
    X, votes, _ = crowd(n=100)
    model = COINNet(module="linear", epochs=3, selection="crowd", refit=False).fit(X, votes)
    assert (model.outlier_score_ == 0).sum() == 10
