"""The compiled sums over votes agree with their specification."""

from __future__ import annotations

import numpy as np
import pytest

from wisecrowd.kinds.pairs import kernels, kernels_fast


@pytest.mark.parametrize("weights", ["one", "any"])
@pytest.mark.parametrize("spread", [0.1, 3.0, 300.0])
def test_sums_agree_with_the_reference(weights, spread):
    rng = np.random.default_rng(0)
    n = 500
    wins = rng.integers(0, 2, n).astype(float)
    other = 1 - wins
    if weights == "any":
        wins, other = rng.uniform(0, 2, n), rng.integers(0, 2, n).astype(float)
    votes = kernels.Comparisons(
        rng.integers(0, 20, n).astype(np.int32), rng.integers(0, 20, n).astype(np.int32),
        rng.integers(0, 7, n).astype(np.int32), wins, other,
    )  # fmt: skip
    scores, logit = spread * rng.normal(size=20), 2 * rng.normal(size=7)
    specified = kernels.crowd_bt_sums(votes, scores, logit)
    compiled = kernels_fast.crowd_bt_sums(votes, scores, logit)
    for one, two in zip(specified, compiled, strict=True):
        np.testing.assert_allclose(two, one, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("weights", ["one", "any"])
@pytest.mark.parametrize("spread", [0.1, 3.0, 300.0])
def test_sums_over_reliabilities_agree_with_the_reference(weights, spread):
    rng = np.random.default_rng(0)
    n, eta = 500, np.linspace(0.001, 0.9993, 27)
    weight = np.ones(n) if weights == "one" else rng.integers(0, 4, n) / 2
    wins = kernels.Wins(
        rng.integers(0, 20, n).astype(np.int32), rng.integers(0, 20, n).astype(np.int32),
        rng.integers(0, 7, n).astype(np.int32), weight,
    )  # fmt: skip
    scores, posterior = spread * rng.normal(size=20), rng.dirichlet(np.ones(27), 7)
    specified = kernels.reliability_logs(wins, scores, eta, 7)
    assert np.allclose(kernels_fast.reliability_logs(wins, scores, eta, 7), specified, rtol=1e-9)
    specified = kernels.reliability_pulls(wins, scores, eta, posterior)
    found = kernels_fast.reliability_pulls(wins, scores, eta, posterior)
    assert np.allclose(found, specified, rtol=1e-9, atol=1e-12)
