from __future__ import annotations

import numpy as np
import pytest

from wisecrowd import simulate
from wisecrowd.audit.covariance import RIDGES, RowFit, two_means
from wisecrowd.core.labels import CrowdLabels
from wisecrowd.families.moments.pair_moments import PairMoments, pair_moments


def population(confusion, prior, n_shared=1000.0):
    """Pair tables of a known model, for all pairs."""
    J, K, _ = confusion.shape
    first, second = (x.astype(np.int32) for x in np.triu_indices(J, 1))
    tables = np.einsum("k,pkl,pkm->plm", prior, confusion[first], confusion[second])
    return PairMoments(
        first, second, n_shared * tables, np.full(len(first), n_shared), J, K,
        np.einsum("k,jkl->jl", prior, confusion),
    )  # fmt: skip


def one_coin(accuracies, n_classes):
    accuracies = np.asarray(accuracies)[:, None, None]
    eye = np.eye(n_classes)
    return accuracies * eye + (1 - accuracies) / (n_classes - 1) * (1 - eye)


@pytest.mark.parametrize("n_classes", [2, 4])
def test_rows_of_spammers_are_zero_on_population_moments(n_classes):
    rng = np.random.default_rng(0)
    honest = one_coin(rng.uniform(0.6, 0.95, 8), n_classes)
    spam = np.repeat(rng.dirichlet(np.ones(n_classes), 4)[:, None], n_classes, axis=1)
    pairs = population(np.concatenate([honest, spam]), rng.dirichlet(np.full(n_classes, 5)))
    rows = RowFit(pairs, n_classes).rows(1e-6)
    norms = np.linalg.norm(rows, axis=1)
    assert norms[8:].max() < 1e-4
    assert norms[:8].min() > 0.1


def with_rounding(pairs, seed):
    """Return the pairs as another processor might have counted them."""
    noise = 1e-13 * np.random.default_rng(seed).standard_normal(pairs.counts.shape)
    return PairMoments(
        pairs.first, pairs.second, pairs.counts * (1 + noise), pairs.n_shared, pairs.n_workers,
        pairs.n_classes, pairs.marginals,
    )  # fmt: skip


@pytest.mark.parametrize("ridge", [1e-6, 1e-3, 0.1])
@pytest.mark.parametrize("rank", [1, 2, 5])
def test_rounding_does_not_decide_the_rows(rank, ridge):
    rng = np.random.default_rng(3)
    honest = one_coin(rng.uniform(0.6, 0.95, 8), 2)  # covariance of rank one
    spam = np.repeat(rng.dirichlet(np.ones(2), 4)[:, None], 2, axis=1)
    pairs = population(np.concatenate([honest, spam]), np.array([0.4, 0.6]))
    expected = RowFit(pairs, rank).rows(ridge)
    assert expected.shape == (12, rank)
    np.testing.assert_allclose(expected[:, 1:], 0.0, atol=1e-9)  # what has no signal is not there
    for seed in range(5):
        rows = RowFit(with_rounding(pairs, seed), rank).rows(ridge)
        np.testing.assert_allclose(rows @ rows.T, expected @ expected.T, rtol=0, atol=1e-9)


def test_rounding_does_not_decide_the_rows_of_sampled_labels():
    crowd = simulate.crowd(
        150, 12 * simulate.OneCoinWorkers(6, 3) + 4 * simulate.Spammers(), n_classes=4,
        random_state=0,
    )  # fmt: skip
    pairs = pair_moments(crowd.labels)
    ridge, errors = RowFit(pairs, 4).choose_ridge(np.random.default_rng(0))
    expected = RowFit(pairs, 4).rows(ridge)
    for seed in range(3):
        other = RowFit(with_rounding(pairs, seed), 4)
        same, other_errors = other.choose_ridge(np.random.default_rng(0))
        rows = other.rows(ridge)
        assert same == ridge
        np.testing.assert_allclose(other_errors, errors, rtol=1e-7)
        np.testing.assert_allclose(rows @ rows.T, expected @ expected.T, rtol=0, atol=1e-9)


@pytest.mark.parametrize("n_workers", [20, 300])
def test_workers_without_any_covariance_have_rows_of_zeros(n_workers):
    """Everybody gives the same label always; the iterative eigensolver fails on zeros."""
    votes = np.where(np.random.default_rng(0).random((60, n_workers)) < 0.2, 0, -1)
    fit = RowFit(pair_moments(CrowdLabels.from_matrix(votes, missing=-1, classes=[0, 1])), 2)
    ridge, errors = fit.choose_ridge(np.random.default_rng(0))
    assert ridge == RIDGES[-1]
    np.testing.assert_array_equal(errors, 0.0)
    np.testing.assert_array_equal(fit.rows(ridge), np.zeros((n_workers, 2)))


def test_rank_one_recovers_one_coin_workers_exactly():
    accuracies = np.array([0.9, 0.8, 0.7, 0.6, 0.5])
    pairs = population(one_coin(accuracies, 2), np.array([0.5, 0.5]))
    rows = RowFit(pairs, 1).rows(1e-9)
    # Covariance of binary one-hot labels, summed: 2 · 1/4 · (2p - 1) (2q - 1).
    expected = (2 * accuracies - 1) / np.sqrt(2)
    np.testing.assert_allclose(np.abs(rows[:, 0]), expected, atol=1e-8)


def test_sweep_solves_the_normal_equations():
    rng = np.random.default_rng(1)
    pairs = population(rng.dirichlet(np.ones(3), size=(9, 3)), np.full(3, 1 / 3))
    ridge = 0.05
    rows = RowFit(pairs, 3).rows(ridge)
    covariance = pairs.matrix(pairs.covariance).toarray()
    for j in range(9):
        others = np.delete(rows, j, axis=0)
        gram = others.T @ others + ridge * np.eye(3)
        target = others.T @ np.delete(covariance[j], j)
        np.testing.assert_allclose(rows[j], np.linalg.solve(gram, target), atol=1e-8)


def test_ridge_is_chosen_by_left_out_pairs():
    rng = np.random.default_rng(2)
    pairs = population(one_coin(rng.uniform(0.6, 0.9, 12), 2), np.array([0.5, 0.5]))
    ridge, error = RowFit(pairs, 1).choose_ridge(np.random.default_rng(0))
    assert ridge == RIDGES[0]  # without noise any ridge only harms
    assert (np.diff(error[:6]) > 0).all()
    random = rng.multinomial(10, np.full(4, 0.25), size=66).reshape(66, 2, 2).astype(float)
    noise = PairMoments(
        pairs.first, pairs.second, random, np.full(66, 10.0), 12, 2, pairs.marginals
    )
    assert RowFit(noise, 2).choose_ridge(np.random.default_rng(0))[0] >= 1.0


def test_two_means_finds_the_best_split():
    rng = np.random.default_rng(4)
    rows = np.concatenate([rng.normal(0, 0.1, (6, 2)), rng.normal([1, 0.5], 0.1, (5, 2))])
    low, centres = two_means(rows, np.random.default_rng(0))
    assert low.tolist() == [True] * 6 + [False] * 5
    np.testing.assert_allclose(centres[0], rows[:6].mean(axis=0))
    np.testing.assert_allclose(centres[1], rows[6:].mean(axis=0))


@pytest.mark.parametrize("rows", [np.zeros((0, 2)), np.zeros((1, 2)), np.zeros((4, 2))])
def test_two_means_without_two_different_rows(rows):
    low, centres = two_means(rows, np.random.default_rng(0))
    assert low.shape == (len(rows),)
    assert np.isfinite(centres).all()
