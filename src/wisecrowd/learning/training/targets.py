"""Class probabilities to train on, and counts that follow from them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.labels import CrowdLabels
from wisecrowd.core.votes import vote_table
from wisecrowd.learning.training.label_model import sum_rows

if TYPE_CHECKING:  # the data of a network need torch, what is counted here does not
    from wisecrowd.learning.training.crowd_classifier import Training
    from wisecrowd.learning.training.crowd_data import CrowdData

Floats = NDArray[np.float64]


def soft_votes(data: CrowdData | Training) -> Floats:
    """Return (N, K) label shares; gold where known, the overall shares without labels."""
    counts = vote_table(data.labels, weighted=True)
    total = counts.sum(axis=1, keepdims=True)
    mean = counts.sum(axis=0) / max(counts.sum(), 1e-300)
    return with_gold(np.where(total > 0, counts / np.maximum(total, 1e-300), mean), data)


def with_gold(probas: Floats, data: CrowdData | Training) -> Floats:
    """Return class probabilities with one-hot rows for tasks with gold."""
    known = np.flatnonzero(data.gold >= 0)
    if len(known):
        probas = probas.copy()
        probas[known] = np.eye(probas.shape[1])[data.gold[known]]
    return probas


def expected_counts(probas: Floats, labels: CrowdLabels) -> Floats:
    """Return (J, K, K) expected counts of label l by worker j on class k."""
    n_workers, n_classes = labels.n_workers, labels.n_classes
    cell = labels.worker.astype(np.int64) * n_classes + labels.label
    counts = sum_rows(cell, probas[labels.task], n_workers * n_classes, labels.weight)
    by_class = np.ascontiguousarray(counts.T).reshape(n_classes, n_workers, n_classes)
    return by_class.transpose(1, 0, 2)


def confusion_from(probas: Floats, labels: CrowdLabels, smoothing: float) -> Floats:
    """Return (J, K, K) confusion matrices: expected counts plus smoothing, rows normalised."""
    smoothed = expected_counts(probas, labels) + smoothing
    return np.asarray(smoothed / smoothed.sum(axis=2, keepdims=True))
