from __future__ import annotations

import numpy as np
import pytest

from wisecrowd.core.labels import CrowdLabels
from wisecrowd.core.task_prior import TaskPrior, as_task_prior
from wisecrowd.engines.memory import MemoryShards
from wisecrowd.inference.initial import condition, perturbed, vote_posterior

VOTES = np.array([[2, 1, 0], [0, 0, 3], [1, 1, 1]]) / 3


def the_block(prior=None, gold=None):
    labels = CrowdLabels.from_matrix([[0, 0, 1], [2, 2, 2], [0, 1, 2]])
    codes = None if gold is None else np.array(gold, dtype=np.int32)
    engine = MemoryShards(labels, as_task_prior(prior, codes, labels), 1)
    return engine.shards()[0]


def test_soft_vote_without_a_prior():
    np.testing.assert_allclose(vote_posterior(the_block(), 3), VOTES)


def test_gold_tasks_start_at_their_class():
    start = vote_posterior(the_block(gold=[-1, 0, 2]), 3)
    np.testing.assert_allclose(start, [VOTES[0], [1, 0, 0], [0, 0, 1]], atol=1e-12)


@pytest.mark.parametrize("repeat", [False, True])
def test_start_is_vote_times_prior(repeat):
    row = np.array([0.2, 0.3, 0.5])
    start = vote_posterior(the_block(np.tile(row, (3, 1)) if repeat else row), 3)
    expected = VOTES * row
    np.testing.assert_allclose(start, expected / expected.sum(axis=1, keepdims=True), atol=1e-12)


def test_a_prior_against_all_votes_wins():
    probas = condition(VOTES, the_block(np.array([[0, 0, 1], [1, 1, 0], [1, 0, 0.0]])))
    np.testing.assert_allclose(probas, [[0, 0, 1], [0.5, 0.5, 0], [1, 0, 0]], atol=1e-12)


def test_flat_log_prior_changes_nothing():
    labels = CrowdLabels.from_matrix([[0, 0, 1], [2, 2, 2], [0, 1, 2]])
    block = MemoryShards(labels, TaskPrior(np.full((1, 3), -5.0)), 1).shards()[0]
    np.testing.assert_allclose(vote_posterior(block, 3), VOTES, atol=1e-12)


def test_perturbed_is_half_the_vote_and_half_random():
    first = perturbed(VOTES, np.random.default_rng(0))
    np.testing.assert_allclose(first.sum(axis=1), 1)
    assert (first >= 0.5 * VOTES).all()
    assert not np.allclose(first, VOTES)
    np.testing.assert_array_equal(first, perturbed(VOTES, np.random.default_rng(0)))
    assert not np.allclose(first, perturbed(VOTES, np.random.default_rng(1)))
