from __future__ import annotations

import numpy as np
import pytest
import torch

import wisecrowd as wc
from wisecrowd.core.exceptions import ParameterError
from wisecrowd.kinds.classes.container import CrowdLabels
from wisecrowd.learning.virtual_adversarial import AdversarialModel
from wisecrowd.nn.heads import SoftmaxConfusion


def linear_model(power_steps=1, scale=None):
    torch.manual_seed(0)
    network = torch.nn.Linear(6, 3)
    scale = torch.ones(6) if scale is None else scale
    return AdversarialModel(network, SoftmaxConfusion(2, 3), scale, 0.01, (1.0, 0.0), power_steps)


def fisher(model, x):
    """Return the Hessian of the divergence in x: W' (diag f - f f') W for a linear network."""
    f = model.log_probas(x[None]).exp()[0].detach()
    weight = model.network.weight.detach()
    return weight.T @ (torch.diag(f) - torch.outer(f, f)) @ weight


def test_the_worst_direction_is_the_leading_eigenvector_of_the_divergence():
    model = linear_model(power_steps=12).double()
    x = torch.randn(4, 6, dtype=torch.float64)
    directions = model.worst_direction(x, model.log_probas(x).detach())
    for row, direction in zip(x, directions, strict=True):
        leading = torch.linalg.eigh(fisher(model, row)).eigenvectors[:, -1]
        assert abs(float(direction @ leading)) > 0.999
        assert float(direction.norm()) == pytest.approx(1.0)


def test_roughness_is_half_the_largest_eigenvalue_times_the_squared_radius():
    model = linear_model(power_steps=12).double()
    x = torch.randn(1, 6, dtype=torch.float64)
    largest = float(torch.linalg.eigvalsh(fisher(model, x[0]))[-1])
    found = float(model.roughness(x).detach())
    assert found == pytest.approx(0.5 * largest * model.radius**2, rel=0.02)


def test_the_radius_is_in_deviations_of_the_features():
    plain, scaled = linear_model().double(), linear_model(scale=torch.full((6,), 10.0)).double()
    with torch.no_grad():
        scaled.network.weight /= 10.0
    x = torch.randn(5, 6, dtype=torch.float64)
    torch.manual_seed(1)
    first = float(plain.roughness(x).detach())
    torch.manual_seed(1)
    assert float(scaled.roughness(10 * x).detach()) == pytest.approx(first, rel=1e-3)


def two_moons(rng, n=200):
    """Return points of two interleaved half circles, and the circle of each."""
    truth = np.arange(n) % 2
    angle = np.pi * rng.random(n)
    X = np.column_stack([np.cos(angle), np.sin(angle)])
    X[truth == 1] = np.array([1.0, 0.5]) - X[truth == 1]
    return X + 0.06 * rng.normal(size=(n, 2)), truth


def test_unlabelled_tasks_help():
    rng = np.random.default_rng(0)
    X, truth = two_moons(rng)
    rows = np.concatenate([np.flatnonzero(truth == k)[:5] for k in (0, 1)])
    task = np.repeat(rows, 3)
    worker = np.tile(["a", "b", "c"], len(rows))
    label = np.where(rng.random(len(task)) < 0.9, truth[task], 1 - truth[task])
    labels = CrowdLabels.from_arrays(task, worker, label, tasks=list(range(len(X))))
    options = {"epochs": 60, "batch_size": 100, "lr": 0.02, "radius": 0.15, "entropy": 0.5}
    whole = wc.learning.VirtualAdversarial(**options).fit(X, labels)
    own = labels[np.sort(rows)]
    alone = wc.learning.VirtualAdversarial(**options).fit(X[np.sort(rows)], own, tasks=own.tasks)
    assert whole.score(X, truth) > alone.score(X, truth) + 0.02
    assert not whole.findings_  # tasks without labels are nothing to warn of


def test_an_epoch_is_chosen_by_tasks_with_labels():
    rng = np.random.default_rng(0)
    X, truth = two_moons(rng, 60)
    votes = np.where(np.arange(60)[:, None] < 6, truth[:, None] + np.zeros((60, 2)), np.nan)
    options = {"epochs": 3, "selection": "crowd", "refit": False, "valid_fraction": 0.5}
    fitted = wc.learning.VirtualAdversarial(**options).fit(X, votes)
    assert all(record["score"] < 0 for record in fitted.history_)


def test_bad_parameters():
    X, votes = np.eye(4), np.array([[0, 1]] * 4)
    for name in ("alpha", "entropy", "strength"):
        with pytest.raises(ParameterError, match=name):
            wc.learning.VirtualAdversarial(**{name: -1.0}).fit(X, votes)
    with pytest.raises(ParameterError, match="radius"):
        wc.learning.VirtualAdversarial(radius=0).fit(X, votes)
