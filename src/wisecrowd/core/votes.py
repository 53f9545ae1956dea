"""Votes: how many labels of each class a task has."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.labels import CrowdLabels


def vote_table(labels: CrowdLabels, *, weighted: bool = False) -> NDArray[np.float64]:
    """Count the labels of each class, or add up their weights: (n_tasks, n_classes)."""
    cell = labels.task.astype(np.int64) * labels.n_classes + labels.label
    weight = labels.weight if weighted else None
    votes = np.bincount(cell, weight, labels.n_tasks * labels.n_classes)
    return votes.reshape(labels.n_tasks, labels.n_classes).astype(np.float64)
