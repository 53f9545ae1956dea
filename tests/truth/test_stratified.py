"""Shares and ratios of strata against closed forms, enumeration and simulation."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy import stats
from scipy.special import comb

from wisecrowd.truth.stratified import random_order_share, stratified_ratio, stratified_share


def test_the_share_is_the_weighted_mean_of_the_strata():
    found = stratified_share([3, 8], [4, 10], [100, 300], 0.95)
    assert found.value == pytest.approx(0.25 * 0.75 + 0.75 * 0.8)


def test_the_interval_is_that_of_the_formula():
    x, n, sizes = np.array([3, 9, 11]), np.array([6, 10, 12]), np.array([30, 40, 50])
    value = sum(N / 120 * a / b for a, b, N in zip(x, n, sizes, strict=True))
    m = (28 * value + 2) / 32
    p = [(a + m) / (b + 1) for a, b in zip(x, n, strict=True)]
    variance = sum(
        (N / 120) ** 2 * (1 - b / N) * q * (1 - q) / (b - 1)
        for b, N, q in zip(n, sizes, p, strict=True)
    )
    middle = sum(N / 120 * q for N, q in zip(sizes, p, strict=True))
    size, t = middle * (1 - middle) / variance, stats.t.ppf(0.975, 25)
    centre = (value + t**2 / (2 * size)) / (1 + t**2 / size)
    reach = t / (1 + t**2 / size) * np.sqrt(value * (1 - value) / size + t**2 / (4 * size**2))
    found = stratified_share(x, n, sizes, 0.95)
    assert found.low == pytest.approx(centre - reach)
    assert found.high == pytest.approx(centre + reach)
    assert found.n_eff == pytest.approx(size)


def test_one_stratum_of_a_large_crowd_has_wilsons_interval():
    found = stratified_share([450], [500], [10**9], 0.95)
    wilson = stats.binomtest(450, 500).proportion_ci(method="wilson")
    assert (found.low, found.high) == pytest.approx((wilson.low, wilson.high), abs=1e-3)


def test_if_all_tasks_are_checked_the_share_is_known():
    found = stratified_share([4, 7], [5, 9], [5, 9], 0.95)
    assert found.low == found.value == found.high == pytest.approx(11 / 14)


def test_checked_tasks_limit_the_interval():
    found = stratified_share([8], [9], [10], 0.95)
    assert found.low >= 0.8
    assert found.high <= 0.9


@pytest.mark.parametrize("n", [60, 100, 200])
def test_without_errors_the_lower_limit_is_near_clopper_and_pearson(n):
    each = np.full(5, n // 5)
    found = stratified_share(each, each, np.full(5, 10**6), 0.95)
    assert found.low == pytest.approx(0.025 ** (1 / n), abs=0.03)
    assert found.low < 0.025 ** (1 / n) + 1e-3


def test_many_samples_are_estimated_at_once():
    x, n, sizes = np.array([[3, 8], [2, 10]]), np.array([4, 10]), np.array([100, 300])
    both = stratified_share(x, np.tile(n, (2, 1)), sizes, 0.95)
    alone = [stratified_share(one, n, sizes, 0.95) for one in x]
    assert both.low == pytest.approx([float(one.low) for one in alone])


def test_a_ratio_of_one_stratum_has_the_textbook_variance():
    rng = np.random.default_rng(0)
    bottom = rng.uniform(1, 5, 40)
    top = bottom * rng.uniform(0, 1, 40)
    found = stratified_ratio(top, bottom, np.zeros(40, int), np.array([400]), 0.9)
    ratio = top.sum() / bottom.sum()
    error = np.sqrt((1 - 0.1) * np.var(top - ratio * bottom, ddof=1) / 40) / bottom.mean()
    reach = stats.t.ppf(0.95, 39) * error
    assert found[:3] == pytest.approx((ratio, ratio - reach, ratio + reach))


def test_intervals_of_a_stratified_ratio_cover():
    rng = np.random.default_rng(1)
    stratum = np.repeat([0, 1, 2], 300)
    bottom = rng.integers(1, 6, 900).astype(float)
    top = rng.binomial(bottom.astype(int), np.array([0.3, 0.6, 0.9])[stratum]).astype(float)
    true, inside = top.sum() / bottom.sum(), []
    for _ in range(400):
        rows = np.concatenate([h * 300 + rng.permutation(300)[:25] for h in range(3)])
        found = stratified_ratio(top[rows], bottom[rows], stratum[rows], np.full(3, 300), 0.95)
        inside.append(found.low <= true <= found.high)
    assert 0.92 <= np.mean(inside) <= 0.98


def test_a_ratio_that_is_a_share_has_wilsons_interval():
    rng = np.random.default_rng(0)
    right = (rng.random(400) < 0.9).astype(float)
    found = stratified_ratio(
        right, np.ones(400), np.zeros(400, int), np.array([10**9]), 0.95, is_share=True
    )
    wilson = stats.binomtest(int(right.sum()), 400).proportion_ci(method="wilson")
    assert (found.low, found.high) == pytest.approx((wilson.low, wilson.high), abs=1e-3)
    assert found.n_eff == pytest.approx(399)
    above = stratified_ratio(
        np.array([3.0, 2.0, 4.0]), np.ones(3), np.zeros(3, int), np.array([9]), 0.95, is_share=True
    )
    assert above.value == 3 == (above.low + above.high) / 2


def test_a_ratio_without_anything_below_is_not_defined():
    found = stratified_ratio(np.zeros(2), np.zeros(2), np.zeros(2, int), np.array([9]), 0.95)
    assert np.isnan(found).all()


def test_a_single_task_of_a_stratum_has_the_variance_of_all():
    top, bottom = np.array([1.0, 2.0, 0.0]), np.ones(3)
    found = stratified_ratio(top, bottom, np.array([0, 0, 1]), np.array([20, 20]), 0.95)
    assert np.isfinite(found[:3]).all()
    assert found.low < found.value < found.high


@pytest.mark.parametrize(("n_tasks", "n", "n_right"), [(12, 5, 3), (40, 20, 17), (60, 30, 30)])
def test_the_random_order_interval_has_the_posterior_of_enumeration(n_tasks, n, n_right):
    posterior = np.array(
        [comb(D, n - n_right) * comb(n_tasks - D, n_right) for D in range(n_tasks + 1)]
    )
    posterior /= posterior.sum()
    kept = np.flatnonzero(20 * posterior > 1 / (n_tasks + 1))
    low, high = random_order_share(n_right, n, n_tasks, 0.95)
    assert (low, high) == pytest.approx((1 - kept[-1] / n_tasks, 1 - kept[0] / n_tasks))


def test_random_order_intervals_hold_at_all_looks_together():
    """All orders of small crowds: the chance of a miss at any look is at most 5%."""
    n_tasks = 10
    for n_wrong in range(n_tasks + 1):
        bad = total = 0
        for marks in product([0, 1], repeat=n_tasks):
            if sum(marks) != n_wrong:
                continue
            total += 1
            right = np.cumsum(1 - np.array(marks))
            ends = [random_order_share(int(right[k - 1]), k, n_tasks, 0.95) for k in (3, 6, 9)]
            true = 1 - n_wrong / n_tasks
            bad += any(true < low - 1e-9 or true > high + 1e-9 for low, high in ends)
        assert bad <= 0.05 * total
