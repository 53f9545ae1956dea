"""What networks are trained on, counted by hand."""

from __future__ import annotations

import numpy as np

import wisecrowd as wc
from wisecrowd.learning.training.crowd_data import CrowdData
from wisecrowd.learning.training.targets import confusion_from, expected_counts, soft_votes


def data(weight=None, gold=(-1, -1, -1)):
    labels = wc.CrowdLabels.from_arrays(
        [0, 0, 0, 1, 2], [0, 1, 2, 0, 0], ["a", "a", "b", "b", "b"],
        weight=None if weight is None else [*weight, 1.0],
    )  # fmt: skip
    labels = labels.select_annotations(labels.task < 2)  # the last task keeps no label
    return CrowdData(np.zeros((3, 1)), labels, np.array(gold))


def test_votes_are_shares_gold_is_certain_and_no_labels_are_the_mean():
    np.testing.assert_allclose(soft_votes(data()), [[2 / 3, 1 / 3], [0, 1], [0.5, 0.5]])
    weighted = soft_votes(data(weight=[1.0, 1.0, 2.0, 4.0]))
    np.testing.assert_allclose(weighted, [[0.5, 0.5], [0, 1], [0.25, 0.75]])
    np.testing.assert_allclose(soft_votes(data(gold=(1, -1, -1)))[0], [0, 1])


def test_counts_and_matrices_by_hand():
    labels = data(weight=[1.0, 1.0, 2.0, 4.0]).labels
    probas = np.array([[0.75, 0.25], [0.5, 0.5], [1.0, 0.0]])
    counts = expected_counts(probas, labels)
    np.testing.assert_allclose(counts[0], [[0.75, 2], [0.25, 2]])
    np.testing.assert_allclose(counts[2], [[0, 1.5], [0, 0.5]])
    matrix = confusion_from(probas, labels, 1.0)
    np.testing.assert_allclose(matrix[2], [[1 / 3.5, 2.5 / 3.5], [1 / 2.5, 1.5 / 2.5]])
