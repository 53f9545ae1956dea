"""Posteriors and sums over the annotations of a block, in NumPy, for several families."""

from __future__ import annotations

import numpy as np

from wisecrowd.core.types import Floats, Ints


def log_normalise(scores: Floats) -> tuple[Floats, Floats]:
    """Return the probabilities (n, K) and log normalisers (n,) of log scores (n, K)."""
    top = scores.max(axis=1)
    probas = np.exp(scores - top[:, None])
    total = probas.sum(axis=1)
    probas /= total[:, None]
    return probas, top + np.log(total)


def soft_votes(indptr: Ints, label: Ints, weight: Floats | None, n_classes: int) -> Floats:
    """Return the (n, K) share of each class among a task's labels; uniform without labels."""
    rows, task = annotations_of(indptr)
    n = len(indptr) - 1
    index = task * n_classes + label[rows]
    w = None if weight is None else weight[rows]
    votes = np.bincount(index, weights=w, minlength=n * n_classes).reshape(n, n_classes)
    total = votes.sum(axis=1, keepdims=True)
    uniform = np.full((1, n_classes), 1 / n_classes)
    return np.where(total > 0, votes / np.where(total > 0, total, 1), uniform)


def annotations_of(indptr: Ints) -> tuple[slice, Ints]:
    """Return the annotation rows of a block and the task (0 to n - 1) of each."""
    return slice(indptr[0], indptr[-1]), np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))


def sum_by(index: Ints, values: Floats, size: int) -> Floats:
    """Return the (size,) sums of the values that share an index."""
    return np.bincount(index, weights=values, minlength=size).astype(np.float64, copy=False)
