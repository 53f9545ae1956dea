"""CovarianceRegression: exact covariances, shared errors, and crowds that are too sparse."""

from __future__ import annotations

import numpy as np
import pytest

from wisecrowd import simulate
from wisecrowd.aggregation import CovarianceRegression, GaussianEM, Mean
from wisecrowd.core.exceptions import DataError
from wisecrowd.kinds.numbers.methods.covariance_regression import Covariances, additive_fit
from wisecrowd.metrics import rmse


def test_the_additive_part_is_exact_in_spite_of_sparse_pairs():
    rng = np.random.default_rng(0)
    alpha = rng.uniform(0.3, 1.0, 12)
    table = alpha[:, None] + alpha
    table[np.ix_([8, 9, 10, 11], [8, 9, 10, 11])] += 3.0  # a clique
    many = np.full((12, 12), 100)
    found, _, _ = additive_fit(Covariances(table, many.astype(float), many), 0.5, 300, 1e-12)
    np.testing.assert_allclose(found, alpha, atol=2e-3)


def clique(seed, shared=4):
    noise = np.random.default_rng(seed).uniform(0.8, 1.1, 12)
    noise[12 - shared :] = 0.2
    return simulate.numbers(
        500, 12, simulate.Dense(), noise=noise, clique=shared, clique_error=1.4, random_state=seed
    )


def test_workers_who_share_an_error_count_as_one():
    errors = []
    for seed in range(3):
        made = clique(seed)
        fits = [m().fit(made.data) for m in (CovarianceRegression, GaussianEM, Mean)]
        errors.append([rmse(made.truth, fitted.values_) for fitted in fits])
    ours, em, mean = np.mean(errors, axis=0)
    assert ours < 0.36
    assert ours < min(em, mean) - 0.1


def test_independent_workers_lose_nothing():
    made = simulate.numbers(500, 12, simulate.Dense(), noise=(0.8, 1.1))
    ours, em = (rmse(made.truth, m().fit(made.data).values_)
                for m in (CovarianceRegression, GaussianEM))  # fmt: skip
    assert ours < em + 0.02


def test_sparse_crowds_are_refused():
    data = simulate.numbers(60, 40, simulate.PerTask(3)).data
    with pytest.raises(DataError, match=r"of \d+ pairs of workers have 10 common tasks"):
        CovarianceRegression().fit(data)


def test_a_known_variance_of_the_truth_is_used():
    made = clique(0)
    fitted = CovarianceRegression(truth_variance=1.0).fit(made.data)
    assert fitted.truth_variance_ == 1.0
    assert rmse(made.truth, fitted.values_) < 0.36
