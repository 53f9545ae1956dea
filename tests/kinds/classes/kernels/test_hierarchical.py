"""The compiled kernel against its specification."""

from __future__ import annotations

import numpy as np
import pytest

from wisecrowd.kernels.arguments import TaskLabels, TaskPriors
from wisecrowd.kinds.classes.kernels import hierarchical, hierarchical_fast
from wisecrowd.kinds.classes.kernels.hierarchical import (
    CountSums,
    RatePrior,
    TaskBlock,
    TaskLevels,
    WorkerCounts,
)


def random_arguments(block, levels=(0.0, 0.3, 0.6, 0.9), seed=0):
    """Return the arguments of the kernel for a random block, own contributions in the counts."""
    rng = np.random.default_rng(seed)
    J, K, n, D = block.J, block.K, block.n, len(levels)
    own = rng.uniform(0, 1, size=(len(block.label), K)).astype(np.float32)
    cells = rng.uniform(0, 3, size=(J * K, K))
    np.add.at(cells, block.cell, own.astype(np.float64))
    totals = cells.reshape(J, K, K).sum(axis=1)
    weights = np.minimum(1, 5 / (4 + totals))
    right = np.einsum("jk,jkk->j", weights, cells.reshape(J, K, K))
    counts = WorkerCounts(cells, totals, weights, right, (weights * totals).sum(axis=1))
    wrong = rng.dirichlet(np.ones(K), size=K).T.copy()
    np.fill_diagonal(wrong, 0)
    population = RatePrior(wrong, rng.dirichlet(np.ones(K)), 1.7, 0.6, 8.0, 4.0)
    return (
        TaskLabels(block.indptr, block.worker, block.label, block.weight),
        TaskPriors(block.log_class, block.prior_rows, block.prior_index),
        counts,
        population,
        TaskLevels(np.array(levels), np.log(rng.dirichlet(np.ones(D)))),
        TaskBlock(own, rng.dirichlet(np.ones(K), size=n), rng.uniform(size=n)),
        CountSums(rng.uniform(size=(J * K, K)), rng.uniform(size=K), rng.uniform(size=D)),
        0.3,
    )


def assert_same_step(make):
    found, expected = make(), make()
    score, moving = hierarchical_fast.hierarchical_step(*found)
    same_score, same_moving = hierarchical.hierarchical_step(*expected)
    assert score == pytest.approx(same_score, rel=1e-12)
    assert moving == same_moving
    for one, other in zip((*found[5], *found[6]), (*expected[5], *expected[6]), strict=True):
        exact = one.dtype == np.float64
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-12 if exact else 1e-7)


CASES = [(1, False, "none"), (3, False, "row"), (3, True, "gold"), (12, False, "rows")]


@pytest.mark.parametrize(("K", "weight", "prior"), [*CASES, (3, False, "gold"), (12, True, "none")])
def test_the_step_is_that_of_the_reference(block, K, weight, prior):
    one = block(K, n=300, weight=weight, prior=prior, offset=4)
    assert_same_step(lambda: random_arguments(one))


@pytest.mark.parametrize("levels", [(0.0,), (0.0, 0.5), (0.1, 0.2, 0.4, 0.5, 0.8)])
def test_any_number_of_levels(block, levels):
    assert_same_step(lambda: random_arguments(block(3, n=40), levels))


@pytest.mark.parametrize("weight", [False, True])
def test_tasks_with_hundreds_of_labels(block, weight):
    one = block(3, n=30, J=400, weight=weight)
    rng = np.random.default_rng(3)
    sizes = np.array([700, 0, 5, 9, 8, 300, 16, 17, 1])
    one.n, one.indptr = len(sizes), np.concatenate([[0], np.cumsum(sizes)])
    E = sizes.sum()
    one.worker, one.label = rng.integers(0, 400, E), rng.integers(0, 3, E).astype(np.int32)
    one.cell = (one.worker * 3 + one.label).astype(np.int32)
    one.weight = rng.uniform(0, 3, E) if weight else None
    assert_same_step(lambda: random_arguments(one))


def test_contradictory_halves_do_not_underflow():
    """A class may be improbable after the first labels of a task and probable after the last."""
    J, K, n_half = 1, 2, 600
    label = np.repeat([0, 1], [n_half, n_half + 1]).astype(np.int32)
    E = len(label)
    cells = np.array([[1e6, 1.0], [1.0, 1e6]])  # a worker who is hardly ever wrong
    totals = cells.sum(axis=0)[None]
    counts = WorkerCounts(cells, totals, np.zeros((1, K)), np.zeros(J), np.zeros(J))
    population = RatePrior(np.array([[0.0, 1], [1, 0]]), np.full(2, 0.5), 1.0, 0.5, 1.0, 1.0)
    for kernels in (hierarchical_fast, hierarchical):
        state = TaskBlock(np.zeros((E, K), np.float32), np.full((1, K), 0.5), np.zeros(1))
        kernels.hierarchical_step(
            TaskLabels(np.array([0, E]), np.zeros(E, np.int32), label, None),
            TaskPriors(np.log(np.full(2, 0.5)), np.zeros((1, 2)), None),
            counts, population, TaskLevels(np.zeros(1), np.zeros(1)), state,
            CountSums(np.zeros((2, 2)), np.zeros(2), np.zeros(1)), 1e-3,
        )  # fmt: skip
        assert state.probas[0, 1] > 0.999
