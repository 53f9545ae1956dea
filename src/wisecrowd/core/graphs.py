"""Assignment graphs: the workers who label each task, as sparse pairs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from wisecrowd.core.exceptions import ParameterError
from wisecrowd.core.parameter_checks import check_integer, check_number
from wisecrowd.core.types import Codes, Floats

# Entries of a temporary rows x workers table of random keys.
_BLOCK_ENTRIES = 1 << 22
# Rounds of drawing again after a collision, before a race takes over.
_MAX_ROUNDS = 16


class Assignment(ABC):
    """A law of bipartite graphs between tasks and workers."""

    kind: ClassVar[str]

    @abstractmethod
    def assign(self, n_tasks: int, n_workers: int, rng: np.random.Generator) -> tuple[Codes, Codes]:
        """Draw the pairs (task, worker), sorted and without repetition.

        Parameters
        ----------
        n_tasks, n_workers : int
            Size of the two sides.
        rng : numpy.random.Generator
            The only source of randomness.

        Returns
        -------
        task, worker : ndarray of int32, shape (n_annotations,)
            Codes of the pairs.
        """

    def expected_labels(self, n_tasks: int, n_workers: int) -> float:
        """Estimate how many pairs the graph has; 0 where that is not known."""
        return 0.0

    def implied_workers(self, n_tasks: int) -> int | None:
        """Count the workers that the graph asks for; None when any number will do."""
        return None


@dataclass(frozen=True)
class Dense(Assignment):
    """Everybody labels everything.

    Examples
    --------
    >>> import numpy as np
    >>> task, worker = Dense().assign(2, 2, np.random.default_rng(0))
    >>> task.tolist(), worker.tolist()
    ([0, 0, 1, 1], [0, 1, 0, 1])
    """

    kind: ClassVar[str] = "dense"

    def expected_labels(self, n_tasks: int, n_workers: int) -> float:
        """Count all pairs."""
        return float(n_tasks) * n_workers

    def assign(self, n_tasks: int, n_workers: int, rng: np.random.Generator) -> tuple[Codes, Codes]:
        """Pair every task with every worker."""
        workers = np.arange(n_workers, dtype=np.int32)
        return task_codes(n_tasks, n_workers), np.tile(workers, n_tasks)


@dataclass(frozen=True)
class PerTask(Assignment):
    """Every task is labelled by r distinct workers, all sets of r equally likely.

    Parameters
    ----------
    r : int, default 5
        Labels per task.

    Examples
    --------
    >>> import numpy as np
    >>> task, worker = PerTask(3).assign(4, 10, np.random.default_rng(0))
    >>> np.bincount(task).tolist()
    [3, 3, 3, 3]
    """

    kind: ClassVar[str] = "per-task"
    r: int = 5

    def __post_init__(self) -> None:
        check_integer("r", self.r, 1)

    def expected_labels(self, n_tasks: int, n_workers: int) -> float:
        """Count r labels per task."""
        return float(n_tasks) * self.r

    def assign(self, n_tasks: int, n_workers: int, rng: np.random.Generator) -> tuple[Codes, Codes]:
        """Draw r workers for each task."""
        if self.r > n_workers:
            raise ParameterError(
                f"`r` asks for {self.r} distinct workers per task, but there are {n_workers}; "
                "lower it or add workers."
            )
        worker = self._draw(n_tasks, n_workers, rng)
        worker.sort(axis=1)
        return task_codes(n_tasks, self.r), worker.ravel()

    def _draw(self, n_tasks: int, n_workers: int, rng: np.random.Generator) -> Codes:
        """Draw the workers (n_tasks, r) in any order."""
        if self.r**2 > 8 * n_workers:
            return _race(n_tasks, self.r, np.zeros(n_workers), rng)
        return _floyd(n_tasks, n_workers, self.r, rng)


@dataclass(frozen=True)
class LongTail(PerTask):
    r"""Every task is labelled by r distinct workers, and a few workers do most of the work.

    A worker of activity rank m (a random order) is chosen with probability proportional to
    :math:`m^{-\text{exponent}}`, without replacement within a task.

    Parameters
    ----------
    r : int, default 5
        Labels per task.
    exponent : float, default 1
        0 is `PerTask`; 1 is Zipf's law.

    Examples
    --------
    >>> import numpy as np
    >>> task, worker = LongTail(2, 1.5).assign(1000, 50, np.random.default_rng(0))
    >>> activity = np.sort(np.bincount(worker, minlength=50))
    >>> bool(activity[-5:].sum() > activity[:-5].sum())
    True
    """

    kind: ClassVar[str] = "long-tail"
    exponent: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_number("exponent", self.exponent, 0.0)

    def _draw(self, n_tasks: int, n_workers: int, rng: np.random.Generator) -> Codes:
        """Draw the workers (n_tasks, r) in any order, the active ones more often."""
        rank = rng.permutation(n_workers) + 1.0
        log_weight = -self.exponent * np.log(rank)
        draw = _race if n_workers <= 8 * self.r else _without_replacement
        return draw(n_tasks, self.r, log_weight, rng)


@dataclass(frozen=True)
class Bernoulli(Assignment):
    """Every pair of task and worker is there with probability p, independently.

    Tasks and workers without labels occur, and are kept.

    Parameters
    ----------
    p : float, default 0.1
        Probability of each pair, above 0.

    Examples
    --------
    >>> import numpy as np
    >>> task, worker = Bernoulli(0.5).assign(100, 100, np.random.default_rng(0))
    >>> 4800 < task.size < 5200
    True
    """

    kind: ClassVar[str] = "bernoulli"
    p: float = 0.1

    def __post_init__(self) -> None:
        check_number("p", self.p, 0.0, 1.0)
        if self.p == 0:
            raise ParameterError("`p` must be above 0: with 0 there would be no labels at all.")

    def expected_labels(self, n_tasks: int, n_workers: int) -> float:
        """Count the share p of all pairs."""
        return self.p * n_tasks * n_workers

    def assign(self, n_tasks: int, n_workers: int, rng: np.random.Generator) -> tuple[Codes, Codes]:
        """Jump from pair to pair by geometric steps: the work is that of the pairs drawn."""
        size = n_tasks * n_workers
        tasks, workers, last = [], [], -1
        while last < size - 1:
            expected = (size - 1 - last) * self.p
            n_steps = min(int(expected + 4 * expected**0.5) + 8, _BLOCK_ENTRIES)
            # A tiny p can step far beyond the last pair; clipped just behind it, the sum cannot
            # overflow.
            pair = last + np.cumsum(np.minimum(rng.geometric(self.p, size=n_steps), size + 1))
            last = int(pair[-1])
            task, worker = np.divmod(pair[pair < size], n_workers)
            tasks.append(task.astype(np.int32))
            workers.append(worker.astype(np.int32))
        return np.concatenate(tasks), np.concatenate(workers)


def task_codes(n_tasks: int, labels_per_task: int) -> Codes:
    """Repeat every task code equally often."""
    return np.repeat(np.arange(n_tasks, dtype=np.int32), labels_per_task)


def _floyd(n_tasks: int, n_workers: int, r: int, rng: np.random.Generator) -> Codes:
    """Floyd's algorithm for all tasks in step: exact, r draws and r^2 / 2 comparisons each."""
    chosen = np.empty((n_tasks, r), dtype=np.int32)
    for column, top in enumerate(range(n_workers - r, n_workers)):
        draw = rng.integers(0, top + 1, size=n_tasks, dtype=np.int32)
        taken = np.zeros(n_tasks, dtype=bool)
        for earlier in range(column):
            taken |= chosen[:, earlier] == draw
        chosen[:, column] = np.where(taken, np.int32(top), draw)
    return chosen


