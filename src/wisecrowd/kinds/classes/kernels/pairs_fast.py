"""The kernels of :mod:`wisecrowd.kinds.classes.kernels.pairs`, compiled.

Workers are processed one by one. The counts that a worker shares with all later workers fit into
one row of ``n_workers`` numbers, so memory grows only with the pairs that exist.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.types import Floats, Ints
from wisecrowd.kernels.compiling import compiled

__all__ = ["pair_counts", "shared_weight"]


def shared_weight(
    task: Ints, worker: Ints, weight: Floats, n_workers: int, least: float
) -> tuple[NDArray[np.int32], NDArray[np.int32], Floats]:
    """Return first (P,), second (P,) and the weight of the shared tasks, where at least some."""
    end = _task_ends(task)
    order, begin = _by_worker(worker, n_workers)
    per_worker = np.zeros(n_workers, dtype=np.int64)
    nothing = np.empty(0, dtype=np.int32), np.empty(0)
    _shared_rows(worker, weight, end, order, begin, least, per_worker, False, *nothing)
    place = np.concatenate([[0], np.cumsum(per_worker)])
    second, shared = np.empty(place[-1], dtype=np.int32), np.empty(place[-1])
    _shared_rows(worker, weight, end, order, begin, least, place[:-1].copy(), True, second, shared)
    first = np.repeat(np.arange(n_workers, dtype=np.int32), per_worker)
    return first, second, shared


def pair_counts(
    task: Ints,
    worker: Ints,
    label: Ints,
    weight: Floats,
    first: Ints,
    second: Ints,
    n_workers: int,
    n_classes: int,
) -> Floats:
    """Return the joint label counts (P, K, K) of each pair of workers."""
    counts = np.zeros((len(first), n_classes, n_classes))
    order, begin = _by_worker(worker, n_workers)
    row = np.searchsorted(first, np.arange(n_workers + 1))
    _fill_counts(worker, label, weight, _task_ends(task), order, begin, second, row, counts)
    return counts


def _task_ends(task: Ints) -> NDArray[np.int64]:
    """Return the row after the last annotation of each annotation's task."""
    return np.searchsorted(task, task, side="right")


def _by_worker(worker: Ints, n_workers: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return annotations in the order of workers, and the start of each worker."""
    begin = np.zeros(n_workers + 1, dtype=np.int64)
    np.cumsum(np.bincount(worker, minlength=n_workers), out=begin[1:])
    return np.argsort(worker, kind="stable"), begin


@compiled
def _shared_rows(worker: Ints, weight: Floats, end: Ints, order: Ints, begin: Ints, least: float,
                 place: Ints, fill: bool, second: Ints, shared: Floats) -> None:  # fmt: skip
    """Count each worker's pairs in ``place``, or fill them in from ``place`` on."""
    n_workers = len(begin) - 1
    row = np.zeros(n_workers)
    for j in range(n_workers):
        lowest, highest = n_workers, -1
        for at in range(begin[j], begin[j + 1]):
            e = order[at]
            for f in range(e + 1, end[e]):
                row[worker[f]] += weight[e] * weight[f]
            if end[e] > e + 1:
                lowest = min(lowest, worker[e + 1])
                highest = max(highest, worker[end[e] - 1])
        for other in range(lowest, highest + 1):
            value = row[other]
            row[other] = 0.0
            if other > j and value > 0.0 and value >= least:
                if fill:
                    second[place[j]] = other
                    shared[place[j]] = value
                place[j] += 1


@compiled
def _fill_counts(worker: Ints, label: Ints, weight: Floats, end: Ints, order: Ints, begin: Ints,
                 second: Ints, row: Ints, counts: Floats) -> None:  # fmt: skip
    """Add the label pairs of all annotations whose workers are a requested pair."""
    n_workers = len(begin) - 1
    pair = np.full(n_workers, -1, dtype=np.int64)
    for j in range(n_workers):
        if row[j] == row[j + 1]:
            continue
        for p in range(row[j], row[j + 1]):
            pair[second[p]] = p
        for at in range(begin[j], begin[j + 1]):
            e = order[at]
            for f in range(e + 1, end[e]):
                p = pair[worker[f]]
                if p >= 0:
                    counts[p, label[e], label[f]] += weight[e] * weight[f]
        for p in range(row[j], row[j + 1]):
            pair[second[p]] = -1
