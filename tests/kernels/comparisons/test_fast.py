"""The compiled sums over votes agree with their specification."""

from __future__ import annotations

import numpy as np
import pytest

from wisecrowd.kernels.comparisons import fast, reference


@pytest.mark.parametrize("weights", ["one", "any"])
@pytest.mark.parametrize("spread", [0.1, 3.0, 300.0])
def test_sums_agree_with_the_reference(weights, spread):
    rng = np.random.default_rng(0)
    n = 500
    wins = rng.integers(0, 2, n).astype(float)
    other = 1 - wins
    if weights == "any":
        wins, other = rng.uniform(0, 2, n), rng.integers(0, 2, n).astype(float)
    votes = reference.Comparisons(
        rng.integers(0, 20, n).astype(np.int32), rng.integers(0, 20, n).astype(np.int32),
        rng.integers(0, 7, n).astype(np.int32), wins, other,
    )  # fmt: skip
    scores, logit = spread * rng.normal(size=20), 2 * rng.normal(size=7)
    specified = reference.crowd_bt_sums(votes, scores, logit)
    compiled = fast.crowd_bt_sums(votes, scores, logit)
    for one, two in zip(specified, compiled, strict=True):
        np.testing.assert_allclose(two, one, rtol=1e-9, atol=1e-9)
