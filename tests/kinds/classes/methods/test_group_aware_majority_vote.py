from __future__ import annotations

import numpy as np
import pytest

from wisecrowd import simulate
from wisecrowd.core.exceptions import ParameterError
from wisecrowd.kinds.classes.container import CrowdLabels
from wisecrowd.kinds.classes.methods.group_aware_majority_vote import GroupAwareMajorityVote
from wisecrowd.kinds.classes.methods.majority_vote import MajorityVote
from wisecrowd.testing import CHECKS, maker
from wisecrowd.testing.crowds import simulated


def test_by_hand():
    votes = [[0, 0, 1, 1, 2], [0, 1, 1, 1, 1], [2, 2, 2, 0, 0]]
    model = GroupAwareMajorityVote(groups=[5, 5, 5, 1, 2]).fit(CrowdLabels.from_matrix(votes))
    expected = np.array([[1, 1, 1], [0, 3, 0], [2, 0, 1]]) / 3
    np.testing.assert_allclose(model.probas_, expected)
    np.testing.assert_array_equal(model.group_, [0, 0, 0, -1, -1])
    right = [1 / 3, 1 / 3, 1 / 3], [0, 1, 1]
    np.testing.assert_allclose(model.worker_accuracy_[0], (right[0][0] + 0 + 1 / 3) / 3)


def test_ties_within_a_group_are_shared():
    labels = CrowdLabels.from_matrix([[0, 1, 1]])
    model = GroupAwareMajorityVote(groups=["g", "g", "h"]).fit(labels)
    np.testing.assert_allclose(model.probas_, [[0.25, 0.75]])


@pytest.mark.parametrize("smoothing", [0.0, 1.0])
def test_without_groups_it_is_majority_vote(smoothing):
    labels = simulated(60, 7, 3, 4).labels
    prior = np.random.default_rng(0).dirichlet(np.ones(3), 60)
    for options in ({}, {"task_prior": prior}, {"gold": {0: 2, 5: 1}}):
        plain = MajorityVote(smoothing=smoothing).fit(labels, **options)
        model = GroupAwareMajorityVote(smoothing=smoothing).fit(labels, **options)
        np.testing.assert_allclose(model.probas_, plain.probas_, atol=1e-12)
        np.testing.assert_allclose(model.worker_accuracy_, plain.worker_accuracy_, atol=1e-12)


def test_copies_count_once():
    made = simulated(100, 5, 3)
    votes = made.labels.label.reshape(100, 5)
    copied = np.hstack([votes, np.repeat(votes[:, :1], 9, axis=1)])
    model = GroupAwareMajorityVote(groups=[0, 1, 2, 3, 4, *[0] * 9]).fit(copied)
    np.testing.assert_allclose(model.probas_, MajorityVote().fit(made.labels).probas_)


def test_colluders_have_one_vote():
    crowd = 9 * simulate.OneCoinWorkers(8, 2) + 6 * simulate.Colluders(0.95)
    made = simulate.crowd(500, crowd, simulate.Dense(), n_classes=3)
    aware = np.mean(GroupAwareMajorityVote().fit(made.labels).labels_ == made.truth)
    plain = np.mean(MajorityVote().fit(made.labels).labels_ == made.truth)
    assert aware >= plain + 0.03
    assert aware > 0.95


OTHER = ("check_disjoint_copy", "check_busy_task")  # other groups; a large tree


@pytest.mark.parametrize(
    "check", [c for c in CHECKS if c.__name__ not in OTHER], ids=lambda check: check.__name__
)
def test_common_checks_with_groups(check):
    check(maker(GroupAwareMajorityVote(groups=3)))


@pytest.mark.parametrize("bad", [{"groups": 0}, {"smoothing": -1.0}, {"groups": {"nobody": 1}}])
def test_bad_parameters(bad):
    with pytest.raises(ParameterError):
        GroupAwareMajorityVote(**bad).fit(simulated(20, 4, 2).labels)
