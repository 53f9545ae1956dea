from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from wisecrowd.core.labels import CrowdLabels
from wisecrowd.learning.ccem import CoupledModel
from wisecrowd.learning.training.crowd_data import CrowdData, Features, log_probas_of
from wisecrowd.learning.training.crowd_model import CrowdModel
from wisecrowd.learning.training.epoch_selection import crowd_score, gold_score, held_out
from wisecrowd.learning.training.label_model import fit_confusion
from wisecrowd.nn.heads import SoftmaxConfusion


def problem(n=30, weight=None, label_weight=None):
    rng = np.random.default_rng(0)
    X, votes = rng.normal(size=(n, 2)), rng.integers(2, size=(n, 3))
    labels = CrowdLabels.from_arrays(
        np.repeat(np.arange(n), 3), np.tile(np.arange(3), n), votes.ravel(),
        weight=None if weight is None else rng.integers(1, 4, size=3 * n),
    )  # fmt: skip
    data = CrowdData(X, labels, np.full(n, -1), label_weight=label_weight)
    torch.manual_seed(0)
    return nn.Linear(2, 2), data, votes


def test_rows_are_split_at_random_and_in_order():
    torch.manual_seed(0)
    rows = torch.arange(100) * 2
    train, valid = held_out(rows, 0.2)
    assert len(valid) == 20
    assert sorted([*train.tolist(), *valid.tolist()]) == rows.tolist()
    assert train.tolist() == sorted(train.tolist())
    assert valid.tolist() == sorted(valid.tolist())
    assert valid.tolist() != rows[:20].tolist()
    train, valid = held_out(torch.arange(2), 0.9)
    assert (len(train), len(valid)) == (1, 1)  # something is left to learn from


@pytest.mark.parametrize("weight", [None, "random"])
def test_the_crowd_scores_by_the_likelihood_of_held_out_labels(weight):
    network, data, votes = problem(weight=weight)
    model = CoupledModel(network, SoftmaxConfusion(3, 2, strength=1.0))
    train, valid = torch.arange(20), torch.arange(20, 30)
    f = torch.softmax(network(data.features[torch.arange(30)]), 1).detach().numpy()
    theta = model.confusion().detach().numpy()
    weights = np.ones(90) if weight is None else data.labels.weight
    total = mass = 0.0
    for i in range(20, 30):
        for j in range(3):
            w = weights[3 * i + j]
            total += w * np.log(f[i] @ theta[j, :, votes[i, j]])
            mass += w
    assert crowd_score(model, data, train, valid) == pytest.approx(total / mass, rel=1e-5)


def test_balancing_does_not_change_what_is_likely():
    network, data, _ = problem()
    _, balanced, _ = problem(label_weight=np.array([5.0, 0.2]))
    model = CoupledModel(network, SoftmaxConfusion(3, 2, strength=1.0))
    rows = torch.arange(20), torch.arange(20, 30)
    assert crowd_score(model, data, *rows) == pytest.approx(crowd_score(model, balanced, *rows))
    bare = CrowdModel(network)
    assert crowd_score(bare, data, *rows) == pytest.approx(crowd_score(bare, balanced, *rows))


def test_without_confusion_matrices_they_are_fitted_to_the_labels_that_are_not_held_out():
    network, data, votes = problem()
    train, valid = torch.arange(20), torch.arange(20, 30)
    f = np.exp(log_probas_of(network, data.features))
    theta = fit_confusion(f[:20], CrowdLabels.from_matrix(votes[:20]))
    expected = np.mean(
        [np.log(f[i] @ theta[j, :, votes[i, j]]) for i in range(20, 30) for j in range(3)]
    )
    assert crowd_score(CrowdModel(network), data, train, valid) == pytest.approx(expected)


def test_scoring_turns_dropout_off():
    network, data, _ = problem()
    model = CoupledModel(nn.Sequential(network, nn.Dropout(0.5)), SoftmaxConfusion(3, 2))
    rows = torch.arange(20), torch.arange(20, 30)
    model.train()
    assert len({crowd_score(model, data, *rows) for _ in range(3)}) == 1


def test_gold_scores_by_the_log_probability_of_the_known_classes():
    network, _, _ = problem()
    X, codes = np.eye(2), np.array([1, 0])
    f = torch.softmax(network(torch.eye(2)), 1).detach().numpy()
    expected = np.log(f[[0, 1], codes]).mean()
    assert gold_score(CrowdModel(network), Features(X), codes, "cpu") == pytest.approx(expected)
