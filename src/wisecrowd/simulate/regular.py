"""Graphs in which every task and every worker has its exact number of labels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from wisecrowd.core.exceptions import ParameterError
from wisecrowd.core.parameter_checks import check_integer
from wisecrowd.simulate._checks import Codes
from wisecrowd.simulate.graphs import Assignment, task_codes


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
