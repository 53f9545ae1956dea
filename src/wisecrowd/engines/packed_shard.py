"""A shard of a pack in the form that models take, and the pack as the data of a problem."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.labels import CrowdLabels
from wisecrowd.core.worker_errors import WorkerEvidence
from wisecrowd.engines.packed_data import PackedData
from wisecrowd.engines.packed_numbers import load_numbers
from wisecrowd.engines.packed_pairs import load_pairs
from wisecrowd.engines.packs import Pack, as_vocabulary
from wisecrowd.engines.shard_arrays import open_column, open_shard
from wisecrowd.kernels import kernels_for
from wisecrowd.kernels.arguments import TaskLabels

SMALL = 1 << 27  # bytes of a pack whose shards stay mapped while it is open

Floats = NDArray[np.float64]
Ints = NDArray[np.integer[Any]]


@dataclass(frozen=True, eq=False)
class PackedShard:
    """A shard of a pack; it has the attributes of :class:`~wisecrowd.engines.memory.Shard`.

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


def load_shard(pack: Pack, number: int) -> Any:
    """Return a shard of the pack's kind with its arrays mapped; compiled code may trust them.

    An open pack keeps the shards of a small pack, which saves opening their files at every pass.
    """
    load = LOADERS[pack.summary.kind]
    if pack.n_bytes > SMALL:
        return load(pack, number)
    if number not in pack.kept:
        pack.kept[number] = load(pack, number)
    return pack.kept[number]


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


LOADERS: dict[str, Callable[[Pack, int], Any]] = {
    "labels": load_labels,
    "numbers": load_numbers,
    "pairs": load_pairs,
}


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


@dataclass(frozen=True, eq=False)
class PackedCrowd(PackedData):
    """A pack as the data of a problem: sizes and sums, but no annotations.

    Attributes
    ----------
    pack : Pack
    parts : AnswerParts
        Where the answers go.
    """

    weight: None = field(default=None, init=False)

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return len(self.pack.summary.classes)

    @property
    def classes(self) -> NDArray[Any]:
        """(n_classes,) classes."""
        return self.pack.classes

    @property
    def ordered(self) -> bool:
        """Whether the classes are ordered."""
        return self.pack.summary.ordered

    @property
    def class_totals(self) -> Floats:
        """(n_classes,) total weight of the labels of each class."""
        return np.array(self.pack.summary.class_totals)

    @property
    def evidence(self) -> WorkerEvidence:
        """Sums over each worker's labels under the answers that were written."""
        sums = self.parts.sums
        return WorkerEvidence(np.array(self.pack.worker_totals), sums.right, sums.unsure)

    def sample(self, most: int) -> CrowdLabels:
        """Return the labels of the first tasks, which are in the order of a hash: a random sample.

        Tasks have their positions as ids; about ``most`` annotations are returned.
        """
        return self.sample_with_gold(most)[0]

    def sample_with_gold(self, most: int) -> tuple[CrowdLabels, NDArray[np.int32]]:
        """Return a sample of the tasks, and their known classes, -1 where unknown.

        If these are all tasks, they are in the order of their ids, as they would be in memory.
        """
        found = [_sampled(self.pack, shard, tasks) for shard, tasks in self.sampled(most)]
        sizes, workers, labels, weights, known = (
            np.concatenate(part) for part in zip(*found, strict=True)
        )
        n = len(sizes)
        sample = CrowdLabels(
            np.repeat(np.arange(n, dtype=np.int32), sizes),
            workers,
            labels,
            np.arange(n),
            self.workers,
            self.classes,
            weight=weights if len(weights) else None,
        )
        if self.n_annotations > most:
            return sample, known
        order = np.argsort(self.sampled_ids(most), kind="stable")
        return replace(sample[order], tasks=sample.tasks, rows=None), known[order]

    def sampled(self, most: int) -> Iterator[tuple[PackedShard, NDArray[np.int64]]]:
        """Yield shards and the positions of their first tasks, with ``most`` labels or more."""
        size = 0
        for number in range(len(self.pack.summary.shards)):
            shard = load_shard(self.pack, number)
            tasks = _first_tasks(self.pack, shard, most - size)
            size += int(np.diff(shard.indptr)[rows_of(self.pack, shard, tasks)].sum())
            yield shard, tasks
            if size >= most:
                break

    def sampled_ids(self, most: int) -> NDArray[Any]:
        """Return the ids of the tasks of a sample."""
        return np.concatenate(
            [as_vocabulary(self.pack.tasks(s.number))[tasks] for s, tasks in self.sampled(most)]
        )


def rows_of(pack: Pack, shard: PackedShard, tasks: NDArray[np.int64]) -> Ints:
    """Return the rows of tasks of a shard."""
    pattern = open_column(pack, shard.number, "pattern")
    return tasks if pattern is None else np.asarray(pattern[tasks])


def _first_tasks(pack: Pack, shard: PackedShard, most: int) -> NDArray[np.int64]:
    """Return the positions of the first tasks, with about ``most`` labels."""
    n_tasks = pack.summary.shards[shard.number].n_tasks
    sizes = np.diff(shard.indptr)[rows_of(pack, shard, np.arange(n_tasks))]
    n = int(np.searchsorted(np.cumsum(sizes), max(most, 1))) + 1
    return np.arange(min(n, n_tasks))


def _sampled(pack: Pack, shard: PackedShard, tasks: NDArray[np.int64]) -> tuple[Any, ...]:
    """Return sizes, workers, labels, weights and gold of some tasks of a shard."""
    rows = rows_of(pack, shard, tasks)
    sizes = np.diff(shard.indptr)[rows]
    start = np.cumsum(sizes) - sizes
    place = np.repeat(shard.indptr[:-1][rows] - start, sizes) + np.arange(sizes.sum())
    gold = open_column(pack, shard.number, "gold")
    return (
        sizes,
        shard.worker[place],
        shard.label[place],
        np.empty(0) if shard.weight is None else shard.weight[place],
        np.full(len(tasks), -1, np.int32) if gold is None else gold[tasks],
    )
