"""Wawa: by hand, and as one round of a weighted vote."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from wisecrowd import simulate
from wisecrowd.aggregation import MajorityVote, Wawa
from wisecrowd.kinds.classes.container import CrowdLabels

MATRIX = np.array(
    [[0, 0, 1, 1, 1], [1, 1, 1, 0, 0], [0, 0, 0, 2, 1], [2, 2, 2, 1, 0], [0, 0, 0, 0, 1]]
)


def by_hand(matrix, n_classes):
    """Return weights and shares of a matrix without ties."""
    votes = (matrix[:, :, None] == np.arange(n_classes)).sum(axis=1)
    winner = votes.argmax(axis=1)
    skill = (matrix == winner[:, None]).mean(axis=0)
    weighted = ((matrix[:, :, None] == np.arange(n_classes)) * skill[:, None]).sum(axis=1)
    return skill, weighted / weighted.sum(axis=1, keepdims=True)


def test_weights_and_shares_by_hand():
    skill, shares = by_hand(MATRIX, 3)
    model = Wawa().fit(CrowdLabels.from_matrix(MATRIX))
    np.testing.assert_allclose(model.vote_weight_, skill)
    np.testing.assert_allclose(model.probas_, shares)


def test_two_good_workers_beat_three_careless_ones():
    labels = CrowdLabels.from_matrix(MATRIX)
    assert MajorityVote().fit(labels).labels_[0] == 1
    assert Wawa().fit(labels).labels_[0] == 0


def test_tied_classes_share_the_agreement():
    labels = CrowdLabels.from_matrix([[0, 1], [0, 0]])
    np.testing.assert_allclose(Wawa().fit(labels).vote_weight_, [0.75, 0.75])


def test_more_rounds_stop_at_a_fixed_point():
    labels = CrowdLabels.from_matrix(MATRIX)
    model = Wawa(max_iter=50).fit(labels)
    assert model.converged_
    assert model.n_iter_ < 10
    agreement = (model.labels_[:, None] == MATRIX).mean(axis=0)
    np.testing.assert_allclose(model.vote_weight_, agreement)
    np.testing.assert_allclose(model.worker_accuracy_, agreement)


@pytest.mark.filterwarnings("ignore:.*were not in the fit")
def test_an_unknown_worker_votes_as_a_guesser():
    model = Wawa().fit(CrowdLabels.from_matrix(MATRIX))
    new = CrowdLabels.from_arrays(["t", "t"], [0, 99], [0, 1], classes=[0, 1, 2])
    weight = model.vote_weight_[0]
    expected = np.array([weight, 1 / 3, 0]) / (weight + 1 / 3)
    np.testing.assert_allclose(model.predict_proba(new)[0], expected)


def test_one_round_is_the_whole_method():
    labels = simulate.crowd(60, 6 * simulate.OneCoinWorkers(17, 3), random_state=0).labels
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = Wawa().fit(labels)
    assert model.converged_
    assert model.n_iter_ == 1
    guessing = 20 * simulate.OneCoinWorkers(3, 3)
    noisy = simulate.crowd(200, guessing, n_classes=4, random_state=0).labels
    assert not Wawa(max_iter=2).fit(noisy).converged_  # an iteration that was cut off
