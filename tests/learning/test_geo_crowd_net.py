"""GeoCrowdNet: the loss, and what each volume does to a fit."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from wisecrowd.core.exceptions import ParameterError
from wisecrowd.kinds.classes.container import CrowdLabels
from wisecrowd.learning import GeoCrowdNet
from wisecrowd.learning.geo_crowd_net import GeoModel
from wisecrowd.learning.training.crowd_data import CrowdData
from wisecrowd.nn.heads import SoftmaxConfusion


def crowd(n=60, seed=0):
    rng = np.random.default_rng(seed)
    truth = rng.integers(3, size=n)
    X = 2 * np.eye(3)[truth] + rng.normal(size=(n, 3))
    right = rng.random((n, 3)) < 0.6
    return X, np.where(right, truth[:, None], rng.integers(3, size=(n, 3)))


@pytest.mark.parametrize("regularize", ["F", "W"])
def test_the_loss_is_the_formula(regularize):
    X, votes = crowd()
    torch.manual_seed(0)
    model = GeoModel(nn.Linear(3, 3), SoftmaxConfusion(3, 3, strength=1.0), 0.2, regularize)
    f = torch.softmax(model.network(torch.tensor(X, dtype=torch.float32)), 1).detach().numpy()
    theta = model.confusion().detach().numpy()
    entropy = np.mean([-np.log(f[i] @ theta[j, :, y]) for (i, j), y in np.ndenumerate(votes)])
    stacked = np.vstack([table.T for table in theta])
    gram = {"F": 3 * f.T @ f / len(f), "W": stacked.T @ stacked / 3}[regularize]
    data = CrowdData(X, CrowdLabels.from_matrix(votes), np.full(60, -1))
    loss = float(model.loss(data.batch(torch.arange(60))).detach())
    assert loss == pytest.approx(entropy - 0.2 * np.log(np.linalg.det(gram)), rel=1e-4)


def test_each_volume_grows_with_its_penalty():
    X, votes = crowd(n=200)

    def volumes(regularize, penalty):
        model = GeoCrowdNet(
            module="linear", epochs=30, lr=0.05, crowd_lr=0.05,
            regularize=regularize, penalty=penalty,
        ).fit(X, votes)  # fmt: skip
        f = model.predict_proba(X)
        stacked = np.vstack([table.T for table in model.confusion_])
        return {"F": np.linalg.det(f.T @ f / len(f)), "W": np.linalg.det(stacked.T @ stacked)}

    for regularize in ("F", "W"):
        assert volumes(regularize, 0.5)[regularize] > 1.1 * volumes(regularize, 0.0)[regularize]


def test_bad_parameters():
    X, votes = crowd()
    with pytest.raises(ParameterError, match="regularize is 'G'"):
        GeoCrowdNet(regularize="G").fit(X, votes)
    with pytest.raises(ParameterError, match="penalty is"):
        GeoCrowdNet(penalty=float("nan")).fit(X, votes)
