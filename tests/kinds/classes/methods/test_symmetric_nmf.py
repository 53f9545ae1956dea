"""SymmetricNMF on labels."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg

from wisecrowd.aggregation import DawidSkene, SymmetricNMF
from wisecrowd.core.exceptions import ParameterError
from wisecrowd.kinds.classes.families.moments.moment_method import inner_start
from wisecrowd.kinds.classes.families.moments.pair_moments import population_moments
from wisecrowd.kinds.classes.methods.symmetric_nmf import (
    _extreme_rows,
    fitted_factor,
    imputed_blocks,
    imputed_factor,
    nonnegative_rotation,
    parameters_of,
)
from wisecrowd.simulate import Dense, FixedConfusion, crowd


def two_shifts(n_tasks, seed=0):
    """Return workers of two shifts who share tasks only with four who work in both."""
    rng = np.random.default_rng(seed)
    confusion = rng.dirichlet(np.full(3, 0.5), (14, 3)) * 0.3 + 0.7 * np.eye(3)
    made = crowd(
        n_tasks, 14 * FixedConfusion(confusion), Dense(), class_prior=[0.4, 0.35, 0.25],
        random_state=seed,
    )  # fmt: skip
    first_shift = made.labels.task % 2 == 0
    worker = made.labels.worker
    seen = np.where(first_shift, worker < 9, (worker < 4) | (worker >= 9))
    return made.labels.select_annotations(seen), made.truth, confusion


@pytest.mark.parametrize("impute", [False, True])
def test_workers_who_never_meet_are_put_together(impute):
    labels, truth, confusion = two_shifts(4000)
    model = SymmetricNMF(impute=impute).fit(labels)
    assert model.identified_.all()
    assert np.sqrt(((model.confusion_ - confusion) ** 2).mean()) < 0.05
    best = DawidSkene().fit(labels).score(labels, truth)
    assert model.score(labels, truth) >= best - 0.01


def test_wrong_parameters_are_refused():
    labels, _, _ = two_shifts(20)
    with pytest.raises(ParameterError, match="impute"):
        SymmetricNMF(impute="yes").fit(labels)


@pytest.mark.parametrize("impute", [False, True])
@pytest.mark.parametrize(
    ("name", "alone", "then_em"),
    [("bluebird", 0.1204, 0.1205), ("dog", 0.1648, 0.1686), ("rte", 0.0788, 0.0813)],
)
def test_published_errors(real_crowd, name, alone, then_em, impute):
    labels, truth = real_crowd(name)
    model = SymmetricNMF(impute=impute).fit(labels)
    assert 1 - model.score(labels, truth) <= alone + 0.005 * impute
    after = DawidSkene().fit(labels, init=model)
    assert 1 - after.score(labels, truth) <= then_em


def some_pairs(confusion, prior, share, seed=0):
    J = len(confusion)
    seen = np.triu(np.random.default_rng(seed).random((J, J)) < share, 1)
    return population_moments(confusion, prior, n_shared=(seen + seen.T).astype(float))


def true_blocks(confusion, prior):
    """Return H (J, labels, classes)."""
    return confusion.transpose(0, 2, 1) * np.sqrt(prior)


@pytest.mark.parametrize("n_classes", [2, 3, 5])
@pytest.mark.parametrize("share", [1.0, 0.6])
@pytest.mark.parametrize("impute", [False, True])
def test_exact_tables_give_everybody(experts, error, n_classes, share, impute):
    J = 4 * n_classes
    confusion, prior = experts(J, n_classes, seed=n_classes)
    pairs = some_pairs(confusion, prior, share)
    cold = np.repeat(inner_start(np.eye(n_classes), 0.4)[None], J, axis=0) / np.sqrt(n_classes)
    factor = imputed_factor(pairs) if impute else fitted_factor(pairs, cold)
    found, found_prior, known = parameters_of(nonnegative_rotation(factor.blocks), np.ones(J))
    assert known.all()
    assert factor.converged
    assert error(found, confusion) < 1e-6
    np.testing.assert_allclose(np.sort(found_prior), np.sort(prior), atol=1e-6)


def test_signs_of_eigenvectors_do_not_decide(experts, monkeypatch):
    confusion, prior = experts(9, 3, seed=2)
    pairs = some_pairs(confusion, prior, 0.8)
    expected = imputed_factor(pairs).blocks
    decompose = scipy.linalg.eigh

    def turned(matrix, **options):
        values, vectors = decompose(matrix, **options)
        return values, vectors * np.array([-1.0, 1.0, -1.0])

    monkeypatch.setattr(scipy.linalg, "eigh", turned)
    np.testing.assert_allclose(imputed_factor(pairs).blocks, expected, atol=1e-9)


def test_rounding_does_not_choose_among_equally_extreme_rows():
    rows = np.array([[1.0, 0.0], [0.0, 1.0], [0.6, 0.4], [0.4, 0.6]])
    for seed in range(20):
        noise = 1e-14 * np.random.default_rng(seed).standard_normal(rows.shape)
        np.testing.assert_allclose(_extreme_rows(rows + noise), _extreme_rows(rows), atol=1e-12)


def test_imputed_blocks_are_those_of_the_population(experts):
    confusion, prior = experts(9, 3, seed=7)
    pairs = some_pairs(confusion, prior, 0.5, seed=1)
    assert pairs.n_pairs < 25
    H = true_blocks(confusion, prior)
    expected = np.einsum("mlk,nqk->mnlq", H, H)
    np.testing.assert_allclose(imputed_blocks(pairs), expected, atol=1e-10)


def test_blocks_out_of_reach_are_zero(experts):
    confusion, prior = experts(8, 2)
    apart = np.kron(np.eye(2), np.ones((4, 4)))
    blocks = imputed_blocks(population_moments(confusion, prior, n_shared=apart))
    assert (blocks[:4, 4:] == 0).all()
    assert (np.abs(blocks[:4, :4]).sum(axis=(2, 3)) > 0).all()


@pytest.mark.parametrize("seed", range(5))
def test_a_rotated_factor_is_rotated_back(experts, error, seed):
    confusion, prior = experts(8, 3, seed=seed)
    turn = np.linalg.qr(np.random.default_rng(seed).normal(size=(3, 3)))[0]
    rotated = nonnegative_rotation(true_blocks(confusion, prior) @ turn)
    found, _, _ = parameters_of(rotated, np.ones(8))
    assert error(found, confusion) < 1e-8


def test_the_fit_has_no_slope_left(experts):
    confusion, prior = experts(6, 2)
    pairs = population_moments(confusion, prior)
    noisy = np.random.default_rng(0).normal(0, 0.01, pairs.counts.shape) + pairs.counts
    object.__setattr__(pairs, "counts", noisy)
    factor = fitted_factor(pairs, true_blocks(confusion, prior))

    def misfit(blocks):
        gap = blocks[pairs.first] @ blocks[pairs.second].transpose(0, 2, 1) - pairs.tables
        return float(np.sum(gap**2))

    best = misfit(factor.blocks)
    rng = np.random.default_rng(1)
    for _ in range(50):
        assert misfit(factor.blocks + rng.normal(0, 1e-3, factor.blocks.shape)) > best


def test_rows_of_rounding_alone_are_no_corners():
    """The extreme rows of a cone are its axes here; a tiny row points beyond them."""
    rng = np.random.default_rng(0)
    rows = np.vstack([np.eye(3), rng.dirichlet(np.ones(3), 20)])
    tiny = 1e-6 * np.array([[2.0, -0.9, -0.9]])
    found = _extreme_rows(np.vstack([rows, tiny]))
    np.testing.assert_allclose(np.abs(found), np.abs(_extreme_rows(rows)), atol=1e-4)
    np.testing.assert_allclose(np.sort(np.abs(found).ravel()), [0] * 6 + [1] * 3, atol=1e-4)
