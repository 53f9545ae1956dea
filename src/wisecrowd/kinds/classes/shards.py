"""Shards of labels: ranges of tasks in the form that kernels take."""

from __future__ import annotations

from dataclasses import dataclass
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.inference.engine import even_ranges
from wisecrowd.kernels import kernels_for
from wisecrowd.kernels.arguments import TaskLabels

if TYPE_CHECKING:
    from wisecrowd.kinds.classes.container import CrowdLabels
    from wisecrowd.kinds.classes.prior import TaskPrior


@dataclass(frozen=True, eq=False)
class Shard:
    """A range of tasks with their annotations, in the form that kernels take.

    Attributes
    ----------
    tasks : slice
        The range among all tasks.
    indptr : (n_tasks + 1,)
        Annotations of task ``i`` of the shard are ``indptr[i]`` to ``indptr[i + 1]``, from 0 on.
    worker, label, cell, weight : (n_annotations,)
        ``cell = worker * n_classes + label``; a ``weight`` of None means 1 for all annotations.
    prior_rows, prior_index : (R, n_classes) and (n_tasks,)
        The task prior; an index of None means row 0 for all tasks.
    work : int
        The size of the whole problem, so that all shards run the same kernels.
    repeat : (n_tasks,), optional
        Tasks that each row stands for, in packs where tasks with the same labels share a row.
    """

    tasks: slice
    indptr: NDArray[np.int64]
    worker: NDArray[np.int32]
    label: NDArray[np.int32]
    cell: NDArray[np.integer[Any]]
    weight: NDArray[np.float64] | None
    prior_rows: NDArray[np.float64]
    prior_index: NDArray[np.int32] | None
    work: int
    repeat: NDArray[np.float64] | None = None

    @property
    def n_tasks(self) -> int:
        """Number of tasks in the shard."""
        return len(self.indptr) - 1

    @property
    def labelled(self) -> NDArray[np.bool_]:
        """(n_tasks,): whether a task has annotations."""
        return np.diff(self.indptr) > 0

    @property
    def task_labels(self) -> TaskLabels:
        """The annotations in the form that kernels take."""
        return TaskLabels(self.indptr, self.worker, self.label, self.weight)

    def kernels(self, family: str) -> ModuleType:
        """Return a family's kernels, which are compiled if the whole problem is large."""
        return kernels_for(family, self.work)


def cut_labels(data: CrowdLabels, prior: TaskPrior, n_shards: int) -> list[Shard]:
    """Cut into shards of tasks with about equally many annotations, whose arrays are views."""
    cell: NDArray[np.integer[Any]]
    if data.n_workers * data.n_classes <= np.iinfo(np.int32).max:
        cell = data.worker * np.int32(data.n_classes) + data.label
    else:
        cell = data.worker.astype(np.int64) * data.n_classes + data.label

    def shard(first: int, last: int) -> Shard:
        pointers = data.indptr[first : last + 1]
        rows = slice(pointers[0], pointers[-1])
        prior_rows, prior_index = _own_prior(prior, first, last)
        return Shard(
            slice(first, last),
            pointers - pointers[0] if pointers[0] else pointers,
            data.worker[rows],
            data.label[rows],
            cell[rows],
            None if data.weight is None else data.weight[rows],
            prior_rows,
            prior_index,
            data.n_annotations,
        )

    return [shard(first, last) for first, last in even_ranges(data, n_shards)]


def _own_prior(
    prior: TaskPrior, first: int, last: int
) -> tuple[NDArray[np.float64], NDArray[np.int32] | None]:
    """Return the prior rows that a range of tasks uses, and their index."""
    if prior.index is None or last - first == len(prior.index):
        return prior.rows, prior.index
    index = prior.index[first:last]
    if not len(index):
        return prior.rows[:1], index
    lowest = int(index.min())
    rows = prior.rows[lowest : int(index.max()) + 1]
    used = np.bincount(index - lowest, minlength=len(rows)) > 0
    if used.all():
        return rows, index - np.int32(lowest)
    new_index = np.cumsum(used, dtype=np.int32) - np.int32(1)
    return rows[used], new_index[index - lowest]