def _race(n_tasks: int, r: int, log_weight: Floats, rng: np.random.Generator) -> Codes:
    """Exponential races of all workers: the first r win."""
    chosen = np.empty((n_tasks, r), dtype=np.int32)
    _finish(chosen, np.arange(n_tasks), 0, log_weight, rng)
    return chosen


def _without_replacement(
    n_tasks: int, r: int, log_weight: Floats, rng: np.random.Generator
) -> Codes:
    """Successive sampling: column by column; workers whom the task has already are redrawn."""
    cumulative = np.cumsum(np.exp(log_weight))
    cumulative /= cumulative[-1]
    chosen = np.empty((n_tasks, r), dtype=np.int32)
    tasks = np.arange(n_tasks)
    for column in range(r):
        colliding = tasks
        for _ in range(_MAX_ROUNDS):
            draw = np.searchsorted(cumulative, rng.random(colliding.size), side="right")
            chosen[colliding, column] = draw
            earlier = chosen[colliding, :column]
            colliding = colliding[(earlier == draw[:, None]).any(axis=1)]
            if colliding.size == 0:
                break
        else:
            _finish(chosen, colliding, column, log_weight, rng)
            tasks = np.setdiff1d(tasks, colliding, assume_unique=True)
    return chosen


def _finish(
    chosen: Codes,
    tasks: npt.NDArray[np.intp],
    column: int,
    log_weight: Floats,
    rng: np.random.Generator,
) -> None:
    """Fill the columns from ``column`` on by one race among the workers not yet chosen.

    The winners of an exponential race, in order, *are* successive draws without replacement, so
    the distribution is that of further draws. Blocks of tasks bound the memory.
    """
    left = chosen.shape[1] - column
    block = max(_BLOCK_ENTRIES // log_weight.size, 1)
    for start in range(0, tasks.size, block):
        rows = tasks[start : start + block]
        # Logarithms of exponential times: extreme weights neither overflow nor tie.
        keys = np.log(rng.standard_exponential((rows.size, log_weight.size))) - log_weight
        np.put_along_axis(keys, chosen[rows, :column].astype(np.intp), np.inf, axis=1)
        chosen[rows, column:] = np.argpartition(keys, left - 1, axis=1)[:, :left]


@dataclass(frozen=True)
class Regular(Assignment):
    r"""A random (l, r)-regular graph: l labels per task, r per worker, no pair twice.

    Every task is repeated l times, every worker r times, the workers are shuffled, and pairs
    that occur twice are mended by random swaps. The sizes must fit:
    :math:`N \, l = J \, r`.

    Parameters
    ----------
    per_task : int, default 3
        Labels of every task, l.
    per_worker : int, default 4
        Labels of every worker, r.

    References
    ----------
    D. Karger, S. Oh, D. Shah (2011). Iterative learning for reliable crowdsourcing systems.
    NeurIPS.

    Examples
    --------
    >>> import numpy as np
    >>> task, worker = Regular(3, 4).assign(8, 6, np.random.default_rng(0))
    >>> np.bincount(task).tolist(), np.bincount(worker).tolist()
    ([3, 3, 3, 3, 3, 3, 3, 3], [4, 4, 4, 4, 4, 4])
    """

    kind: ClassVar[str] = "regular"
    per_task: int = 3
    per_worker: int = 4

    def __post_init__(self) -> None:
        check_integer("per_task", self.per_task, 1)
        check_integer("per_worker", self.per_worker, 1)

    def expected_labels(self, n_tasks: int, n_workers: int) -> float:
        """Count l labels per task."""
        return float(n_tasks) * self.per_task

    def implied_workers(self, n_tasks: int) -> int | None:
        """Count the workers that n_tasks tasks need, if the division goes out."""
        n_workers, rest = divmod(n_tasks * self.per_task, self.per_worker)
        return None if rest else n_workers

    def assign(self, n_tasks: int, n_workers: int, rng: np.random.Generator) -> tuple[Codes, Codes]:
        """Draw the graph."""
        if n_tasks * self.per_task != n_workers * self.per_worker:
            raise ParameterError(
                f"{n_tasks} tasks x {self.per_task} labels are {n_tasks * self.per_task}, but "
                f"{n_workers} workers x {self.per_worker} labels are "
                f"{n_workers * self.per_worker}; a regular graph needs the two to be equal."
            )
        if self.per_task > n_workers or self.per_worker > n_tasks:
            raise ParameterError(
                f"{n_workers} workers cannot give {self.per_task} distinct labels per task and "
                f"{self.per_worker} per worker on {n_tasks} tasks."
            )
        if 2 * self.per_task <= n_workers:
            return _draw(n_tasks, n_workers, self.per_task, self.per_worker, rng)
        # More than half of all pairs: draw those that are missing. The table of pairs is then
        # at most twice as large as the graph itself.
        there = np.ones((n_tasks, n_workers), dtype=bool)
        if self.per_task < n_workers:
            missing = (n_workers - self.per_task, n_tasks - self.per_worker)
            there[_draw(n_tasks, n_workers, *missing, rng)] = False
        task, worker = np.nonzero(there)
        return task.astype(np.int32), worker.astype(np.int32)


def _draw(
    n_tasks: int, n_workers: int, per_task: int, per_worker: int, rng: np.random.Generator
) -> tuple[Codes, Codes]:
    task = task_codes(n_tasks, per_task)
    worker = np.repeat(np.arange(n_workers, dtype=np.int32), per_worker)
    rng.shuffle(worker)
    while True:
        keys = task.astype(np.int64) * n_workers + worker
        order = np.argsort(keys)
        keys = keys[order]
        twice = order[1:][keys[1:] == keys[:-1]]
        if twice.size == 0:
            return (keys // n_workers).astype(np.int32), (keys % n_workers).astype(np.int32)
        _swap_some(task, worker, twice, keys, n_workers, rng)


def _swap_some(
    task: Codes,
    worker: Codes,
    twice: npt.NDArray[np.intp],
    keys: npt.NDArray[np.int64],
    n_workers: int,
    rng: np.random.Generator,
) -> None:
    """Exchange workers between repeated pairs and random others, where that makes no new repeat.

    As long as at most half of all pairs are used, at least one partner suits every repeated
    pair. Only a random half of the repeated ones move at a time, so that the other half can
    serve as partners and no deadlock is possible.
    """
    first = twice if twice.size == 1 else rng.permutation(twice)[: (twice.size + 1) // 2]
    second = rng.integers(0, task.size, size=first.size)
    # A position in two swaps at once would tear the degrees apart.
    _, place, counts = np.unique(
        np.concatenate([first, second]), return_inverse=True, return_counts=True
    )
    free = counts[place[: first.size]] + counts[place[first.size :]] == 2
    first, second = first[free], second[free]
    new = np.stack(
        [
            task[first].astype(np.int64) * n_workers + worker[second],
            task[second].astype(np.int64) * n_workers + worker[first],
        ]
    )
    slot = np.minimum(np.searchsorted(keys, new), keys.size - 1)
    good = (keys[slot] != new).all(axis=0)
    first, second, new = first[good], second[good], new[:, good]
    # Two swaps of the same round must not create the same pair.
    _, place, counts = np.unique(new, return_inverse=True, return_counts=True)
    good = (counts[place.reshape(new.shape)] == 1).all(axis=0)
    first, second = first[good], second[good]
    worker[first], worker[second] = worker[second], worker[first]


def given_or_usual(assignment: Assignment | None, n_workers: int) -> Assignment:
    """Return the given graph; by default five workers per task, or all if there are fewer."""
    return PerTask(min(5, n_workers)) if assignment is None else assignment


def drawn_pairs(
    graph: Assignment, n_tasks: int, n_workers: int, rng: np.random.Generator
) -> tuple[Codes, Codes]:
    """Draw the pairs (task, worker) of a graph, and refuse one without any."""
    task, worker = graph.assign(n_tasks, n_workers, rng)
    if task.size == 0:
        raise ParameterError(f"{graph!r} drew no annotation at all; ask for more labels.")
    return task, worker
