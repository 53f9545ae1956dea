"""From moments to parameters: permutations, least squares, the simplex, gold as a worker."""

from __future__ import annotations

import numpy as np
import pytest

from wisecrowd.aggregation import CoupledNMF, SymmetricNMF
from wisecrowd.kinds.classes.container import CrowdLabels
from wisecrowd.kinds.classes.families.moments.moment_method import (
    MomentEstimate,
    best_names,
    cautious,
    completed,
    named,
    on_simplex,
    prior_from_pairs,
    regressed,
    simplex_least_squares,
    vote_confusion,
    with_gold_worker,
)
from wisecrowd.kinds.classes.families.moments.pair_moments import population_moments


def test_names_by_the_greatest_trace():
    mean = np.array([[0.1, 0.6, 0.3], [0.2, 0.5, 0.3], [0.7, 0.2, 0.1]])
    order = best_names(mean)
    assert order.tolist() == [2, 0, 1] or order.tolist() == [2, 1, 0]
    assert np.trace(mean[order]) == pytest.approx(0.7 + 0.6 + 0.3)


def test_every_part_gets_its_own_names(experts):
    confusion, prior = experts(8, 2, seed=1)
    part = np.repeat([0, 1], 4)
    shuffled = confusion.copy()
    shuffled[part == 1] = confusion[part == 1][:, ::-1]
    estimate = MomentEstimate(shuffled, prior, np.ones(8, bool), part)
    back = named(estimate, np.where(part == 0, 10.0, 1.0))
    np.testing.assert_array_equal(back.confusion, confusion)
    np.testing.assert_array_equal(back.class_prior, prior)


def test_unknown_workers_follow_from_known_ones(experts):
    confusion, prior = experts(7, 3)
    pairs = population_moments(confusion, prior)
    known = np.arange(7) < 4
    found, determined = regressed(pairs, confusion, prior, known)
    assert determined.all()
    np.testing.assert_allclose(found, confusion, atol=1e-9)
    start = np.where(known[:, None, None], confusion, np.nan)
    votes = np.full_like(confusion, 1 / 3)
    estimate = MomentEstimate(start, prior, known, np.zeros(7, int), pairs)
    whole = completed(estimate, votes, np.ones(7))
    np.testing.assert_allclose(whole.confusion, confusion, atol=1e-9)
    alone = completed(MomentEstimate(start, prior, known, np.zeros(7, int)), votes, np.ones(7))
    np.testing.assert_array_equal(alone.confusion[~known], votes[~known])


def test_class_prior_from_exact_tables(experts):
    confusion, prior = experts(6, 3, seed=2)
    pairs = population_moments(confusion, prior)
    np.testing.assert_allclose(prior_from_pairs(pairs, confusion, np.ones(6, bool)), prior, 1e-7)
    nobody = prior_from_pairs(pairs, confusion, np.zeros(6, bool))
    np.testing.assert_array_equal(nobody, np.full(3, 1 / 3))


def test_simplex_projection_and_least_squares_are_optimal():
    rng = np.random.default_rng(0)
    points = rng.normal(size=(20, 4))
    nearest = on_simplex(points)
    np.testing.assert_allclose(nearest.sum(axis=1), 1.0)
    assert (nearest >= 0).all()
    others = rng.dirichlet(np.ones(4), 5000)
    for point, found in zip(points, nearest, strict=True):
        distance = ((others - point) ** 2).sum(axis=1)
        assert ((found - point) ** 2).sum() <= distance.min() + 1e-12
    root = rng.normal(size=(6, 4))
    gram, side = root.T @ root, root.T @ rng.normal(size=6)
    found = simplex_least_squares(gram, side)
    cost = np.einsum("nk,km,nm->n", others, gram, others) - 2 * others @ side
    assert found @ gram @ found - 2 * found @ side <= cost.min() + 1e-6


def test_gold_is_one_more_worker():
    labels = CrowdLabels.from_matrix([[0, 1], [1, 1], [0, 0]])
    assert with_gold_worker(labels, np.array([-1, -1, -1])) is labels
    more = with_gold_worker(labels, np.array([-1, 1, 0]))
    assert more.n_workers == 3
    gold = more.worker == 2
    assert more.task[gold].tolist() == [1, 2]
    assert more.label[gold].tolist() == [1, 0]
    assert (np.diff(more.task) >= 0).all()


def test_vote_confusion_follows_a_start():
    labels = CrowdLabels.from_matrix([[0, 1]] * 500 + [[1, 0]] * 500)
    start = np.repeat(np.eye(2), 500, axis=0)  # the first worker is right
    found = vote_confusion(labels, start)
    assert found[0, 0, 0] > 0.99
    assert found[1, 0, 0] < 0.01


def test_rows_are_no_surer_than_their_labels():
    confusion = np.array([np.eye(2), np.eye(2)])
    found = cautious(confusion, np.array([0.5, 0.5]), np.array([0.0, 198.0]))
    np.testing.assert_allclose(found[0], 0.5)
    np.testing.assert_allclose(found[1, 0], [99.5 / 100, 0.5 / 100])


@pytest.mark.parametrize("method", [CoupledNMF, SymmetricNMF])
def test_a_class_on_which_no_two_workers_agree_is_not_made_up(method):
    votes = np.tile([[0] * 4, [1] * 4], (6, 1))
    for task, worker in ((0, 3), (3, 2), (5, 3), (8, 0)):
        votes[task, worker] = 1 - votes[task, worker]
    plain = method().fit(CrowdLabels.from_matrix(votes))
    votes[1, 3] = 2
    model = method().fit(CrowdLabels.from_matrix(votes))
    assert model.labels_.tolist() == [0, 1] * 6
    # One label of 48 says so; that is all that the class has.
    assert model.class_prior_[2] == pytest.approx(0.25 / 12)
    np.testing.assert_allclose(model.confusion_.sum(axis=2), 1)
    np.testing.assert_allclose(model.confusion_[:3, :2, :2], plain.confusion_[:3], atol=0.15)


def test_rounding_does_not_choose_among_equal_names():
    mean = np.array([[0.5, 0.5, 0.0], [0.5, 0.5, 0.0], [0.0, 0.0, 1.0]])
    for seed in range(20):
        noise = 1e-14 * np.random.default_rng(seed).standard_normal((3, 3))
        assert best_names(mean + noise).tolist() == best_names(mean).tolist()
