"""The level of the majority, against scipy's median absolute deviation."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import median_abs_deviation

from wisecrowd.core.statistics import majority_level, stands_apart


@pytest.mark.parametrize("seed", range(40))
def test_rule(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(3, 12))
    bias = rng.normal(0, 0.05, n) + (rng.random(n) < 0.3)
    fires = median_abs_deviation(bias, scale="normal") < 0.3 * np.std(bias, ddof=1)
    assert majority_level(bias) == (np.median(bias) if fires else None)


def test_the_rule_of_the_test_above_decides_both_ways():
    found = []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(3, 12))
        found.append(majority_level(rng.normal(0, 0.05, n) + (rng.random(n) < 0.3)) is None)
    assert 5 < sum(found) < 35


@pytest.mark.parametrize("bias", [[], [0.3], [-0.5, 0.5], [0.0, 0.0, 0.0], [-1.0, 0.0, 1.0]])
def test_no_majority_stands_against_others(bias):
    assert majority_level(np.array(bias)) is None


@pytest.mark.parametrize("shift", [-2.0, 0.5])
def test_a_common_shift_moves_the_level(shift):
    bias = np.array([0.0, 0.01, -0.01, 0.9, 1.1])
    assert majority_level(bias + shift) == pytest.approx(shift + 0.01)
    assert stands_apart(bias + shift, shift).tolist() == [False, False, False, True, True]
