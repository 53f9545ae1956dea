"""Votes: the number of labels of each class per task, and the tasks that several workers share."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.labels import CrowdLabels

# Share of tasks with labels by two workers or more, or gold, from which workers and class
# frequencies can be learned. With fewer, simulated fits explain the rare labels of perfect workers
# as errors.
LEAST_SHARED = 0.1


def vote_table(labels: CrowdLabels, *, weighted: bool = False) -> NDArray[np.float64]:
    """Sum the weights of the labels of each class: (n_tasks, n_classes)."""
    cell = labels.task.astype(np.int64) * labels.n_classes + labels.label
    weight = labels.weight if weighted else None
    votes = np.bincount(cell, weight, labels.n_tasks * labels.n_classes)
    return votes.reshape(labels.n_tasks, labels.n_classes).astype(np.float64)


def labelled_by_several(labels: CrowdLabels) -> NDArray[np.bool_]:
    """Return (n_tasks,): whether two workers or more labelled a task, with positive weight.

    Examples
    --------
    >>> labels = CrowdLabels.from_arrays([0, 0, 1], ["ann", "bob", "ann"], ["cat", "dog", "cat"])
    >>> labelled_by_several(labels)
    array([ True, False])
    """
    return labelled_twice(labels.indptr, labels.worker, labels.weight)


def labelled_twice(
    indptr: NDArray[np.int64], worker: NDArray[np.int32], weight: NDArray[np.float64] | None
) -> NDArray[np.bool_]:
    """Return (n_tasks,): whether two workers or more labelled a task; labels are sorted by task."""
    size = np.diff(indptr)
    if weight is not None and not weight.all():
        counted = weight > 0
        task = np.repeat(np.arange(len(size)), size)[counted]
        worker, size = worker[counted], np.bincount(task, minlength=len(size))
    end = np.cumsum(size)
    several = size > 1
    # Workers are sorted within a task, so the first and the last differ unless all are the same.
    several[several] = worker[end[several] - size[several]] != worker[end[several] - 1]
    return np.asarray(several)
