from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom, false_discovery_control, norm

from wisecrowd import simulate
from wisecrowd.core.statistics import benjamini_hochberg
from wisecrowd.kinds.classes.container import CrowdLabels
from wisecrowd.kinds.classes.families.dependence import dependence, explanations
from wisecrowd.kinds.classes.families.moments.pair_moments import PairMoments, pair_moments


def population_moments(confusion, prior, n_shared=400.0, copies=()):
    """Exact joint tables of independent workers; ``copies`` are pairs who always say the same."""
    J, K, _ = confusion.shape
    first, second = np.triu_indices(J, 1)
    tables = np.einsum("k,pkl,pkm->plm", prior, confusion[first], confusion[second])
    marginals = np.einsum("k,jkl->jl", prior, confusion)
    for a, b in copies:
        tables[(first == a) & (second == b)] = np.diag(marginals[a])
    n = np.full(len(first), n_shared)
    return PairMoments(
        first.astype(np.int32), second.astype(np.int32), tables * n_shared, n, J, K, marginals
    )


def some_confusions(J, K, seed=0):
    rng = np.random.default_rng(seed)
    return 0.6 * np.eye(K) + 0.4 * rng.dirichlet(np.ones(K), (J, K))


@pytest.mark.parametrize("K", [2, 3, 4])
def test_skills_explain_exact_moments(K):
    prior = np.arange(K, 2 * K) / np.arange(K, 2 * K).sum()
    found = dependence(population_moments(some_confusions(14, K), prior, n_shared=1e6))
    np.testing.assert_allclose(found.expected, found.agreement, atol=1e-3)
    assert found.unexplained <= 0.1


def test_copies_stand_out_and_move_nobody_else():
    confusion = some_confusions(12, 3)
    confusion[1] = confusion[2] = confusion[0]
    copies = [(0, 1), (0, 2), (1, 2)]
    found = dependence(population_moments(confusion, np.full(3, 1 / 3), copies=copies))
    copied = (found.first < 3) & (found.second < 3)
    independent = np.einsum("kl,kl->", confusion[0], confusion[0]) / 3
    np.testing.assert_allclose(found.expected[copied], independent, atol=0.05)
    assert (found.linked(0.01, 0.05) == copied).all()


def test_p_values_are_binomial_tails_against_the_crowds_spread():
    made = simulate.crowd(300, 10 * simulate.OneCoinWorkers(), simulate.Dense(), n_classes=3)
    pairs = pair_moments(made.labels, min_shared=5)
    found = dependence(pairs)
    same = np.rint(found.agreement * found.n_shared)
    z = -norm.ppf(binom.sf(same - 1, found.n_shared.astype(int), found.expected))
    spread = max(1.4826 * np.median(np.abs(z - np.median(z))), 1.0)
    np.testing.assert_allclose(found.z, (z - max(np.median(z), 0.0)) / spread, atol=1e-6)
    np.testing.assert_allclose(found.p, norm.sf(found.z), rtol=1e-9)
    np.testing.assert_allclose(found.q, false_discovery_control(found.p), rtol=1e-9)


def test_benjamini_hochberg_is_scipys():
    p = np.random.default_rng(0).beta(0.5, 3, 200)
    np.testing.assert_allclose(benjamini_hochberg(p), false_discovery_control(p), rtol=1e-12)
    assert benjamini_hochberg(np.empty(0)).shape == (0,)


@pytest.mark.parametrize("seed", range(3))
def test_clean_crowds_have_no_linked_pair(seed):
    made = simulate.crowd(
        400, 20 * simulate.OneCoinWorkers(4, 2), simulate.Bernoulli(0.5), n_classes=3,
        random_state=seed,
    )  # fmt: skip
    found = dependence(pair_moments(made.labels, min_shared=5))
    assert not found.linked(0.01, 0.05).any()
    assert found.z.max() < 4.5


def test_the_trusted_decide_between_camps():
    """Two camps of equal size: colluders and honest; the reference is the trusted one's."""
    workers = 10 * simulate.OneCoinWorkers(8, 2) + 14 * simulate.Colluders(0.9)
    made = simulate.crowd(600, workers, simulate.Dense(), n_classes=3)
    pairs = pair_moments(made.labels, min_shared=5)
    trusted = np.zeros(24, dtype=bool)
    trusted[0] = True
    found = dependence(pairs, trusted)
    inside = (found.first >= 10) & (found.second >= 10)
    assert (found.linked(0.01, 0.05) == inside).mean() > 0.98
    assert found.reference[0]


def test_a_minority_that_agrees_too_well_is_not_taken_for_the_truth():
    """Honest workers hardly better than chance: the colluders' secret would explain more pairs."""
    workers = 42 * simulate.OneCoinWorkers(8, 11) + 18 * simulate.Colluders(0.9)
    made = simulate.crowd(1000, workers, simulate.Bernoulli(0.5), n_classes=3)
    found = dependence(pair_moments(made.labels, min_shared=5))
    inside = (found.first >= 42) & (found.second >= 42)
    np.testing.assert_array_equal(found.linked(0.01, 0.05), inside)


def test_nothing_to_compare():
    labels = CrowdLabels.from_arrays([0, 1], ["a", "b"], [0, 1])
    (only,) = explanations(pair_moments(labels, min_shared=1))
    assert only.z.shape == (0,)
    assert only.unexplained == 0
    assert only.stance.shape == (2,)
    one_class = CrowdLabels.from_arrays([0, 0], ["a", "b"], ["x", "x"])
    assert dependence(pair_moments(one_class, min_shared=1)).z.shape == (1,)
