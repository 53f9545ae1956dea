from __future__ import annotations

import numpy as np
import pytest

from wisecrowd.kinds.classes.kernels import confusion


def brute_force_step(b, hard=False):
    """The E-step and its counts with products of probabilities, one annotation at a time."""
    counts, mass = np.zeros((b.J * b.K, b.K)), np.zeros(b.K)
    probas, total = np.zeros((b.n, b.K)), 0.0
    for i in range(b.n):
        row = 0 if b.prior_index is None else b.prior_index[i]
        joint = [np.exp(b.log_class[k]) * np.exp(b.prior_rows[row, k]) for k in range(b.K)]
        for e in range(b.indptr[i], b.indptr[i + 1]):
            w = 1.0 if b.weight is None else b.weight[e]
            for k in range(b.K):
                joint[k] *= b.theta[b.worker[e], k, b.label[e]] ** w
        evidence = max(joint) if hard else sum(joint)
        for k in range(b.K):
            if hard:
                probas[i, k] = float(np.argmax(joint) == k)
            else:
                probas[i, k] = joint[k] / evidence
        if b.indptr[i + 1] > b.indptr[i]:
            total += np.log(evidence)
            mass += probas[i]
        for e in range(b.indptr[i], b.indptr[i + 1]):
            w = 1.0 if b.weight is None else b.weight[e]
            for k in range(b.K):
                counts[b.worker[e] * b.K + b.label[e], k] += w * probas[i, k]
    return total, counts, mass, probas


def run_step(b, hard=False):
    counts, mass = np.zeros((b.J * b.K, b.K)), np.zeros(b.K)
    probas = np.full((b.n, b.K), np.nan)
    total = confusion.confusion_step(b.indptr, b.cell, b.weight, b.table, b.log_class, b.prior_rows,
                                     b.prior_index, counts, mass, probas, hard)  # fmt: skip
    return total, counts, mass, probas


@pytest.mark.parametrize("hard", [False, True])
@pytest.mark.parametrize("prior", ["none", "row", "rows", "gold"])
@pytest.mark.parametrize("weight", [False, True])
@pytest.mark.parametrize("K", [1, 2, 3, 5])
def test_confusion_step_is_bayes_rule(block, K, weight, prior, hard):
    b = block(K, weight=weight, prior=prior, offset=4)
    for given, expected in zip(run_step(b, hard), brute_force_step(b, hard), strict=True):
        np.testing.assert_allclose(given, expected, rtol=1e-10, atol=1e-12)


def test_statistics_are_added_to_what_is_there(block):
    b = block(3)
    counts, mass = np.full((b.J * 3, 3), 7.0), np.full(3, 5.0)
    confusion.confusion_step(b.indptr, b.cell, None, b.table, b.log_class, b.prior_rows, None,
                             counts, mass, None, False)  # fmt: skip
    _, expected_counts, expected_mass, _ = brute_force_step(b)
    np.testing.assert_allclose(counts - 7, expected_counts)
    np.testing.assert_allclose(mass - 5, expected_mass)


def test_statistics_and_posteriors_may_be_left_out(block):
    b = block(3)
    total = confusion.confusion_step(b.indptr, b.cell, None, b.table, b.log_class, b.prior_rows,
                                     None, None, None, None, False)  # fmt: skip
    assert total == pytest.approx(brute_force_step(b)[0], rel=1e-12)


def test_two_blocks_add_up_to_one(block):
    b = block(3, weight=True, prior="rows")
    whole = run_step(b)
    counts, mass, total = np.zeros((b.J * 3, 3)), np.zeros(3), 0.0
    probas = np.empty((b.n, 3))
    for rows in (slice(0, 11), slice(11, 30)):
        total += confusion.confusion_step(
            b.indptr[rows.start : rows.stop + 1], b.cell, b.weight, b.table, b.log_class,
            b.prior_rows, b.prior_index[rows], counts, mass, probas[rows], False,
        )  # fmt: skip
    for given, expected in zip((total, counts, mass, probas), whole, strict=True):
        np.testing.assert_allclose(given, expected, rtol=1e-12)


def test_hard_ties_are_shared():
    counts, mass, probas = np.zeros((6, 3)), np.zeros(3), np.empty((1, 3))
    table = np.log(np.full((6, 3), 1 / 3))
    log_class = np.log([0.4, 0.4, 0.2])
    flat = np.zeros((1, 3))
    value = confusion.confusion_step(np.array([0, 1]), np.array([4]), None, table, log_class, flat,
                                     None, counts, mass, probas, True)  # fmt: skip
    np.testing.assert_allclose(probas, [[0.5, 0.5, 0]])
    np.testing.assert_allclose(counts[4], [0.5, 0.5, 0])
    assert value == pytest.approx(np.log(0.4 / 3))


def test_many_labels_do_not_underflow():
    n = 5000  # 0.1 ** 5000 is far below the smallest float
    table = np.log(np.array([[0.2, 0.1], [0.8, 0.9]]))
    probas = np.empty((1, 2))
    value = confusion.confusion_step(np.array([0, n]), np.zeros(n, int), None, table, np.zeros(2),
                                     np.zeros((1, 2)), None, None, None, probas, False)  # fmt: skip
    np.testing.assert_allclose(probas, [[1, 0]], atol=1e-12)
    assert value == pytest.approx(n * np.log(0.2))


def test_empty_block():
    counts, mass, probas = np.zeros((4, 2)), np.zeros(2), np.empty((0, 2))
    value = confusion.confusion_step(np.array([3]), np.zeros(5, int), None, np.zeros((4, 2)),
                                     np.zeros(2), np.zeros((1, 2)), None, counts, mass, probas,
                                     False)  # fmt: skip
    assert value == 0
    assert not counts.any()


@pytest.mark.parametrize("weight", [False, True])
def test_add_counts(block, weight):
    b = block(3, weight=weight, offset=2)
    q = np.random.default_rng(1).dirichlet(np.ones(3), size=b.n)
    counts = np.zeros((b.J * 3, 3))
    confusion.add_counts(b.indptr, b.cell, b.weight, q, counts)
    expected = np.zeros((b.J * 3, 3))
    for i in range(b.n):
        for e in range(b.indptr[i], b.indptr[i + 1]):
            expected[b.cell[e]] += (1 if b.weight is None else b.weight[e]) * q[i]
    np.testing.assert_allclose(counts, expected, rtol=1e-12)
