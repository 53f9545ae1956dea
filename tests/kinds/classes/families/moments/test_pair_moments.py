"""Pair moments: counted one pair of labels after the other, and their properties."""

from __future__ import annotations

import importlib

import numpy as np
import pytest

from wisecrowd import kernels
from wisecrowd.kinds.classes.container import CrowdLabels
from wisecrowd.kinds.classes.families.moments.pair_moments import (
    agreed_classes,
    closest_pairs,
    pair_moments,
)
from wisecrowd.kinds.classes.families.skill_vote import pair_agreement
from wisecrowd.simulate import Dense, FixedConfusion, crowd


def random_labels(n=300, n_tasks=40, n_workers=9, n_classes=3, seed=0, weighted=True):
    rng = np.random.default_rng(seed)
    return CrowdLabels.from_arrays(
        rng.integers(0, n_tasks, n),
        rng.integers(0, n_workers, n),
        rng.integers(0, n_classes, n),
        weight=rng.integers(0, 3, n).astype(float) if weighted else None,
        duplicates="keep",
    )


def brute_force(labels, a, b):
    """Return the joint counts of two workers by looking at all pairs of annotations."""
    counts = np.zeros((labels.n_classes, labels.n_classes))
    weight = np.ones(labels.n_annotations) if labels.weight is None else labels.weight
    for e in np.flatnonzero(labels.worker == a):
        for f in np.flatnonzero((labels.worker == b) & (labels.task == labels.task[e])):
            counts[labels.label[e], labels.label[f]] += weight[e] * weight[f]
    return counts


@pytest.mark.parametrize("compile_from", [0, 10**12])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("least", [1, 26])
def test_counts_are_those_of_all_pairs_of_annotations(monkeypatch, compile_from, weighted, least):
    if compile_from == 0:
        pytest.importorskip("numba")
    monkeypatch.setattr(kernels, "COMPILE_FROM", compile_from)
    labels = random_labels(weighted=weighted)
    pairs = pair_moments(labels, min_shared=least)
    expected = {
        (a, b): brute_force(labels, a, b)
        for a in range(labels.n_workers)
        for b in range(a + 1, labels.n_workers)
    }
    expected = {pair: table for pair, table in expected.items() if table.sum() >= least}
    assert list(zip(pairs.first.tolist(), pairs.second.tolist(), strict=True)) == sorted(expected)
    assert 0 < pairs.n_pairs < 9 * 8 // 2 or least == 1  # some are left out
    for p, pair in enumerate(sorted(expected)):
        np.testing.assert_array_equal(pairs.counts[p], expected[pair])
    np.testing.assert_allclose(pairs.n_shared, pairs.counts.sum(axis=(1, 2)))


def test_row_sums_are_the_marginals_on_shared_tasks():
    labels = random_labels(weighted=False, seed=3)
    pairs = pair_moments(labels)
    a, b = int(pairs.first[4]), int(pairs.second[4])
    per_task = np.bincount(labels.task[labels.worker == b], minlength=labels.n_tasks)
    mine = labels.worker == a
    expected = np.bincount(labels.label[mine], per_task[labels.task[mine]], labels.n_classes)
    np.testing.assert_array_equal(pairs.counts[4].sum(axis=1), expected)


def test_tables_are_unbiased_when_labels_are_missing():
    confusion = np.array([[[0.8, 0.2], [0.3, 0.7]], [[0.6, 0.4], [0.1, 0.9]]])
    prior = np.array([0.7, 0.3])
    expected = np.einsum("k,kl,km->lm", prior, *confusion)
    tables, counts = [], []
    for seed in range(60):
        made = crowd(
            400, 2 * FixedConfusion(confusion), Dense(), class_prior=prior, random_state=seed
        )
        seen = np.random.default_rng(seed).random(made.labels.n_annotations) < 0.5
        pairs = pair_moments(made.labels.select_annotations(seen))
        tables.append(pairs.tables[0])
        counts.append(pairs.n_shared[0])
    error = np.sqrt(expected * (1 - expected) / np.sum(counts))
    assert (np.abs(np.average(tables, axis=0, weights=counts) - expected) < 4 * error).all()


