"""Votes: the number of labels of each class per task."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.labels import CrowdLabels


def vote_table(labels: CrowdLabels, *, weighted: bool = False) -> NDArray[np.float64]:
    """Sum the weights of the labels of each class: (n_tasks, n_classes)."""
    cell = labels.task.astype(np.int64) * labels.n_classes + labels.label
    weight = labels.weight if weighted else None
    votes = np.bincount(cell, weight, labels.n_tasks * labels.n_classes)
    return votes.reshape(labels.n_tasks, labels.n_classes).astype(np.float64)
