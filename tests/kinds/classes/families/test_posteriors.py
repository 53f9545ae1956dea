from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from wisecrowd.inference.engine import cut_tasks
from wisecrowd.kinds.classes.container import CrowdLabels
from wisecrowd.kinds.classes.families.posteriors import (
    Start,
    condition,
    random_start,
    vote_posterior,
)
from wisecrowd.kinds.classes.prior import TaskPrior, as_task_prior

VOTES = np.array([[2, 1, 0], [0, 0, 3], [1, 1, 1]]) / 3


def the_shard(prior=None, gold=None):
    labels = CrowdLabels.from_matrix([[0, 0, 1], [2, 2, 2], [0, 1, 2]])
    codes = None if gold is None else np.array(gold, dtype=np.int32)
    return cut_tasks(labels, as_task_prior(prior, codes, labels), 1)[0]


def test_soft_vote_without_a_prior():
    np.testing.assert_allclose(vote_posterior(the_shard(), 3), VOTES)


def test_gold_tasks_start_at_their_class():
    start = vote_posterior(the_shard(gold=[-1, 0, 2]), 3)
    np.testing.assert_allclose(start, [VOTES[0], [1, 0, 0], [0, 0, 1]], atol=1e-12)


@pytest.mark.parametrize("repeat", [False, True])
def test_start_is_vote_times_prior(repeat):
    row = np.array([0.2, 0.3, 0.5])
    start = vote_posterior(the_shard(np.tile(row, (3, 1)) if repeat else row), 3)
    expected = VOTES * row
    np.testing.assert_allclose(start, expected / expected.sum(axis=1, keepdims=True), atol=1e-12)


def test_a_prior_against_all_votes_wins():
    probas = condition(VOTES, the_shard(np.array([[0, 0, 1], [1, 1, 0], [1, 0, 0.0]])))
    np.testing.assert_allclose(probas, [[0, 0, 1], [0.5, 0.5, 0], [1, 0, 0]], atol=1e-12)


def test_flat_log_prior_changes_nothing():
    labels = CrowdLabels.from_matrix([[0, 0, 1], [2, 2, 2], [0, 1, 2]])
    (shard,) = cut_tasks(labels, TaskPrior(np.full((1, 3), -5.0)), 1)
    np.testing.assert_allclose(vote_posterior(shard, 3), VOTES, atol=1e-12)


def drawn(seed, given=None, **known):
    start = random_start(
        SimpleNamespace(n_tasks=3, n_classes=3), given, np.random.default_rng(seed)
    )
    return start.posterior(the_shard(**known), 3)


def test_a_random_start_is_half_the_vote_and_half_random():
    first = drawn(0)
    np.testing.assert_allclose(first.sum(axis=1), 1)
    assert (first >= 0.5 * VOTES - 1e-12).all()
    assert not np.allclose(first, VOTES)
    np.testing.assert_array_equal(first, drawn(0))
    assert not np.allclose(first, drawn(1))
    np.testing.assert_allclose(drawn(0, gold=[-1, 0, 2])[1:], [[1, 0, 0], [0, 0, 1]], atol=1e-12)


def test_a_given_start_is_conditioned_on_what_is_known():
    given = np.array([[0.1, 0.2, 0.7], [0.3, 0.3, 0.4], [1, 0, 0]])
    start = Start(given)
    assert not start.is_vote
    found = start.posterior(the_shard(gold=[-1, 0, 2]), 3)
    np.testing.assert_allclose(found, [given[0], [1, 0, 0], [0, 0, 1]], atol=1e-12)
    assert drawn(0, given)[2, 0] > 0.5
    assert not Start(None, given).is_vote
    assert Start().is_vote
