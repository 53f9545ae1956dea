"""Penalties: closed forms, gradients, and what infinitely many labels identify."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from benchmarks.accuracy.exact_losses import population_batch, solve_population

from wisecrowd.nn.heads import SoftmaxConfusion, SoftplusConfusion
from wisecrowd.nn.penalties import (
    confusion_volume,
    feature_volume,
    mean_trace,
    outlier_size,
)


def dirichlet(*shape: int, seed: int = 0) -> torch.Tensor:
    *outer, n = shape
    return torch.from_numpy(np.random.default_rng(seed).dirichlet(np.ones(n), tuple(outer)))


def test_mean_trace():
    tables = dirichlet(5, 3, 3)
    expected = np.mean([np.trace(table) for table in tables.numpy()])
    assert float(mean_trace(tables)) == pytest.approx(expected)


def test_volumes_are_log_determinants():
    f, tables = dirichlet(40, 3), dirichlet(5, 3, 3)
    gram = 3 * f.numpy().T @ f.numpy() / 40
    assert float(feature_volume(f.log())) == pytest.approx(-np.log(np.linalg.det(gram)), rel=1e-5)
    stacked = np.vstack([table.T for table in tables.numpy()])
    gram = stacked.T @ stacked / 5
    assert float(confusion_volume(tables)) == pytest.approx(-np.log(np.linalg.det(gram)), rel=1e-5)


def test_volumes_are_least_at_sure_classes_and_perfect_workers():
    sure = (torch.eye(4, dtype=torch.float64).repeat(3, 1) + 1e-300).log()
    assert float(feature_volume(sure)) == pytest.approx(0, abs=1e-6)
    assert float(confusion_volume(torch.eye(4).repeat(3, 1, 1))) == pytest.approx(0, abs=1e-6)


def test_gradients_of_volumes_agree_with_differences():
    logits = torch.randn(20, 3, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x: feature_volume(torch.log_softmax(x, 1)), (logits,))
    tables = torch.randn(2, 3, 3, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x: confusion_volume(torch.softmax(x, 2)), (tables,))


def test_the_product_of_both_determinants_is_the_same_for_all_explanations():
    f, tables = dirichlet(30, 3), dirichlet(4, 3, 3)
    stacked = tables.transpose(1, 2).reshape(-1, 3)  # W, so that P = W Fᵀ
    mix = dirichlet(3, 3, seed=5).T + torch.eye(3)

    def product(w, outputs):
        return torch.linalg.det(w.T @ w) * torch.linalg.det(outputs.T @ outputs)

    moved = f @ torch.linalg.inv(mix).T
    torch.testing.assert_close(stacked @ mix @ moved.T, stacked @ f.T)
    torch.testing.assert_close(product(stacked @ mix, moved), product(stacked, f))


def test_a_batch_that_lost_a_class_goes_without_penalty_and_without_nan():
    for outputs in (torch.zeros(20, 10), torch.tensor([[40.0, 0, 0]]).repeat(5, 1)):
        logits = outputs.clone().requires_grad_()
        volume = feature_volume(torch.log_softmax(logits, dim=1))
        volume.backward()
        assert float(volume.detach()) == 0
        assert not logits.grad.any()


def test_the_trace_of_a_dominant_crowd_grows_when_it_is_mixed():
    """A = ÂP, columns true classes, with Â row-dominant and P stochastic: a_ii ≤ â_ii."""
    rng = np.random.default_rng(0)
    n_dominant = 0
    for _ in range(600):
        k = int(rng.integers(2, 5))
        estimate = rng.dirichlet(np.ones(k), k).T + rng.uniform(0, 1) * np.eye(k)
        estimate /= estimate.sum(axis=0)
        others = np.where(np.eye(k, dtype=bool), -np.inf, estimate).max(axis=1)
        if not (np.diag(estimate) > others).all():
            continue
        n_dominant += 1
        mix = rng.dirichlet(np.ones(k), k).T
        assert (np.diag(estimate @ mix) < np.diag(estimate)).all()
        torch_trace = mean_trace(torch.from_numpy((estimate @ mix).T)[None])
        assert float(torch_trace) < np.trace(estimate)
    assert n_dominant > 100


def test_outlier_size_is_a_power_of_each_tasks_norm():
    outliers = torch.randn(6, 3, dtype=torch.float64)
    task = torch.tensor([0, 0, 1, 3, 3, 3])
    squares = (outliers**2).sum(dim=1).numpy()
    per_task = np.bincount(task, squares, 4)
    expected = np.mean((per_task + 1e-10) ** 0.2)
    assert float(outlier_size(outliers, task, 4)) == pytest.approx(expected)


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
