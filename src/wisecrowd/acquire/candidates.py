"""Candidates: which worker can be asked about which task, never as a table of tasks × workers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.types import Floats, Longs

MOST_WORKERS = 64  # workers compared for one task; of more, these are drawn at random
SPARE_TASKS = 64  # tasks looked at beyond twice the number of queries
NOBODY = -1  # worker of a query that anybody may answer


class Pairs(NamedTuple):
    """Pairs that can be asked: task and worker codes (n,), and rows of a log where there is one."""

    task: Longs
    worker: Longs
    row: Longs

    def at(self, index: Longs) -> Pairs:
        """Return some of the pairs."""
        return Pairs(self.task[index], self.worker[index], self.row[index])


class Candidates(Protocol):
    """Source of pairs for one round."""

    def pairs(self, preference: Floats, n: int, rng: np.random.Generator) -> Pairs:
        """Return pairs of the tasks that a policy prefers.

        Parameters
        ----------
        preference : (n_tasks,)
            Larger is better; -inf excludes a task.
        n : int
            Number of queries wanted; enough tasks for these are returned, if there are any.
        rng : numpy Generator
        """

    def allowed(self, pairs: Pairs) -> NDArray[np.bool_]:
        """Return which pairs (n,), best first, keep within the limits of tasks and workers."""

    def take(self, chosen: Pairs) -> None:
        """Remove pairs that were chosen."""


@dataclass
class LoggedPairs:
    """The annotations of a log that were not asked for yet, for replays.

    Attributes
    ----------
    task, worker : (n_annotations,) codes
    asked : (n_annotations,) bool
    """

    task: NDArray[np.int32]
    worker: NDArray[np.int32]
    asked: NDArray[np.bool_]

    def pairs(self, preference: Floats, n: int, rng: np.random.Generator) -> Pairs:
        """Return all pairs of the log that are left, whatever ``n``."""
        row = np.flatnonzero(~self.asked & (preference[self.task] > -np.inf))
        return Pairs(self.task[row].astype(np.int64), self.worker[row].astype(np.int64), row)

    def allowed(self, pairs: Pairs) -> NDArray[np.bool_]:
        """Return that all pairs are allowed."""
        return np.ones(len(pairs.task), dtype=bool)

    def take(self, chosen: Pairs) -> None:
        """Mark pairs as asked."""
        self.asked[chosen.row] = True


@dataclass
class OpenPairs:
    """Any available worker for any task, except for pairs that were asked before.

    Attributes
    ----------
    n_tasks, n_workers : int
    available : (n,) worker codes, or None: queries name no worker
    taken : sorted (m,) int64
        Keys ``task * n_workers + worker`` of pairs with an answer or a lease.
    room : (n_tasks,) int
        Further queries that each task may get.
    capacity : (n_workers,) int, optional
        Further queries that each worker may get.
    """

    n_tasks: int
    n_workers: int
    available: Longs | None
    taken: Longs
    room: Longs
    capacity: Longs | None = None
    # Pairs chosen since; apart, because sorting all pairs again would take seconds.
    _recent: Longs = field(default_factory=lambda: np.empty(0, dtype=np.int64), repr=False)

    def pairs(self, preference: Floats, n: int, rng: np.random.Generator) -> Pairs:
        """Return pairs of the best tasks with all available workers, or with a random sample."""
        open_ = np.flatnonzero((self.room > 0) & (preference > -np.inf))
        best = open_[_top(preference[open_], 2 * n + SPARE_TASKS, rng)]
        if self.available is None:
            return Pairs(best, np.full(len(best), NOBODY), np.full(len(best), -1))
        workers = self.available
        if self.capacity is not None:
            workers = workers[self.capacity[workers] > 0]
        if not len(workers) or not len(best):
            none = np.empty(0, dtype=np.int64)
            return Pairs(none, none, none)
        if len(workers) <= MOST_WORKERS:
            task = np.repeat(best, len(workers))
            worker = np.tile(workers, len(best))
        else:
            task = np.repeat(best, MOST_WORKERS)
            worker = workers[rng.integers(len(workers), size=len(task))]
        free = ~self._is_taken(task, worker)
        if len(workers) > MOST_WORKERS and len(np.unique(task[free])) < min(n, len(best)):
            return self._every_worker(best, workers)
        return _as_pairs(task[free], worker[free])

    def _every_worker(self, tasks: Longs, workers: Longs) -> Pairs:
        """Return one free worker per task by an exact search; the sample was too small."""
        found: list[tuple[int, Any]] = []
        for task in tasks.tolist():
            free = workers[~self._is_taken(np.full(len(workers), task), workers)]
            found += [(task, worker) for worker in free[:MOST_WORKERS].tolist()]
        pairs = np.array(found, dtype=np.int64).reshape(-1, 2)
        return _as_pairs(pairs[:, 0], pairs[:, 1])

    def allowed(self, pairs: Pairs) -> NDArray[np.bool_]:
        """Return which pairs are within the room of tasks and the capacity of workers."""
        keep = _number_within(pairs.task) < self.room[pairs.task]
        if self.capacity is not None and self.available is not None:
            keep[keep] = _number_within(pairs.worker[keep]) < self.capacity[pairs.worker[keep]]
        return keep

    def take(self, chosen: Pairs) -> None:
        """Mark pairs as asked, and reduce the room of their tasks and workers."""
        np.subtract.at(self.room, chosen.task, 1)
        if self.available is None:
            return
        self._recent = np.sort(np.append(self._recent, self._keys(chosen.task, chosen.worker)))
        if self.capacity is not None:
            np.subtract.at(self.capacity, chosen.worker, 1)

    def nothing_left(self) -> bool:
        """Return whether no query is possible: all tasks full, or answered by all available."""
        open_ = self.room > 0
        if not open_.any():
            return True
        if self.available is None:
            return False
        workers = self.available
        if self.capacity is not None:
            workers = workers[self.capacity[workers] > 0]
        here = np.zeros(self.n_workers, dtype=bool)
        here[workers] = True
        every = np.concatenate([self.taken, self._recent])
        counted = every[here[every % max(self.n_workers, 1)]] // max(self.n_workers, 1)
        done = np.bincount(counted, minlength=self.n_tasks)
        return not bool((open_ & (done < len(workers))).any())

    def _keys(self, task: Longs, worker: Longs) -> Longs:
        return task * self.n_workers + worker

    def _is_taken(self, task: Longs, worker: Longs) -> NDArray[np.bool_]:
        key = self._keys(task, worker)
        return _contains(self.taken, key) | _contains(self._recent, key)


def _contains(ordered: Longs, key: Longs) -> NDArray[np.bool_]:
    """Return which keys (n,) a sorted array contains."""
    if not len(ordered):
        return np.zeros(len(key), dtype=bool)
    place = np.minimum(np.searchsorted(ordered, key), len(ordered) - 1)
    return np.asarray(ordered[place] == key)


def _number_within(code: Longs) -> Longs:
    """Return how often each code (n,) occurred before.

    Examples
    --------
    >>> _number_within(np.array([5, 3, 5, 5])).tolist()
    [0, 0, 1, 2]
    """
    order = np.argsort(code, kind="stable")
    start = np.searchsorted(code[order], code[order])
    number = np.empty(len(code), dtype=np.int64)
    number[order] = np.arange(len(code)) - start
    return number


def _top(preference: Floats, n: int, rng: np.random.Generator) -> Longs:
    """Return the positions of the ``n`` largest preferences, ties at random."""
    noise = rng.random(len(preference))
    if n < len(preference):
        cut = np.partition(preference, len(preference) - n)[len(preference) - n]
        above, level = np.flatnonzero(preference > cut), np.flatnonzero(preference == cut)
        drawn = level[np.argsort(noise[level], kind="stable")[: n - len(above)]]
        return np.sort(np.concatenate([above, drawn]))
    return np.arange(len(preference))


def _as_pairs(task: Longs, worker: Longs) -> Pairs:
    return Pairs(task, worker, np.full(len(task), -1))
