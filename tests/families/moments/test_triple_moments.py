"""Triple moments against counting one triple of labels after the other."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from wisecrowd.core.labels import CrowdLabels
from wisecrowd.families.moments import triple_moments as module
from wisecrowd.families.moments.triple_moments import triple_moments


def random_labels(n=150, n_workers=8, seed=0):
    rng = np.random.default_rng(seed)
    return CrowdLabels.from_arrays(
        rng.integers(0, 25, n), rng.integers(0, n_workers, n), rng.integers(0, 3, n),
        weight=rng.integers(0, 3, n).astype(float), duplicates="keep",
    )  # fmt: skip


def brute_force(labels, workers):
    counts = np.zeros((labels.n_classes,) * 3)
    rows = [np.flatnonzero(labels.worker == j) for j in workers]
    for e in rows[0]:
        for f in rows[1][labels.task[rows[1]] == labels.task[e]]:
            for g in rows[2][labels.task[rows[2]] == labels.task[e]]:
                product = labels.weight[e] * labels.weight[f] * labels.weight[g]
                counts[labels.label[e], labels.label[f], labels.label[g]] += product
    return counts


@pytest.mark.parametrize("rows", [module.ROWS, 20])
def test_counts_are_those_of_all_triples_of_annotations(monkeypatch, rows):
    monkeypatch.setattr(module, "ROWS", rows)
    labels = random_labels()
    found = triple_moments(labels, min_shared=3)
    expected = {x: brute_force(labels, x) for x in combinations(range(labels.n_workers), 3)}
    expected = {x: counts for x, counts in expected.items() if counts.sum() >= 3}
    assert [tuple(x) for x in found.workers.tolist()] == sorted(expected)
    assert 0 < found.n_triples < 56
    for t, workers in enumerate(sorted(expected)):
        np.testing.assert_array_equal(found.counts[t], expected[workers])
        assert found.n_shared[t] == expected[workers].sum()
    np.testing.assert_allclose(found.tables.sum(axis=(1, 2, 3)), 1.0)


def test_a_budget_draws_triples_and_says_so():
    labels = random_labels(n=400, n_workers=14)
    found = triple_moments(labels, max_triples=30, rng=np.random.default_rng(1))
    assert found.n_triples == 30
    assert "drawn" in str(found.findings[0])
    assert (np.diff(found.workers, axis=1) > 0).all()
    assert len(np.unique(found.workers, axis=0)) == 30
    assert len(np.unique(found.workers)) == 14  # nobody is left out
    for workers, counts in zip(found.workers[:5], found.counts[:5], strict=True):
        np.testing.assert_array_equal(counts, brute_force(labels, workers))
    again = triple_moments(labels, max_triples=30, rng=np.random.default_rng(1))
    np.testing.assert_array_equal(found.workers, again.workers)


def test_no_triple():
    labels = CrowdLabels.from_matrix([[0, 1], [1, 1]])
    assert triple_moments(labels).n_triples == 0
