"""Rows counted on neighbouring anchors, against a plain loop."""

from __future__ import annotations

import numpy as np
import pytest

from wisecrowd.core.labels import CrowdLabels
from wisecrowd.learning import anchors
from wisecrowd.learning.anchors import neighbour_rows


@pytest.mark.parametrize("at_once", [7, 1024])
def test_rows_are_shrunken_counts_over_the_nearest_anchors(monkeypatch, at_once):
    monkeypatch.setattr(anchors, "_TASKS_AT_ONCE", at_once)
    rng = np.random.default_rng(0)
    n, n_workers, k = 40, 5, 3
    votes = np.where(rng.random((n, n_workers)) < 0.5, rng.integers(k, size=(n, n_workers)), -1)
    votes[:, 0] = 0
    labels = CrowdLabels.from_matrix(votes, missing=-1, classes=range(k))
    features, probas = rng.normal(size=(n, 2)), rng.dirichlet(np.full(k, 0.3), n)
    table = rng.dirichlet(np.ones(k), (n_workers, k))
    found = neighbour_rows(
        features, probas, labels, table, threshold=0.7, n_neighbours=9, shrinkage=2.0
    )
    clear = np.flatnonzero(probas.max(axis=1) >= 0.7)
    kind = probas.argmax(axis=1)
    for e, (i, j, y) in enumerate(zip(labels.task, labels.worker, labels.label, strict=True)):
        distance = np.linalg.norm(features[clear] - features[i], axis=1)
        near = [a for a in clear[np.argsort(distance)][:9] if a != i and votes[a, j] >= 0]
        for c in range(k):
            total = sum(kind[a] == c for a in near)
            same = sum(kind[a] == c and votes[a, j] == y for a in near)
            assert found[e, c] == pytest.approx((same + 2 * table[j, c, y]) / (total + 2))


def test_without_anchors_rows_are_the_workers_own():
    labels = CrowdLabels.from_matrix(np.array([[0, 1], [1, 1]]))
    table = np.random.default_rng(0).dirichlet(np.ones(2), (2, 2))
    found = neighbour_rows(
        np.zeros((2, 1)), np.full((2, 2), 0.5), labels, table,
        threshold=0.9, n_neighbours=5, shrinkage=1.0,
    )  # fmt: skip
    np.testing.assert_array_equal(found, table[labels.worker, :, labels.label])
