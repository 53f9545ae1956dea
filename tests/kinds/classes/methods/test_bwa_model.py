from __future__ import annotations

import numpy as np
import pytest

from wisecrowd.inference.engine import cut_tasks
from wisecrowd.kinds.classes.container import CrowdLabels
from wisecrowd.kinds.classes.methods.bwa import (
    LEAST,
    BWAModel,
    BWAParams,
    Truths,
    prior_means,
    vote_variance,
)
from wisecrowd.kinds.classes.prior import TaskPrior


@pytest.fixture
def labels():
    rng = np.random.default_rng(0)
    task, worker = np.nonzero(rng.random((9, 4)) < 0.7)
    return CrowdLabels.from_arrays(
        task, worker, rng.integers(0, 3, len(task)), weight=rng.uniform(0.2, 2, len(task)),
        tasks=np.arange(10), classes=np.arange(3),
    )  # fmt: skip


def test_truths_and_statistics_by_brute_force(labels):
    rng = np.random.default_rng(1)
    rows = np.log(rng.dirichlet(np.ones(3), 10))
    rows[2] = [-np.inf, 0, -np.inf]  # known
    rows[4, 0] = -np.inf  # ruled out
    prior = TaskPrior(rows, np.arange(10, dtype=np.int32), given=True)
    means = prior_means(rows)
    params = BWAParams(rng.uniform(1, 5, (4, 3)), np.array([0.05, -0.02, 0.0]))
    (shard,) = cut_tasks(labels, prior, 1)
    truths = Truths(shard, 4, None)
    truths.update(params, 0.7)
    stats = truths.stats(params.shift)
    x, errors = np.empty((10, 3)), np.zeros((4, 3))
    for i, k in np.ndindex(10, 3):
        above, below = 0.7 * (means[i, k] + params.shift[k]), 0.7
        for e in np.flatnonzero(labels.task == i):
            v = labels.weight[e] * params.precision[labels.worker[e], k]
            above, below = above + v * (labels.label[e] == k), below + v
        x[i, k] = above / below if 0 < means[i, k] < 1 else means[i, k]
    for e in range(labels.n_annotations):
        gap = np.eye(3)[labels.label[e]] - x[labels.task[e]]
        errors[labels.worker[e]] += labels.weight[e] * gap**2
    np.testing.assert_allclose(truths.x, x, atol=1e-12)
    np.testing.assert_allclose(stats.errors, errors, atol=1e-12)
    free = (means > 0) & (means < 1)
    free[9] = False  # without labels
    np.testing.assert_allclose(stats.excess, ((x - means) * free).sum(axis=0), atol=1e-12)
    np.testing.assert_array_equal(stats.free, free.sum(axis=0))
    distance = (((x - means - params.shift) * free) ** 2).sum()
    assert stats.distance == pytest.approx(distance, abs=1e-12)


def spread_of(labels, n_classes):
    (shard,) = cut_tasks(labels, TaskPrior(np.zeros((1, n_classes))), 1)
    model = BWAModel(
        1.0, 1.0, np.ones(labels.n_workers), None, np.zeros(n_classes), np.zeros(n_classes)
    )
    return vote_variance(model.spread(shard, model.begin(shard), None)[1])


def test_vote_variance_by_brute_force(labels):
    total = np.zeros(3)
    for i in range(9):
        here = labels.task == i
        share = labels.weight[here] @ np.eye(3)[labels.label[here]] / labels.weight[here].sum()
        total += labels.weight[here].sum() * share * (1 - share)
    expected = 4 * (1 - 1 / 3) * total / labels.weight.sum()
    np.testing.assert_allclose(spread_of(labels, 3), expected, atol=1e-12)


def test_unanimity_leaves_some_variance():
    labels = CrowdLabels.from_matrix(np.zeros((3, 3), int), classes=[0, 1])
    np.testing.assert_array_equal(spread_of(labels, 2), [LEAST, LEAST])
