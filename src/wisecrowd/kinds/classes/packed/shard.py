"""A shard of a pack of classes in the form that models take."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from types import ModuleType

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.types import Floats, Ints
from wisecrowd.kernels import kernels_for
from wisecrowd.kernels.arguments import TaskLabels
from wisecrowd.packs.arrays import open_shard
from wisecrowd.packs.pack import Pack


@dataclass(frozen=True, eq=False)
class PackedShard:
    """A shard of a pack; it has the attributes of :class:`~wisecrowd.kinds.classes.shards.Shard`.

    Rows are tasks or, where tasks with the same labels share a row, patterns of labels.

    Attributes
    ----------
    number : int
    tasks : slice
        The range of rows among those of all shards.
    indptr, weight, prior_rows, prior_index, work
        As in memory.
    local_cell : (n_annotations,)
        Local worker times classes plus label.
    local_workers : (n_local,) int32
    n_workers, n_classes : int
    repeat : (n_rows,) float64, optional
        Tasks that share a row.
    """

    number: int
    tasks: slice
    indptr: NDArray[np.int64]
    local_cell: Ints
    local_workers: NDArray[np.int32]
    weight: Floats | None
    prior_rows: Floats
    prior_index: NDArray[np.int32] | None
    work: int
    n_workers: int
    n_classes: int
    repeat: Floats | None

    @property
    def n_tasks(self) -> int:
        """Number of rows in the shard."""
        return len(self.indptr) - 1

    @property
    def labelled(self) -> NDArray[np.bool_]:
        """(n_rows,): whether a row has annotations."""
        return np.diff(self.indptr) > 0

    @cached_property
    def cell(self) -> Ints:
        """(n_annotations,): worker times classes plus label; mapped if all workers are local."""
        if len(self.local_workers) == self.n_workers:
            return self.local_cell
        first = self.local_workers.astype(np.int64) * self.n_classes
        every = (first[:, None] + np.arange(self.n_classes)).ravel()
        if self.n_workers * self.n_classes <= np.iinfo(np.int32).max:
            return np.asarray(every.astype(np.int32)[self.local_cell])
        return np.asarray(every[self.local_cell])

    @cached_property
    def worker(self) -> NDArray[np.int32]:
        """(n_annotations,): the worker of each annotation."""
        return np.asarray(np.repeat(self.local_workers, self.n_classes)[self.local_cell])

    @cached_property
    def label(self) -> NDArray[np.int32]:
        """(n_annotations,): the class of each annotation."""
        every = np.arange(self.n_classes, dtype=np.int32)
        return np.asarray(np.tile(every, len(self.local_workers))[self.local_cell])

    @property
    def task_labels(self) -> TaskLabels:
        """The annotations in the form that kernels take."""
        return TaskLabels(self.indptr, self.worker, self.label, self.weight)

    def kernels(self, family: str) -> ModuleType:
        """Return a family's kernels, which are compiled if the whole problem is large."""
        return kernels_for(family, self.work)


def load_labels(pack: Pack, number: int) -> PackedShard:
    """Return a shard of classes."""
    summary, found = pack.summary, open_shard(pack, number)
    K = len(summary.classes)
    return PackedShard(
        number,
        slice(
            sum(one.n_rows for one in summary.shards[:number]),
            sum(one.n_rows for one in summary.shards[: number + 1]),
        ),
        found.indptr,
        found.cell,
        found.workers,
        found.weight,
        *_prior_of(found.gold, K),
        stored_cells(pack),
        summary.n_workers,
        K,
        found.repeat,
    )


def stored_cells(pack: Pack) -> int:
    """Return the number of labels that a pass reads: those of rows, if tasks share them."""
    if not pack.summary.patterns:
        return pack.summary.n_annotations
    return sum(shard.files["cell.npy"][0] for shard in pack.summary.shards) // 4


def _prior_of(
    gold: NDArray[np.int32] | None, n_classes: int
) -> tuple[Floats, NDArray[np.int32] | None]:
    """Return prior rows and their index: certain classes where they are known."""
    nothing = np.zeros((1, n_classes))
    if gold is None or not (gold >= 0).any():
        return nothing, None
    classes, place = np.unique(gold[gold >= 0], return_inverse=True)
    index = np.zeros(len(gold), dtype=np.int32)
    index[gold >= 0] = place + 1
    certain = np.full((len(classes), n_classes), -np.inf)
    certain[np.arange(len(classes)), classes] = 0.0
    return np.vstack([nothing, certain]), index
