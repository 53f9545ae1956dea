from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.stats import false_discovery_control

from wisecrowd import simulate
from wisecrowd.kinds.classes.families.copy_reference import reference
from wisecrowd.kinds.classes.families.copy_test import copy_test, most_likely_share, null_scale
from wisecrowd.kinds.classes.families.dependence import surprise
from wisecrowd.kinds.classes.families.moments.pair_moments import pair_moments


def result_of(made, groups):
    pairs = pair_moments(made.labels, min_shared=5)
    inside = (groups[pairs.first] >= 0) & (groups[pairs.first] == groups[pairs.second])
    return copy_test(reference(made.labels, groups), pairs, surprise(pairs), inside), pairs, inside


def copied(seed=0, p=0.8):
    source = simulate.FixedConfusion(0.55 * np.eye(3) + 0.15)  # right in 70%
    workers = 1 * source + 11 * simulate.OneCoinWorkers(8, 3) + 2 * simulate.Copiers(p, sources=0)
    made = simulate.crowd(500, workers, simulate.Dense(), n_classes=3, random_state=seed)
    groups = np.full(14, -1, dtype=np.int32)
    groups[[0, 12, 13]] = 0
    return made, groups


@pytest.mark.parametrize("seed", range(3))
def test_the_share_of_copied_labels_is_recovered(seed):
    made, groups = copied(seed)
    found, pairs, inside = result_of(made, groups)
    behind_source = inside & (pairs.first == 0)
    np.testing.assert_allclose(found.copied[behind_source], 0.8, atol=0.1)
    np.testing.assert_allclose(found.copied[inside & ~behind_source], 0.64, atol=0.12)
    assert (found.z[inside] > 8).all()
    assert (found.q[~inside] > 0.01).all()
    np.testing.assert_allclose(found.q, false_discovery_control(found.p), rtol=1e-9)


def test_the_expected_agreement_is_that_of_independent_workers_of_equal_skill():
    made, groups = copied()
    found, pairs, _ = result_of(made, groups)
    exact = np.einsum("pkl,pkl->p", made.confusion[pairs.first], made.confusion[pairs.second]) / 3
    np.testing.assert_allclose(found.expected, exact, atol=0.08)


def test_the_scores_of_independent_pairs_are_nearly_normal():
    made = simulate.crowd(
        600, 30 * simulate.OneCoinWorkers(8, 3), simulate.PerTask(6), n_classes=3,
        difficulty=simulate.BetaDifficulty(1, 3),
    )  # fmt: skip
    found, pairs, _ = result_of(made, np.full(30, -1, dtype=np.int32))
    assert pairs.n_pairs > 400
    assert found.z.max() < 4
    assert np.mean(found.z > 1.645) < 0.08


def test_the_most_likely_share_is_a_maximum():
    rng = np.random.default_rng(0)
    ratio, weight = np.where(rng.random(60) < 0.7, rng.uniform(1, 4, 60), 0.0), rng.random(60)
    pair = np.repeat([0, 1], 30)
    share, gain = most_likely_share(ratio, pair, weight, 2)
    for p in range(2):
        mine = pair == p

        def loss(c, mine=mine):
            return -(weight[mine] * np.log1p(c * (ratio[mine] - 1))).sum()

        best = minimize_scalar(loss, bounds=(-0.25, 0.995), method="bounded")
        assert share[p] == pytest.approx(best.x, abs=1e-3)
        assert gain[p] == pytest.approx(-best.fun, abs=1e-6)


def test_the_null_scale_ignores_a_minority():
    z = np.concatenate([np.random.default_rng(0).normal(0.5, 2.0, 900), np.full(30, 40.0)])
    centre, spread = null_scale(z)
    assert centre == pytest.approx(0.5, abs=0.4)
    assert spread == pytest.approx(2.0, abs=0.4)
    assert null_scale(np.empty(0)) == (0.0, 1.0)
