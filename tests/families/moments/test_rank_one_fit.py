"""Rank-one fits: exact vectors, an independent optimiser's optimum, a falling objective."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

from wisecrowd.families.moments.pair_moments import PairMoments
from wisecrowd.families.moments.rank_one_fit import rank_one_fit

SKILL = np.array([0.9, 0.7, 0.5, 0.3, 0.8, 0.6, 0.4, 0.55, 0.65, 0.2, -0.5])


def pairs_of(n, meets, weight=None):
    first, second = np.nonzero(np.triu(meets, 1))
    weight = np.full(len(first), 20.0) if weight is None else weight
    counts = np.tile(weight[:, None, None] / 4, (1, 2, 2))
    return PairMoments(
        first.astype(np.int32), second.astype(np.int32), counts, weight, n, 2, np.full((n, 2), 0.5)
    )


def ring(n, reach):
    apart = np.abs(np.subtract.outer(np.arange(n), np.arange(n)))
    return (apart <= reach) | (apart >= n - reach)


@pytest.mark.parametrize("reach", [2, 3, 11])
def test_exact_products_give_the_vector(reach):
    n = len(SKILL)
    pairs = pairs_of(n, ring(n, reach))
    values = SKILL[pairs.first] * SKILL[pairs.second]
    fit = rank_one_fit(pairs, values, np.full(n, 0.5), (-1, 1), max_iter=2000, tol=1e-12)
    assert fit.converged
    np.testing.assert_allclose(fit.factor, SKILL, atol=1e-8)


def test_noisy_products_give_the_least_squares_solution():
    rng = np.random.default_rng(0)
    n = len(SKILL)
    meets = ring(n, 3)
    pairs = pairs_of(n, meets, rng.uniform(1, 40, len(np.nonzero(np.triu(meets, 1))[0])))
    values = SKILL[pairs.first] * SKILL[pairs.second] + rng.normal(0, 0.15, pairs.n_pairs)
    fit = rank_one_fit(pairs, values, np.full(n, 0.5), (-0.4, 0.8), max_iter=3000, tol=1e-11)

    def misfit(x):
        off = x[pairs.first] * x[pairs.second] - values
        return float(pairs.n_shared @ off**2)

    box = [(-0.4, 0.8)] * n
    best = minimize(misfit, np.full(n, 0.5), bounds=box, options={"ftol": 1e-15, "gtol": 1e-10})
    assert misfit(fit.factor) <= best.fun * (1 + 1e-9)
    np.testing.assert_allclose(fit.factor, best.x, atol=1e-4)
    assert fit.factor.max() <= 0.8
    assert np.diff(fit.history).max() <= 0
    assert fit.history[-1] == pytest.approx(0.5 * misfit(fit.factor) / pairs.n_shared.sum())


def test_who_meets_nobody_has_zero_and_harms_nobody():
    meets = np.zeros((5, 5), dtype=bool)
    meets[:3, :3] = True
    pairs = pairs_of(5, meets)
    values = SKILL[pairs.first] * SKILL[pairs.second]
    fit = rank_one_fit(pairs, values, np.full(5, 0.5), (-1, 1), max_iter=500, tol=1e-12)
    np.testing.assert_allclose(fit.factor, [*SKILL[:3], 0, 0], atol=1e-8)
    nobody = pairs_of(3, np.zeros((3, 3), dtype=bool))
    fit = rank_one_fit(nobody, np.empty(0), np.full(3, 0.5), (-1, 1), max_iter=5, tol=1e-6)
    assert fit.factor.tolist() == [0, 0, 0]
    assert fit.converged
