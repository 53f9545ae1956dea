"""Votes, and the tasks that several workers share."""

from __future__ import annotations

import numpy as np

from wisecrowd.core.labels import CrowdLabels
from wisecrowd.core.votes import labelled_by_several, vote_table


def test_votes_count_labels_or_their_weight():
    labels = CrowdLabels.from_arrays([0, 0, 1], [0, 1, 0], [1, 1, 0], weight=[1.0, 2.0, 3.0])
    np.testing.assert_array_equal(vote_table(labels), [[0, 2], [1, 0]])
    np.testing.assert_array_equal(vote_table(labels, weighted=True), [[0, 3], [3, 0]])


def test_one_worker_who_labels_a_task_twice_is_one_worker():
    labels = CrowdLabels.from_arrays(
        [0, 0, 1, 1, 1], [0, 0, 0, 0, 2], [0, 1, 0, 0, 1], tasks=range(4), duplicates="keep"
    )
    np.testing.assert_array_equal(labelled_by_several(labels), [False, True, False, False])


def test_a_label_of_weight_zero_does_not_count():
    weight = [1.0, 0.0, 1.0, 1.0, 0.0, 0.0]
    labels = CrowdLabels.from_arrays([0, 0, 1, 1, 2, 2], [0, 1] * 3, [0] * 6, weight=weight)
    np.testing.assert_array_equal(labelled_by_several(labels), [False, True, False])
