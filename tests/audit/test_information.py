from __future__ import annotations

import numpy as np
import pytest

from wisecrowd.audit.information import channel_capacity, mutual_information, spammer_score


def entropy(p):
    p = np.asarray(p)[np.asarray(p) > 0]
    return float(-(p * np.log2(p)).sum())


def test_score_is_the_sum_over_pairs_of_rows():
    rng = np.random.default_rng(0)
    confusion = rng.dirichlet(np.ones(4), size=(5, 4))
    expected = [
        sum(((w[k] - w[m]) ** 2).sum() for k in range(4) for m in range(k)) / (4 * 3)
        for w in confusion
    ]
    np.testing.assert_allclose(spammer_score(confusion), expected)


def test_score_of_known_workers():
    swapped = np.eye(3)[[1, 2, 0]]
    constant = np.repeat([[0.2, 0.5, 0.3]], 3, axis=0)
    found = spammer_score(np.array([np.eye(3), swapped, constant]))
    np.testing.assert_allclose(found, [1, 1, 0], atol=1e-12)


def test_score_in_the_binary_case_is_youden_squared():
    sensitivity, specificity = 0.8, 0.7
    confusion = np.array([[[specificity, 1 - specificity], [1 - sensitivity, sensitivity]]])
    assert spammer_score(confusion)[0] == pytest.approx((sensitivity + specificity - 1) ** 2)


def test_mutual_information_is_a_difference_of_entropies():
    rng = np.random.default_rng(1)
    confusion, prior = rng.dirichlet(np.ones(3), size=(4, 3)), rng.dirichlet(np.ones(3))
    expected = [
        entropy(prior @ w) - prior @ np.array([entropy(row) for row in w]) for w in confusion
    ]
    np.testing.assert_allclose(mutual_information(confusion, prior), expected, atol=1e-12)


def test_capacity_in_closed_form():
    symmetric = np.array([[0.89, 0.11], [0.11, 0.89]])
    erased = np.array([[0.7, 0.0, 0.3], [0.0, 0.7, 0.3], [0.35, 0.35, 0.3]])  # third row is useless
    spammer = np.full((2, 2), 0.5)
    z_channel = np.array([[1.0, 0.0], [0.5, 0.5]])
    assert channel_capacity(symmetric[None])[0] == pytest.approx(1 - entropy([0.89, 0.11]))
    assert channel_capacity(erased[None])[0] == pytest.approx(0.7, abs=1e-6)
    assert channel_capacity(z_channel[None])[0] == pytest.approx(np.log2(5 / 4))
    assert channel_capacity(spammer[None])[0] == pytest.approx(0, abs=1e-12)


def test_capacity_is_the_largest_mutual_information():
    rng = np.random.default_rng(2)
    confusion = rng.dirichlet(np.ones(3), size=(3, 3))
    grid = [(a, b, 1 - a - b) for a in np.linspace(0, 1, 101) for b in np.linspace(0, 1 - a, 101)]
    best = np.max([mutual_information(confusion, np.array(p)) for p in grid], axis=0)
    found = channel_capacity(confusion)
    assert (found >= best - 1e-9).all()
    np.testing.assert_allclose(found, best, atol=1e-3)


def test_one_class_says_nothing():
    assert spammer_score(np.ones((2, 1, 1))).tolist() == [0, 0]
    assert channel_capacity(np.ones((2, 1, 1))).tolist() == [0, 0]
