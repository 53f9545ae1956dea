"""Identification of training tasks by their labels and the classifier's output.

The posterior of a training task may depend on more than the classifier and the worker parameters:
belief propagation estimates each worker from its other tasks. A new task has no such posterior. The
fit therefore stores what identifies its tasks, and ``CrowdClassifier.predict_proba`` repeats their
posteriors.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.labels import CrowdLabels
from wisecrowd.core.saved_attributes import Saved, SavedArray

if TYPE_CHECKING:  # the data of a network need torch; the base class imports this module
    from wisecrowd.learning.training.crowd_classifier import CrowdClassifier, Training
    from wisecrowd.learning.training.crowd_data import CrowdData

Floats = NDArray[np.float64]
Keys = NDArray[np.int64]
Bits = NDArray[np.uint64]

SAME_OUTPUT = 1e-5  # tolerance, because rounding depends on the batch in single precision
NEAREST = 4  # number of candidates with the same labels on either side


def label_keys(labels: CrowdLabels) -> Keys:
    """Return (N,) hashes of each task's workers, labels and weights; 0 without labels.

    Examples
    --------
    >>> labels = CrowdLabels.from_arrays([0, 0, 1, 1, 2], list("abbac"), [1, 0, 0, 1, 1])
    >>> one, other, third = label_keys(labels)
    >>> bool(one == other), bool(one == third)
    (True, False)
    """
    weight = np.ones(labels.n_annotations) if labels.weight is None else labels.weight
    cell = labels.worker.astype(np.uint64) * np.uint64(labels.n_classes) + labels.label.astype(
        np.uint64
    )
    each = _mixed(_mixed(cell) ^ np.asarray(weight, dtype=np.float64).view(np.uint64))
    each[weight == 0] = 0
    until = np.concatenate([np.zeros(1, np.uint64), np.cumsum(each, dtype=np.uint64)])
    total = until[labels.indptr[1:]] - until[labels.indptr[:-1]]  # modulo 2**64
    return np.asarray((total >> np.uint64(1)).astype(np.int64))


def _mixed(value: Bits) -> Bits:
    """Return hashes of numbers, by the finaliser of splitmix64."""
    value = value + np.uint64(0x9E3779B97F4A7C15)
    value = (value ^ (value >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    value = (value ^ (value >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return value ^ (value >> np.uint64(31))


def remember(data: CrowdData | Training, log_probas: Floats) -> dict[str, NDArray[Any]]:
    """Return what identifies the training tasks.

    These are ``task_key`` (N,), 0 for tasks with gold, whose labels do not explain their class,
    and ``task_output`` (N, K), the classifier's probabilities.
    """
    keys = np.where(data.gold >= 0, 0, label_keys(data.labels))
    return {"task_key": keys, "task_output": np.exp(log_probas)}


def remembered(optional: bool | Callable[[Any], bool] = False) -> dict[str, Saved]:
    """Declare what :func:`remember` adds, for ``saves``."""
    return {
        "task_key_": SavedArray("N", "count", optional),
        "task_output_": SavedArray("N K", "distribution", optional),
    }


def recall(method: CrowdClassifier, probas: Floats, log_probas: Floats, labels: Any) -> Floats:
    """Return class probabilities, with those of the fit for training tasks.

    Parameters
    ----------
    method : CrowdClassifier
        Fitted, with what :func:`remember` added.
    probas : (n, K)
        Class probabilities if the tasks were new.
    log_probas : (n, K)
        The classifier's output.
    labels : CrowdLabels
        In the vocabularies of the fit.
    """
    known = method.task_key_, method.task_output_
    row = find_tasks(*known, label_keys(labels), np.exp(log_probas))
    return np.where((row >= 0)[:, None], method.probas_[row], probas)


def find_tasks(keys: Keys, output: Floats, wanted: Keys, wanted_output: Floats) -> NDArray[np.intp]:
    """Return (n,) rows of the known tasks with the same key and the nearest output, or -1.

    Parameters
    ----------
    keys, output : (N,), (N, K)
        Keys and outputs of the training tasks; a key of 0 never matches.
    wanted, wanted_output : (n,), (n, K)
    """
    found = np.full(len(wanted), -1, np.intp)
    groups = np.unique(keys[keys != 0])
    if not len(groups):
        return found
    direction = (np.arange(1, output.shape[1] + 1) * 0.6180339887498949) % 1.0
    rows = np.flatnonzero(keys != 0)
    # One sorted line: tasks of a key lie together, in the order of their output's projection.
    place = 2.0 * np.searchsorted(groups, keys[rows]) + output[rows] @ direction
    order = np.argsort(place, kind="stable")
    rows, place = rows[order], place[order]
    group = np.minimum(np.searchsorted(groups, wanted), len(groups) - 1)
    near = np.searchsorted(place, 2.0 * group + wanted_output @ direction)
    least = np.full(len(wanted), SAME_OUTPUT)
    for offset in range(-NEAREST, NEAREST):
        row = rows[np.clip(near + offset, 0, len(rows) - 1)]
        distance = np.abs(output[row] - wanted_output).max(axis=1)
        better = (keys[row] == wanted) & (distance < least)
        found, least = np.where(better, row, found), np.where(better, distance, least)
    return found
