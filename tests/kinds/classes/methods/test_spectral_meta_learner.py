"""SpectralMetaLearner: a crowd that is its own expectation, missing labels, sign, real crowds."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pytest

from wisecrowd.core.exceptions import DataError, ParameterError
from wisecrowd.kinds.classes.container import CrowdLabels
from wisecrowd.kinds.classes.families.moments.pair_moments import pair_moments, population_moments
from wisecrowd.kinds.classes.methods.majority_vote import MajorityVote
from wisecrowd.kinds.classes.methods.one_vs_rest import OneVsRest
from wisecrowd.kinds.classes.methods.rank_one import rank_one_fit
from wisecrowd.kinds.classes.methods.spectral_meta_learner import (
    SpectralMetaLearner,
    covariance,
    imbalance_of,
    rates,
)
from wisecrowd.simulate import Bernoulli, PerTask, TwoCoinWorkers, crowd

SENSITIVITY = np.array([0.9, 0.6, 0.7, 0.8])
SPECIFICITY = np.array([0.7, 0.9, 0.6, 0.8])
CONFUSION = np.stack(
    [np.array([[q, 1 - q], [1 - p, p]]) for p, q in zip(SENSITIVITY, SPECIFICITY, strict=True)]
)


def population_crowd(prior):
    """Return 10^5 tasks in which every pattern of labels is exactly as frequent as expected."""
    patterns = np.array(list(product(range(2), repeat=4)))
    chance = np.ones((2, len(patterns)))
    for j in range(4):
        chance *= CONFUSION[j][:, patterns[:, j]]
    times = np.rint(10**5 * (np.asarray(prior) @ chance)).astype(int)
    return CrowdLabels.from_matrix(np.repeat(patterns, times, axis=0))


@pytest.mark.parametrize("b", [-0.4, 0.0, 0.6])
def test_exact_moments_give_exact_rates(b):
    prior = np.array([1 - b, 1 + b]) / 2
    pairs = population_moments(CONFUSION, prior)
    table = pairs.tables
    exact = 4 * (table[:, 0, 0] * table[:, 1, 1] - table[:, 0, 1] * table[:, 1, 0])
    fit = rank_one_fit(pairs, exact, np.full(4, 0.5), (-1, 1), max_iter=1000, tol=1e-13)
    found = rates(2 * pairs.marginals[:, 1] - 1, fit.factor, b)
    np.testing.assert_allclose(found, CONFUSION, atol=1e-6)
    labels = population_crowd(prior)
    mean = 2 * pairs.marginals[:, 1] - 1
    assert imbalance_of(labels, mean, fit.factor) == pytest.approx(b, abs=1e-6)


@pytest.mark.parametrize("prior", [(0.7, 0.3), (0.5, 0.5), (0.2, 0.8)])
def test_a_crowd_that_is_its_own_expectation_gives_its_rates(prior):
    model = SpectralMetaLearner(tol=1e-10).fit(population_crowd(prior))
    np.testing.assert_allclose(model.sensitivity_, SENSITIVITY, atol=1e-4)
    np.testing.assert_allclose(model.specificity_, SPECIFICITY, atol=1e-4)
    np.testing.assert_allclose(model.class_prior_, prior, atol=1e-4)
    assert model.imbalance_ == pytest.approx(prior[1] - prior[0], abs=1e-4)
    np.testing.assert_allclose(model.confusion_, CONFUSION, atol=1e-3)


def test_likelihood_finds_the_imbalance_too():
    model = SpectralMetaLearner(imbalance="likelihood").fit(population_crowd((0.7, 0.3)))
    assert model.imbalance_ == pytest.approx(-0.4, abs=0.0201)  # the grid's step


def test_covariance_and_imbalance_by_brute_force():
    made = crowd(30, 6 * TwoCoinWorkers(), PerTask(4), class_prior=[0.6, 0.4], random_state=5)
    matrix = np.full((30, 6), np.nan)
    matrix[made.labels.task, made.labels.worker] = 2 * made.labels.label - 1
    pairs = pair_moments(made.labels, min_shared=2)
    for j, k, value in zip(pairs.first, pairs.second, covariance(pairs), strict=True):
        both = ~np.isnan(matrix[:, j] + matrix[:, k])
        assert value == pytest.approx(np.cov(matrix[both][:, [j, k]].T)[0, 1])
    mean = np.nanmean(matrix, axis=0)
    v = np.random.default_rng(0).uniform(-0.2, 0.9, 6)
    top = bottom = 0.0
    for row in matrix:
        for triple in combinations(np.flatnonzero(~np.isnan(row)), 3):
            at = list(triple)
            top += np.prod((row[at] - mean[at]) * v[at])
            bottom += np.prod(v[at] ** 2)
    ratio = top / bottom
    expected = -ratio / np.sqrt(4 + ratio**2)
    assert imbalance_of(made.labels, mean, v) == pytest.approx(expected, rel=1e-9)


def test_rates_of_a_crowd_with_missing_labels_are_found():
    made = crowd(8000, 12 * TwoCoinWorkers(), Bernoulli(0.4), class_prior=[0.75, 0.25],
                 random_state=0)  # fmt: skip
    model = SpectralMetaLearner().fit(made.labels)
    assert np.abs(model.sensitivity_ - made.confusion[:, 1, 1]).mean() < 0.04
    assert np.abs(model.specificity_ - made.confusion[:, 0, 0]).mean() < 0.03
    assert model.class_prior_[1] == pytest.approx(0.25, abs=0.03)
    ours = model.score(made.labels, made.truth)
    assert ours > MajorityVote().fit(made.labels).score(made.labels, made.truth)
    assert np.diff(model.history_).max() <= 0


def test_a_mirrored_start_gives_the_same_labels():
    made = crowd(600, 9 * TwoCoinWorkers(), class_prior=[0.6, 0.4], random_state=1)
    plain = SpectralMetaLearner().fit(made.labels)
    mirrored = SpectralMetaLearner().fit(made.labels, init=np.eye(2)[1 - made.truth_codes])
    np.testing.assert_array_equal(plain.labels_, mirrored.labels_)


def test_gold_is_no_worker_and_one_class_is_no_imbalance_of_two():
    made = crowd(200, 5 * TwoCoinWorkers(), class_prior=[0.6, 0.4], random_state=1)
    model = SpectralMetaLearner().fit(made.labels, gold={0: made.truth[0], 1: made.truth[1]})
    assert model.sensitivity_.shape == model.specificity_.shape == (5,)
    only = CrowdLabels.from_arrays([0, 0, 1], ["a", "b", "a"], ["y"] * 3, classes=["n", "y"])
    assert SpectralMetaLearner().fit(only).imbalance_ == 1.0


def test_more_classes_and_other_words_are_refused():
    labels = CrowdLabels.from_matrix([[0, 1, 2], [1, 1, 2], [0, 0, 2], [2, 2, 2]])
    with pytest.raises(DataError, match="OneVsRest"):
        SpectralMetaLearner().fit(labels)
    assert np.isfinite(OneVsRest(SpectralMetaLearner()).fit(labels).probas_).all()
    with pytest.raises(ParameterError, match="imbalance"):
        SpectralMetaLearner(imbalance="guess").fit(CrowdLabels.from_matrix([[0, 1], [1, 1]]))


@pytest.mark.parametrize(("name", "bar"), [("bluebird", 0.1112), ("rte", 0.08)])
def test_real_crowds(real_crowd, name, bar):
    labels, truth = real_crowd(name)
    assert 1 - SpectralMetaLearner().fit(labels).score(labels, truth) <= bar
