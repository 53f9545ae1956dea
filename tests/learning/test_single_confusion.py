"""One confusion matrix for all workers."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from wisecrowd.kinds.classes.container import CrowdLabels
from wisecrowd.learning import SingleConfusion, TraceRegularized
from wisecrowd.learning.single_confusion import ChannelModel
from wisecrowd.learning.training.crowd_data import CrowdData
from wisecrowd.learning.training.crowd_model import TraceModel
from wisecrowd.nn.heads import SoftplusConfusion


def crowd(n=50, n_workers=3, seed=0):
    rng = np.random.default_rng(seed)
    truth = rng.integers(3, size=n)
    X = 3 * np.eye(3)[truth] + 0.5 * rng.normal(size=(n, 3))
    right = rng.random((n, n_workers)) < 0.7
    return X, np.where(right, truth[:, None], (truth[:, None] + 1) % 3), truth


def test_it_is_trace_regularisation_of_workers_that_are_one():
    X, votes, _ = crowd()
    labels = CrowdLabels.from_matrix(votes)
    task, label = np.repeat(np.arange(50), 3), votes.ravel()
    anonymous = CrowdLabels.from_arrays(task, np.zeros(150, int), label, duplicates="keep")
    network, head = nn.Linear(3, 3), SoftplusConfusion(1, 3)
    losses = [
        model.loss(CrowdData(X, y, np.full(50, -1)).batch(torch.arange(50)))
        for model, y in (
            (ChannelModel(network, head, 0.1, 3), labels),
            (TraceModel(network, head, 0.1), anonymous),
        )
    ]
    torch.testing.assert_close(*losses)


def test_with_one_worker_fits_are_those_of_trace_regularisation():
    X, votes, _ = crowd(n_workers=1)
    shared = {"module": "linear", "epochs": 3, "lr": 0.05}
    one = SingleConfusion(**shared).fit(X, votes)
    two = TraceRegularized(**shared).fit(X, votes)
    np.testing.assert_allclose(one.confusion_, two.confusion_, atol=1e-6)
    np.testing.assert_allclose(one.probas_, two.probas_, atol=1e-5)


def test_it_learns_the_channel():
    X, votes, truth = crowd(n=1000)
    # Held-out labels do not tell an early epoch, whose classifier has the noise, from a later one.
    options = {"module": "linear", "epochs": 15, "lr": 0.05, "crowd_lr": 0.05}
    model = SingleConfusion(**options, selection="last").fit(X, votes)
    expected = 0.7 * np.eye(3) + 0.3 * np.eye(3)[[1, 2, 0]]
    assert model.confusion_.shape == (3, 3, 3)
    assert (model.confusion_ == model.confusion_[0]).all()
    assert np.abs(model.confusion_[0] - expected).max() < 0.07
    assert model.score(X, truth) > 0.95


@pytest.mark.parametrize("start", [0.8, "dawid-skene"])
def test_starts_are_averaged_over_workers(start):
    X, votes, _ = crowd()
    model = SingleConfusion(module="linear", epochs=1, crowd_lr=1e-9, start=start).fit(X, votes)
    expected = 0.8 if start == 0.8 else 0.7
    assert np.diagonal(model.confusion_[0]).mean() == pytest.approx(expected, abs=0.1)
