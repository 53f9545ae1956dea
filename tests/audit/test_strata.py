"""Post-stratification against its formula in loops, and its coverage in simulated samples."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from wisecrowd.audit.strata import post_stratify


def test_value_is_the_weighted_mean_of_the_strata():
    rng = np.random.default_rng(0)
    sure = rng.beta(5, 2, 600)
    right, known = rng.random(600) < sure, rng.random(600) < 0.2
    found = post_stratify(sure, right, known, 0.95)
    starts = [*found.table["confidence_from"].tolist(), np.inf]
    total = 0.0
    for low, high in itertools.pairwise(starts):
        inside = (sure >= low) & (sure < high)
        total += inside.sum() / 600 * right[inside & known].mean()
    assert found.value == pytest.approx(total)
    assert len(found.table["n_gold"]) == 5
    assert found.table["n_gold"].sum() == known.sum()


def test_one_stratum_is_wilsons_interval():
    # 8 of 10 correct in a large population: Wilson (1927), 0.490 to 0.943.
    sure, known = np.full(10**6, 0.7), np.arange(10**6) < 10
    found = post_stratify(sure, np.arange(10**6) < 8, known, 0.95)
    assert found.value == pytest.approx(0.8)
    # The number of gold tasks that the smoothed variance is worth is exactly ten.
    assert (found.low, found.high) == pytest.approx((0.490, 0.943), abs=5e-4)


def test_gold_of_half_the_tasks_leaves_the_other_half_open():
    right = np.arange(100_000) % 4 > 0
    few = post_stratify(np.full(400, 0.7), right[:400], np.arange(400) < 200, 0.95)
    many = post_stratify(np.full(100_000, 0.7), right, np.arange(100_000) < 200, 0.95)
    assert (few.high - few.low) / (many.high - many.low) == pytest.approx(np.sqrt(0.5), rel=0.01)


def test_all_gold_leaves_nothing_open():
    right = np.arange(100) % 4 > 0
    found = post_stratify(np.linspace(0.3, 1, 100), right, np.ones(100, bool), 0.95)
    assert (found.value, found.low, found.high) == pytest.approx((0.75, 0.75, 0.75))


def test_gold_of_certain_tasks_does_not_mislead():
    rng = np.random.default_rng(3)
    sure = np.repeat([0.55, 0.95], 2000)
    right = rng.random(4000) < sure
    known = rng.random(4000) < np.where(sure > 0.9, 0.1, 0.02)  # mostly easy tasks
    found = post_stratify(sure, right, known, 0.95)
    assert right[known].mean() > 0.84 > found.high
    assert found.low < right.mean() < found.high


@pytest.mark.parametrize(("n_gold", "quality"), [(20, 0.95), (60, 0.8), (200, 0.97)])
def test_intervals_cover(n_gold, quality):
    rng = np.random.default_rng(n_gold)
    inside = []
    for _ in range(300):
        sure = np.clip(rng.beta(20 * quality, 20 * (1 - quality), 1000), 0, 1)
        right = rng.random(1000) < sure
        known = np.zeros(1000, bool)
        known[rng.choice(1000, n_gold, replace=False)] = True
        found = post_stratify(sure, right, known, 0.95)
        inside.append(found.low <= right.mean() <= found.high)
    # 95% less three standard errors of 300 trials is 91%.
    assert np.mean(inside) >= 0.91