def test_agreement_and_covariance():
    labels = random_labels(weighted=False, seed=1)
    pairs = pair_moments(labels)
    binary = pair_agreement(labels, np.full(labels.n_tasks, -1))
    K, half = labels.n_classes, binary.first < binary.second
    np.testing.assert_allclose((K * pairs.agreement - 1) / (K - 1), binary.agreement[half])
    one_hot = np.eye(K)
    p = 7
    table = pairs.tables[p]
    both = sum(table[x, y] * one_hot[x] @ one_hot[y] for x in range(K) for y in range(K))
    means = table.sum(axis=1) @ table.sum(axis=0)
    assert pairs.covariance[p] == pytest.approx(both - means)


def test_blocks_and_matrices_see_every_pair_from_both_sides():
    pairs = pair_moments(random_labels(), min_shared=9)
    matrix = pairs.matrix(pairs.n_shared).toarray()
    np.testing.assert_array_equal(matrix, matrix.T)
    oriented, (indptr, partner, _) = pairs.oriented(pairs.tables), pairs.partners
    for j in range(pairs.n_workers):
        others, tables, shared = pairs.block(j)
        assert others.tolist() == np.flatnonzero(matrix[j]).tolist()
        np.testing.assert_array_equal(partner[indptr[j] : indptr[j + 1]], others)
        np.testing.assert_array_equal(oriented[indptr[j] : indptr[j + 1]], tables)
        np.testing.assert_array_equal(shared, matrix[j, others])
        for other, table in zip(others, tables, strict=True):
            low, high = min(j, other), max(j, other)
            p = np.flatnonzero((pairs.first == low) & (pairs.second == high))[0]
            expected = pairs.tables[p] if j == low else pairs.tables[p].T
            np.testing.assert_array_equal(table, expected)
    ones = np.ones(pairs.n_pairs)
    np.testing.assert_array_equal(pairs.sum_by_worker(ones, ones), np.diff(indptr))


def test_budget_keeps_everyones_closest_partner_and_says_so():
    labels = random_labels(seed=2)
    whole = pair_moments(labels)
    few = pair_moments(labels, max_pairs=12)
    assert few.n_pairs == 12
    assert "12 of them are used" in str(few.findings[0])
    assert not whole.findings
    kept = set(zip(few.first.tolist(), few.second.tolist(), strict=True))
    shared = whole.matrix(whole.n_shared).toarray()
    for j in range(labels.n_workers):
        best = shared[j].max()
        closest = {tuple(sorted((j, int(x)))) for x in np.flatnonzero(shared[j] == best)}
        assert closest & kept
    again = pair_moments(labels, max_pairs=12)
    np.testing.assert_array_equal(few.counts, again.counts)
    rows = closest_pairs(whole.first, whole.second, whole.n_shared, 12, np.random.default_rng(0))
    assert len(set(rows.tolist())) == 12


def test_pairs_without_any_shared_task():
    labels = CrowdLabels.from_arrays([0, 1], ["a", "b"], [0, 1])
    pairs = pair_moments(labels)
    assert pairs.n_pairs == 0
    assert pairs.parts()[1] == 2
    assert pairs.sum_by_worker(np.empty((0, 2, 2)), np.empty((0, 2, 2))).shape == (2, 2, 2)
    np.testing.assert_array_equal(pairs.marginals, np.eye(2))


@pytest.mark.parametrize("name", ["pairs", "pairs_fast"])
def test_kernels_count_only_the_pairs_asked_for(name):
    if name == "pairs_fast":
        pytest.importorskip("numba")
    kernel = importlib.import_module(f"wisecrowd.kinds.classes.kernels.{name}")
    labels = random_labels(weighted=False)
    columns = labels.task, labels.worker, labels.label, np.ones(labels.n_annotations)
    first, second = np.array([0, 2], np.int32), np.array([5, 3], np.int32)
    counts = kernel.pair_counts(*columns, first, second, labels.n_workers, labels.n_classes)
    for p in range(2):
        np.testing.assert_array_equal(counts[p], brute_force(labels, first[p], second[p]))


@pytest.mark.parametrize("seed", range(6))
def test_classes_that_two_workers_agreed_on_by_looking_at_all_pairs(seed):
    labels = random_labels(n=25, n_tasks=12, n_workers=4, n_classes=5, seed=seed)
    agreed = np.zeros(labels.n_classes, dtype=bool)
    for a in range(labels.n_workers):
        for b in range(a):
            agreed |= np.diagonal(brute_force(labels, a, b)) > 0
    np.testing.assert_array_equal(agreed_classes(labels), agreed)
