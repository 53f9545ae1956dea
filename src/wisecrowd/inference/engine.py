"""Engine that keeps all annotations in memory, in shards of tasks that threads process.

The number of shards depends only on the data, and statistics are added in shard order. Results
therefore do not depend on the number of threads, not even in the last bit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import reduce, singledispatch
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.problem import Problem
from wisecrowd.engines.threads import get_threads

if TYPE_CHECKING:
    from wisecrowd.kinds.classes.container import CrowdLabels
    from wisecrowd.kinds.classes.prior import TaskPrior

MOST_SHARDS = 16
SMALLEST_SHARD = 1 << 18  # minimum number of annotations that justifies a thread
Sink = Callable[[slice, Any], None]  # receives the rows of a range of tasks


@dataclass(frozen=True)
class MemoryEngine:
    """Engine that keeps all annotations in memory and runs steps with threads.

    Parameters
    ----------
    n_shards : int, optional
        Number of shards; by default it depends on the size of the data.
    """

    n_shards: int | None = None

    def cut(self, data: Any, prior: Any, table_size: int) -> MemoryShards:
        """Return the data as shards of tasks; large statistics (``table_size``) mean fewer."""
        size = max(SMALLEST_SHARD, 4 * table_size)
        n_shards = self.n_shards or min(MOST_SHARDS, max(1, data.n_annotations // size))
        return MemoryShards(cut_tasks(data, prior, n_shards))


def in_memory(data: CrowdLabels, prior: TaskPrior) -> Problem:
    """Return a problem for labels in memory, without a start."""
    return Problem(data, prior, MemoryEngine())


@singledispatch
def cut_tasks(data: Any, prior: Any, n_shards: int) -> Sequence[Any]:
    """Cut into shards of tasks with about equally many annotations, whose arrays are views.

    A kind whose methods iterate on shards registers what they are.
    """
    raise TypeError(f"{type(data).__name__} cannot be cut into shards.")


def even_ranges(data: Any, n_shards: int) -> Iterator[tuple[int, int]]:
    """Give first and last (exclusive) task of shards with about equally many annotations."""
    targets = np.linspace(0, data.n_annotations, n_shards + 1)[1:-1]
    return pairwise([0, *np.searchsorted(data.indptr, targets).tolist(), data.n_tasks])


class MemoryShards:
    """Shards of one problem: run a model's steps on all of them with threads.

    Steps are passed as a model and a name, so that an engine may run them on another machine. The
    states of a model stay with their shards.
    """

    keeps_states = True

    def __init__(self, shards: Sequence[Any]) -> None:
        self._shards = shards

    def __len__(self) -> int:
        return len(self._shards)

    def begin(self, model: Any) -> list[Any]:
        """Return the first state of every shard: ``model.begin(shard)``."""
        return self._map(lambda shard, _: model.begin(shard), [None] * len(self._shards))

    def map_reduce(
        self, model: Any, step: str, states: Sequence[Any], params: Any
    ) -> tuple[list[Any], Any]:
        """Run ``model.step(shard, state, params)`` on every shard.

        Return the new states and the sum of the statistics, which are NamedTuples of arrays and
        numbers that add up.
        """
        run = getattr(model, step)
        results = self._map(lambda shard, state: run(shard, state, params), states)
        return [state for state, _ in results], reduce(add, (stats for _, stats in results))

    def collect(self, model: Any, step: str, states: Sequence[Any], params: Any, sink: Sink) -> Any:
        """Run ``model.step(shard, state, params) -> (rows, statistics)`` on every shard.

        ``sink(tasks, rows)`` receives the rows of each shard. Return the sum of the statistics.
        """

        def run(shard: Any, state: Any) -> Any:
            rows, stats = getattr(model, step)(shard, state, params)
            sink(shard.tasks, rows)
            return stats

        return reduce(add, self._map(run, states))

    def _map(self, run: Callable[[Any, Any], Any], states: Sequence[Any]) -> list[Any]:
        threads = get_threads() if len(self._shards) > 1 else 1
        if threads == 1:
            return [run(shard, state) for shard, state in zip(self._shards, states, strict=True)]
        with ThreadPoolExecutor(min(threads, len(self._shards))) as executor:
            return list(executor.map(run, self._shards, states))


@singledispatch
def posterior_of(data: Any, n_classes: int | None = None) -> tuple[Any, Any]:
    """Return a posterior (n_tasks, n_classes) to fill, and the sink that fills it.

    A pack has its own: its posterior is written by shards. ``n_classes`` is that of the
    data unless a model has more.
    """
    # It takes no memory until it is written.
    probas = np.empty((data.n_tasks, data.n_classes if n_classes is None else n_classes))
    return probas, rows_into(probas)


@singledispatch
def posterior_and_more(data: Any) -> tuple[Any, Any, Any]:
    """Return a posterior to fill, the sink for it and one more value per task, and these values.

    Of a pack only the posterior is kept.
    """
    probas, values = np.empty((data.n_tasks, data.n_classes)), np.empty(data.n_tasks)
    return probas, rows_into(values, probas), values


def rows_into(*arrays: NDArray[Any]) -> Sink:
    """Return a sink that stores rows, one array or several, in arrays over all tasks."""

    def store(tasks: slice, rows: Any) -> None:
        for array, part in zip(arrays, rows if isinstance(rows, tuple) else (rows,), strict=True):
            array[tasks] = part

    return store


def add(total: Any, part: Any) -> Any:
    """Return the sum of two NamedTuples, field by field."""
    return total._make(a + b for a, b in zip(total, part, strict=True))
