"""The vote of Max-MIG: its sum over labels, its start, and the names of its classes."""

from __future__ import annotations

import numpy as np
import torch

import wisecrowd as wc
from wisecrowd.learning.data import CrowdData
from wisecrowd.learning.targets import soft_votes
from wisecrowd.learning.weighted_vote import (
    LARGEST_LEAD,
    WeightedVote,
    class_order,
    start_weights,
    telling_votes,
)


def crowd(votes):
    votes = np.asarray(votes, dtype=float)
    labels = wc.CrowdLabels.from_matrix(votes, classes=[0, 1])
    return CrowdData(np.zeros((len(votes), 1)), labels, np.full(len(votes), -1))


def test_logits_are_sums_of_rows():
    data = crowd([[0, 1, np.nan], [1, np.nan, 1]])
    weight = np.arange(12.0).reshape(3, 2, 2)  # worker, class, label
    logits = WeightedVote(weight)(data.batch(torch.arange(2))).detach().numpy()
    np.testing.assert_allclose(logits[0], weight[0, :, 0] + weight[1, :, 1])
    np.testing.assert_allclose(logits[1], weight[0, :, 1] + weight[2, :, 1])


def test_the_start_is_the_log_confusion_of_the_votes_kept_within_bounds():
    truth = np.arange(40) % 2
    few, many = (crowd(np.repeat(truth[:, None], n, axis=1)) for n in (1, 60))
    np.testing.assert_allclose(
        start_weights("votes", few, 0.01)[0], np.log(np.eye(2) + 0.01), atol=1e-6
    )
    lead = start_weights("votes", many, 0.01)[:, 0, 0].sum()
    lead -= start_weights("votes", many, 0.01)[:, 1, 0].sum()
    np.testing.assert_allclose(lead, LARGEST_LEAD)


def test_classes_are_named_after_the_labels_that_speak_for_them():
    data = crowd(np.repeat((np.arange(10) % 2)[:, None], 3, axis=1))
    swapped = np.tile(np.array([[0.0, 1.0], [1.0, 0.0]]), (3, 1, 1))
    assert class_order(WeightedVote(swapped), data.labels).tolist() == [1, 0]
    assert class_order(WeightedVote(1 - swapped), data.labels).tolist() == [0, 1]


def test_who_always_says_the_same_tells_nothing():
    truth = np.arange(40) % 2
    votes = np.column_stack([truth, truth, *5 * [np.zeros(40, dtype=int)]])
    data = CrowdData(np.zeros((40, 1)), wc.CrowdLabels.from_matrix(votes), np.full(40, -1))
    assert (soft_votes(data)[truth == 1, 1] < 0.5).all()
    assert (telling_votes(data)[truth == 1, 1] > 0.7).all()
    assert (telling_votes(data)[truth == 0, 0] > 0.99).all()
