"""Tests and intervals of two shares on the same questions."""

from __future__ import annotations

from math import comb, sqrt

import numpy as np
import pytest
from scipy.stats import ttest_1samp

from wisecrowd.truth.paired import (
    agresti_min,
    holm,
    mcnemar,
    mean_interval,
    paired_difference,
)


@pytest.mark.parametrize(("first", "second"), [(0, 0), (0, 5), (3, 4), (12, 2), (30, 30)])
def test_mid_p_values_by_enumeration(first, second):
    n, k = first + second, min(first, second)
    weight = [comb(n, i) / 2**n for i in range(n + 1)]
    expected = 1.0 if first == second else 2 * sum(weight[:k]) + weight[k]
    assert mcnemar(np.array([first]), np.array([second]))[0] == pytest.approx(expected, abs=1e-12)


def test_agresti_and_min_by_hand():
    low, high = agresti_min(np.array([12]), np.array([5]), np.array([100]))
    centre = 7 / 102
    reach = 1.959963984540054 * sqrt(18 - 49 / 102) / 102
    assert (low[0], high[0]) == pytest.approx((centre - reach, centre + reach), abs=1e-12)


def test_agresti_and_min_covers():
    rng = np.random.default_rng(0)
    cells = rng.multinomial(60, [0.6, 0.2, 0.1, 0.1], 4000)
    low, high = agresti_min(cells[:, 1], cells[:, 2], np.full(4000, 60))
    assert 0.935 < np.mean((low <= 0.1) & (high >= 0.1)) < 0.97


def test_holm_by_steps():
    p = np.array([0.04, 0.01, 0.6, 0.02])
    expected, largest = np.empty(4), 0.0
    for place, n in enumerate(np.argsort(p)):
        largest = max(largest, (4 - place) * p[n])
        expected[n] = min(largest, 1.0)
    np.testing.assert_allclose(holm(p), expected)
    assert holm(np.zeros(0)).tolist() == []


def test_mean_interval_is_that_of_the_t_test():
    values = np.random.default_rng(1).normal(0.3, 1, 25)
    test = ttest_1samp(values, 0)
    ends = test.confidence_interval()
    expected = (values.mean(), ends.low, ends.high, test.pvalue)
    assert mean_interval(values) == pytest.approx(expected, abs=1e-12)
    assert np.isnan(mean_interval(values[:1])[1:]).all()
    assert mean_interval(np.ones(5)) == (1.0, 1.0, 1.0, 0.0)


def test_differences_with_and_without_clusters():
    rng = np.random.default_rng(2)
    first, second = rng.random(200) < 0.8, rng.random(200) < 0.7
    value, low, high, p = paired_difference(first, second)
    assert value == pytest.approx(first.mean() - second.mean())
    assert low < value < high
    assert (p < 0.05) == (low > 0)
    alone = paired_difference(first, second, np.arange(200))
    assert alone[1] == pytest.approx(low, abs=0.01)
    wide = paired_difference(
        np.repeat(first, 4), np.repeat(second, 4), np.repeat(np.arange(200), 4)
    )
    assert wide == pytest.approx(alone)
    assert np.isnan(paired_difference(first[:0], second[:0])).all()
