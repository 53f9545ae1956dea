r"""Posteriors over the labels that a task received, for voting and one-coin models.

A class that task ``i`` did not receive keeps its prior :math:`\pi_{ik}` up to one factor
:math:`r_i` that all such classes share. A posterior is therefore one number per distinct (task,
label) pair and one per task, whatever the number of classes, and neither time nor memory grows with
tasks × classes. The result is a dense matrix if that is small, and sparse otherwise.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.footprint import DENSE_LIMIT
from wisecrowd.core.labels import CrowdLabels
from wisecrowd.engines.memory import Shard
from wisecrowd.engines.packed_shard import PackedCrowd
from wisecrowd.kernels.sparse_posterior.reference import LabelPairs

Floats = NDArray[np.float64]

STRETCH = 1 << 20  # numbers of dense rows processed at once


@dataclass(frozen=True, eq=False)
class SparsePosterior:
    """The distinct labels of a shard's tasks, and arrays for a posterior over them.

    Attributes
    ----------
    pair : (annotations of the shard,) int32
        The pair of each annotation.
    indptr : (n_tasks + 1,), task : (n_pairs,) and label : (n_pairs,)
        The pairs of task ``i`` are ``indptr[i]`` to ``indptr[i + 1]``, sorted by label; tasks are
        counted within the shard.
    probas : (n_pairs,) and rest : (n_tasks,)
        The posterior; a class that the task did not receive has ``rest`` times its prior.
    """

    pair: NDArray[np.int32]
    indptr: NDArray[np.int64]
    task: NDArray[np.int32]
    label: NDArray[np.int32]
    probas: Floats
    rest: Floats

    @property
    def pairs(self) -> LabelPairs:
        """The pairs in the form that kernels take."""
        return LabelPairs(self.pair, self.indptr, self.task, self.label)


def begin_posterior(shard: Shard, n_classes: int) -> SparsePosterior:
    """Return the distinct labels of a shard's tasks, with empty arrays for their posterior."""
    kernels = shard.kernels("sparse_posterior")
    pair, indptr, task, label = kernels.received_labels(shard.indptr, shard.label, n_classes)
    probas, rest = np.empty(len(label)), np.empty(shard.n_tasks)
    return SparsePosterior(pair, indptr, task, label, probas, rest)


def row_totals(prior_rows: Floats, log_class: Floats) -> Floats:
    """Return the (R,) log of each prior row's total mass, including the class prior."""
    totals = np.empty(len(prior_rows))
    for some in _stretches(len(totals), len(log_class)):
        scores = prior_rows[some] + log_class
        top = scores.max(axis=1)
        totals[some] = top + np.log(np.exp(scores - top[:, None]).sum(axis=1))
    return totals


