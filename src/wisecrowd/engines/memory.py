"""All annotations in memory, cut into blocks of tasks that threads work on.

The number of blocks depends on the data alone, and their statistics are added in block order, so
one thread and many give the same bits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from types import ModuleType
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.labels import CrowdLabels
from wisecrowd.core.problem import Problem
from wisecrowd.core.task_prior import TaskPrior
from wisecrowd.engines.threads import get_threads
from wisecrowd.kernels import kernels_for

MOST_BLOCKS = 16
SMALLEST_BLOCK = 1 << 18  # annotations; below this a thread is not worth starting
Stats = TypeVar("Stats", bound=Any)  # a NamedTuple of arrays and numbers that add up
LocalStep = Callable[["Block", Any, Any], tuple[Any, Stats]]


@dataclass(frozen=True, eq=False)
class Block:
    """A range of tasks with its annotations, as the kernels want them.

    ``indptr`` points into the full annotation arrays; ``prior_index`` is the block's own part.
    ``work`` is the size of the whole problem, so that all blocks run the same kernels.
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

    @property
    def n_tasks(self) -> int:
        """Number of tasks in the block."""
        return len(self.indptr) - 1

    def kernels(self, family: str) -> ModuleType:
        """Return a family's kernels: compiled ones if the whole problem is large."""
        return kernels_for(family, self.work)


class MemoryEngine:
    """Keep all annotations in memory and run steps with threads."""

    def cut(self, data: CrowdLabels, prior: TaskPrior, table_size: int) -> MemoryShards:
        """Return the data as blocks of tasks; see :class:`MemoryShards`."""
        return MemoryShards(data, prior, table_size)


def in_memory(data: CrowdLabels, prior: TaskPrior) -> Problem:
    """Return the problem of labels in memory, without a start."""
    return Problem(data, prior, MemoryEngine())


class MemoryShards:
    """Run local steps over blocks of tasks with threads, and add up what they return.

    Parameters
    ----------
    labels : CrowdLabels
    prior : TaskPrior
    table_size : int
        Numbers in one block's statistics: large tables mean fewer blocks.
    """

    def __init__(self, labels: CrowdLabels, prior: TaskPrior, table_size: int) -> None:
        self.n_tasks, self.n_annotations = labels.n_tasks, labels.n_annotations
        n_cells = labels.n_workers * labels.n_classes
        cell: NDArray[np.integer[Any]]
        if n_cells <= np.iinfo(np.int32).max:
            cell = labels.worker * np.int32(labels.n_classes) + labels.label
        else:
            cell = labels.worker.astype(np.int64) * labels.n_classes + labels.label
        size = max(SMALLEST_BLOCK, 4 * table_size)
        n_blocks = min(MOST_BLOCKS, max(1, labels.n_annotations // size))
        # Cut where the annotations divide evenly, not the tasks.
        targets = np.linspace(0, labels.n_annotations, n_blocks + 1)[1:-1]
        cuts = [0, *np.searchsorted(labels.indptr, targets).tolist(), labels.n_tasks]
        self._blocks = [
            Block(
                slice(a, b), labels.indptr[a : b + 1], labels.worker, labels.label, cell,
                labels.weight, prior.rows, None if prior.index is None else prior.index[a:b],
                labels.n_annotations,
            )
            for a, b in pairwise(cuts)
        ]  # fmt: skip

    def shards(self) -> Sequence[Block]:
        """Return the blocks of tasks, in order."""
        return self._blocks

    def map_reduce(
        self, step: LocalStep[Stats], states: Sequence[Any], params: Any
    ) -> tuple[list[Any], Stats]:
        """Run ``step(block, state, params)`` on every block; return new states and summed stats."""
        results = self._map(step, states, params)
        total = results[0][1]
        for _, stats in results[1:]:
            total = total._make(a + b for a, b in zip(total, stats, strict=True))
        return [state for state, _ in results], total

    def map_tasks(self, fill: Callable[[Block, Any], None], params: Any) -> None:
        """Run ``fill(block, params)`` on every block, for steps that write per-task results."""
        self._map(lambda block, _, params: fill(block, params), [None] * len(self._blocks), params)

    def _map(self, step: Callable[..., Any], states: Sequence[Any], params: Any) -> list[Any]:
        threads = min(get_threads(), len(self._blocks))
        if threads == 1:
            pairs = zip(self._blocks, states, strict=True)
            return [step(block, state, params) for block, state in pairs]
        executor: Executor
        with ThreadPoolExecutor(threads) as executor:
            return list(executor.map(lambda b, s: step(b, s, params), self._blocks, states))
