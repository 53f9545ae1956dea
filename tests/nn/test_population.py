"""Exact losses: what infinitely many labels identify."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from wisecrowd.nn.heads import SoftmaxConfusion, SoftplusConfusion
from wisecrowd.nn.penalties import confusion_volume, feature_volume, mean_trace
from wisecrowd.nn.population import population_batch, solve_population

DOMINANT = [[[0.6, 0.3, 0.1], [0.15, 0.65, 0.2], [0.25, 0.2, 0.55]]]
# The second worker is wrong about the first class; the mean of all three is dominant.
DOMINANT_IN_THE_MEAN = [
    [[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.2, 0.1, 0.7]],
    [[0.2, 0.7, 0.1], [0.3, 0.5, 0.2], [0.4, 0.3, 0.3]],
    [[0.6, 0.2, 0.2], [0.3, 0.4, 0.3], [0.1, 0.2, 0.7]],
]


def trace(log_probas, table):
    return mean_trace(table)


def solve_trace(tables, path, seed=1):
    torch.manual_seed(seed)
    logits = 2 * torch.eye(3) + 0.3 * torch.randn(3, 3)
    batch = population_batch(np.eye(3), tables)
    found = solve_population(batch, SoftplusConfusion(len(tables), 3), logits, trace, path)
    return found, np.abs(found.confusion.numpy() - np.array(tables)).max()


def test_weights_are_probabilities():
    f, theta = np.array([[0.2, 0.8], [1.0, 0.0]]), np.array([[[0.9, 0.1], [0.3, 0.7]]])
    batch = population_batch(f, theta)
    assert float(batch.weight.sum()) == pytest.approx(1)
    at = (batch.task == 0) & (batch.label == 1)
    assert float(batch.weight[at]) == pytest.approx((0.2 * 0.1 + 0.8 * 0.7) / 2)


@pytest.mark.parametrize("tables", [DOMINANT, DOMINANT_IN_THE_MEAN])
def test_least_trace_is_the_truth_as_the_penalty_vanishes(tables):
    errors = {path[-1]: solve_trace(tables, path)[1] for path in ((0.1, 0.01, 1e-3), (0.1, 1e-4))}
    assert errors[1e-3] <= 1e-3
    assert errors[1e-4] <= 2e-4
    assert solve_trace(tables, (0.0,))[1] > 0.1  # without it, another crowd explains as much


def test_the_bias_of_the_diagonal_is_the_predicted_one():
    found, _ = solve_trace(DOMINANT, (0.1, 0.01))
    truth = np.diagonal(np.array(DOMINANT)[0])
    bias = truth - np.diagonal(found.confusion.numpy()[0])
    np.testing.assert_allclose(bias, 0.01 * 3 * truth * (1 - truth), rtol=0.02)


def test_least_trace_is_not_the_truth_where_the_crowd_is_not_dominant():
    shifted = np.array(DOMINANT)[:, [1, 2, 0]]  # mostly wrong, in a consistent way
    assert solve_trace(shifted.tolist(), (0.1, 0.01, 1e-3))[1] > 0.1


# ----------------------------------------------------------------------------------------- volumes

RULES = {
    "none": None,
    "F": lambda log_probas, _: feature_volume(log_probas),
    "W": lambda _, table: confusion_volume(table),
}
NO_EXPERT = 0.45 * np.eye(3) + 0.55 * np.random.default_rng(0).dirichlet(np.full(3, 5.0), (3, 3))
CLEAR_CASES = np.vstack([np.eye(3), np.random.default_rng(1).dirichlet(np.ones(3), 6)])
# Worker k answers k on class k alone.
EXPERTS = np.array([
    [[0.8, 0.2, 0.0], [0.0, 0.7, 0.3], [0.0, 0.4, 0.6]],
    [[0.6, 0.0, 0.4], [0.1, 0.8, 0.1], [0.5, 0.0, 0.5]],
    [[0.7, 0.3, 0.0], [0.4, 0.6, 0.0], [0.0, 0.2, 0.8]],
])  # fmt: skip
NO_CLEAR_CASE = 0.5 * np.eye(3)[[0, 1, 2, 0, 1, 2]] + 0.5 * np.random.default_rng(2).dirichlet(
    np.ones(3), 6
)


@pytest.mark.parametrize(
    ("f", "theta", "right"),
    [(CLEAR_CASES, NO_EXPERT, "F"), (NO_CLEAR_CASE, EXPERTS, "W")],
)
def test_the_right_volume_recovers_confusions_that_plain_coupling_does_not(f, theta, right):
    torch.manual_seed(0)
    logits, batch, errors = 0.1 * torch.randn(len(f), 3), population_batch(f, theta), {}
    for name in ("none", right):
        head = SoftmaxConfusion(len(theta), 3, strength=1.0)
        path = (0.0,) if name == "none" else (0.0, 1e-3, 1e-4)
        found = solve_population(batch, head, logits, RULES[name], path)
        errors[name] = np.abs(found.confusion.numpy() - theta).max()
    assert errors[right] < 0.02
    assert errors["none"] > 3 * errors[right]