def _stretches(n_rows: int, n_classes: int) -> Iterator[slice]:
    size = max(1, STRETCH // n_classes)
    return (slice(a, min(a + size, n_rows)) for a in range(0, n_rows, size))


def mass_outside(shard: Shard, state: SparsePosterior, log_class: Floats, totals: Floats) -> Floats:
    r"""Return :math:`\sum_i r_i \pi_{ik}` (K,) over annotated tasks, computed once per row."""
    rest = np.where(np.diff(shard.indptr) > 0, state.rest, 0.0)
    if shard.prior_index is None:
        return np.asarray(rest.sum() * np.exp(log_class + shard.prior_rows[0] - totals[0]))
    by_row = np.bincount(shard.prior_index, weights=rest, minlength=len(totals))
    used = np.flatnonzero(by_row)
    mass = np.zeros(len(log_class))
    for some in _stretches(len(used), len(log_class)):
        rows = used[some]
        mass += by_row[rows] @ np.exp(shard.prior_rows[rows] + log_class - totals[rows, None])
    return mass


# --------------------------------------------------------------------------------- as a matrix


class PosteriorMatrix:
    """The posterior (n_tasks, n_classes) of all shards, dense or sparse.

    It is sparse beyond ``DENSE_LIMIT`` numbers. A sparse row holds the labels that the task
    received and its most probable class, such as a gold label. The remaining probability is spread
    over the other classes.

    Parameters
    ----------
    labels : CrowdLabels
    """

    def __init__(self, labels: CrowdLabels) -> None:
        self._shape = labels.n_tasks, labels.n_classes
        self._dense: Floats | None = None
        self._parts: dict[int, tuple[NDArray[Any], ...]] = {}
        self.by_frequency: NDArray[np.intp] | None = None  # classes by frequency; None where dense
        if labels.n_tasks * labels.n_classes <= DENSE_LIMIT:
            self._dense = np.empty(self._shape)
        else:
            self.by_frequency = np.argsort(-labels.class_totals, kind="stable")

    def store(self, tasks: slice, rows: Any) -> None:
        """Store the rows of a shard, as :func:`posterior_rows` returns them."""
        if self._dense is not None:
            self._dense[tasks] = rows
        else:
            task, label, values = rows
            self._parts[tasks.start] = tasks.start + task, label, values

    def matrix(self) -> Any:
        """Return the array or sparse matrix."""
        from scipy.sparse import coo_array

        if self._dense is not None:
            return self._dense
        parts = [self._parts[first] for first in sorted(self._parts)]
        task, label, values = (np.concatenate(part) for part in zip(*parts, strict=True))
        return coo_array((values, (task, label)), shape=self._shape).tocsr()


def posterior_matrix(labels: CrowdLabels | PackedCrowd) -> Any:
    """Return the matrix that the posteriors of shards go to; that of a pack is its files."""
    return labels.parts if isinstance(labels, PackedCrowd) else PosteriorMatrix(labels)


def posterior_rows(
    shard: Shard,
    state: SparsePosterior,
    log_class: Floats,
    totals: Floats,
    by_frequency: NDArray[np.intp] | None,
) -> Any:
    """Return the posteriors (n, K) of a shard; with ``by_frequency`` as (task, class, value)."""
    if by_frequency is not None:
        task, label, values = _best_outside(shard, state, by_frequency, log_class, totals)
        return (
            np.concatenate([state.task, task]),
            np.concatenate([state.label, label]),
            np.concatenate([state.probas, values]),
        )
    probas = np.empty((shard.n_tasks, len(log_class)))
    for some in _stretches(len(probas), len(log_class)):
        probas[some] = _priors(shard, some, log_class, totals) * state.rest[some, None]
    probas[state.task, state.label] = state.probas
    return probas


def _priors(shard: Shard, tasks: Any, log_class: Floats, totals: Floats) -> Floats:
    """Return the normalised priors (c, K) of some tasks of a shard; one row if all share it."""
    if shard.prior_index is None:
        return np.asarray(np.exp(log_class + shard.prior_rows[:1] - totals[0]))
    row = shard.prior_index[tasks]
    return np.asarray(np.exp(log_class + shard.prior_rows[row] - totals[row, None]))


def _best_outside(
    shard: Shard,
    state: SparsePosterior,
    by_frequency: NDArray[np.intp],
    log_class: Floats,
    totals: Floats,
) -> tuple[NDArray[np.intp], NDArray[np.int32], Floats]:
    """Return (task, class, probability) of the two best classes of tasks that received neither.

    Two, so that ties are visible. This is rare except for tasks without labels: a class that was
    not received wins only by its prior, or if the workers are worse than chance.
    """
    best = np.zeros(shard.n_tasks)
    np.maximum.at(best, state.task, state.probas)
    highest = np.exp((log_class + shard.prior_rows.max(axis=0) - totals.min()).max())
    doubtful = np.flatnonzero(state.rest * min(1.0, highest) > best)
    found: list[tuple[NDArray[np.intp], NDArray[np.int32], Floats]] = []
    for some in _stretches(len(doubtful), len(log_class)):
        tasks = doubtful[some]
        probas = np.array(
            np.broadcast_to(_priors(shard, tasks, log_class, totals), (len(tasks), len(log_class)))
        )
        probas *= state.rest[tasks, None]
        counts = np.diff(state.indptr)[tasks]
        local = np.repeat(np.arange(len(tasks)), counts)
        within = np.arange(len(local)) - np.repeat(np.cumsum(counts) - counts, counts)
        probas[local, state.label[state.indptr[tasks][local] + within]] = 0.0
        ranked = probas[:, by_frequency]
        first = ranked.argmax(axis=1)
        every = np.arange(len(tasks))
        top = ranked[every, first]
        ranked[every, first] = -1.0
        second = ranked.argmax(axis=1)
        for column, value in ((first, top), (second, ranked[every, second])):
            wins = (value >= top) & (value > best[tasks])
            found.append((tasks[wins], by_frequency[column[wins]].astype(np.int32), value[wins]))
    if not found:
        return np.empty(0, np.intp), np.empty(0, np.int32), np.empty(0)
    task, label, probas = (np.concatenate(parts) for parts in zip(*found, strict=True))
    return task, label, probas


# ------------------------------------------------------------------------------ worker accuracy


def worker_weights(labels: Any) -> Floats:
    """Return the (n_workers,) total weight of each worker's labels, in memory or of a pack."""
    if hasattr(labels, "worker_totals"):
        return np.asarray(labels.worker_totals)
    if labels.weight is None:
        return np.asarray(labels.labels_per_worker, dtype=np.float64)
    weights = np.bincount(labels.worker, weights=labels.weight, minlength=labels.n_workers)
    return weights.astype(np.float64, copy=False)


def single_task_workers(labels: CrowdLabels) -> NDArray[np.bool_]:
    """Return which workers (n_workers,) labelled only one task, however often.

    Examples
    --------
    >>> labels = CrowdLabels.from_arrays([0, 0, 1, 1], ["a", "b", "b", "c"], [1, 1, 0, 0])
    >>> single_task_workers(labels)
    array([ True, False,  True])
    """
    task, worker = labels.task, labels.worker
    if labels.weight is not None:
        task, worker = task[labels.weight > 0], worker[labels.weight > 0]
    first = np.ones(len(task), dtype=bool)  # first of the labels that a worker gave to a task
    first[1:] = (task[1:] != task[:-1]) | (worker[1:] != worker[:-1])
    return np.asarray(np.bincount(worker[first], minlength=labels.n_workers) == 1)


def share_of(correct: Floats, total: Floats, otherwise: float) -> Floats:
    """Return ``correct / total``, and ``otherwise`` for workers without labels."""
    return np.where(total > 0, correct / np.where(total > 0, total, 1.0), otherwise)
