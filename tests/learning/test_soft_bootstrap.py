from __future__ import annotations

import numpy as np
import pytest
import torch

from wisecrowd.core.exceptions import ParameterError
from wisecrowd.learning import SoftBootstrap, TwoStage
from wisecrowd.learning.soft_bootstrap import BootstrapModel
from wisecrowd.nn.batches import CrowdBatch

SMALL = {"module": "linear", "epochs": 4, "lr": 0.1}


def crowd(n=50):
    rng = np.random.default_rng(1)
    truth = rng.integers(3, size=n)
    X = np.eye(3)[truth] + 0.3 * rng.normal(size=(n, 3))
    return X, np.where(rng.random((n, 3)) < 0.7, truth[:, None], rng.integers(3, size=(n, 3)))


def test_full_trust_is_training_on_the_majority_vote():
    X, votes = crowd()
    trusting = SoftBootstrap(**SMALL, beta=1.0).fit(X, votes)
    voted = TwoStage(**SMALL, labels="hard").fit(X, votes)
    for ours, theirs in zip(
        trusting._network.parameters(), voted._network.parameters(), strict=True
    ):
        assert torch.equal(ours, theirs)


def test_the_loss_is_the_formula_and_its_gradient_goes_through_both_parts():
    targets = torch.tensor([[1.0, 0.0], [0.0, 1.0]])
    model = BootstrapModel(torch.nn.Identity(), targets, 0.8)
    logits = torch.tensor([[0.3, -0.2], [1.0, 0.5]], dtype=torch.float64, requires_grad=True)
    index = torch.zeros(0, dtype=torch.long)
    batch = CrowdBatch(logits, torch.tensor([0, 1]), index, index, index)

    def loss(values):
        return model.crowd_loss(torch.log_softmax(values, 1), batch)

    f = torch.softmax(logits, 1)
    expected = -((0.8 * targets + 0.2 * f) * f.log()).sum(1).mean()
    assert torch.allclose(loss(logits), expected)
    assert torch.autograd.gradcheck(loss, logits)  # by finite differences: no part is detached


def test_bad_parameter():
    X, votes = crowd()
    with pytest.raises(ParameterError, match=r"beta is 1\.5"):
        SoftBootstrap(beta=1.5).fit(X, votes)
