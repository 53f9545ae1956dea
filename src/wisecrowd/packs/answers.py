"""Answers of a pack: one parquet file per shard, and sums over its annotations."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.annotations import NOBODY
from wisecrowd.core.exceptions import DataError
from wisecrowd.core.types import Floats
from wisecrowd.packs.pack import Pack


class AnswerSums(NamedTuple):
    """Additive sums over the answers of shards.

    Attributes
    ----------
    right, unsure : (n_workers,)
        Sums of r and r (1 - r) over each worker's labels; r is the probability that a label is
        right.
    n_ties : int
    """

    right: Floats
    unsure: Floats
    n_ties: int


@dataclass(frozen=True)
class PartPlan:
    """What the parts of a pack's answers hold.

    Attributes
    ----------
    folder : str or None
        Where the parts go; None writes none.
    soft : bool
        Whether they have a column ``p_CLASS`` for every class.
    """

    folder: str | None = None
    soft: bool = False


class AnswerParts:
    """The posterior of a pack: files instead of an array, and sums.

    It stands where methods use the posterior of labels in memory.

    Parameters
    ----------
    plan : PartPlan
    by_frequency : (n_classes,), optional
        Classes by frequency, if the posteriors of a shard are to be sparse.
    """

    def __init__(self, plan: PartPlan, by_frequency: NDArray[np.intp] | None = None) -> None:
        self.plan, self.by_frequency = plan, by_frequency
        self._sums: AnswerSums | None = None
        self.job: Any = None  # the step that gave the answers

    def __call__(self, tasks: slice, rows: Any) -> None:
        """Refuse rows in memory: engines of packs write them where they are made."""
        raise TypeError("Answers of a pack are written by its engine.")

    @property
    def sums(self) -> AnswerSums:
        """The sums of the last pass."""
        if self._sums is None:
            raise DataError("The answers of the pack have not been written yet.")
        return self._sums

    @property
    def n_ties(self) -> int:
        """Number of ties among the answers; 0 if there are no answers about tasks."""
        return 0 if self._sums is None else self._sums.n_ties

    def take(self, sums: AnswerSums, job: Any = None) -> None:
        """Keep the sums over all shards, and the step that gave the answers."""
        self._sums, self.job = sums, job

    @property
    def store(self) -> AnswerParts:
        """The sink: itself."""
        return self

    def matrix(self) -> AnswerParts:
        """Return the posterior: itself."""
        return self


def part_name(number: int) -> str:
    """Return the name of the part of a shard."""
    return f"part-{number:05d}.parquet"


def is_alone(pack: Pack) -> bool:
    """Return whether all labels of a pack without gold are by one worker, who has a name."""
    one = int(np.count_nonzero(pack.worker_totals)) == 1 and not pack.summary.n_gold
    return one and only_name(pack) != NOBODY


def only_name(pack: Pack) -> Any:
    """Return the id of the worker with most labels."""
    return pack.workers[[int(np.argmax(pack.worker_totals))]].tolist()[0]


def posterior_of_rows(rows: Any, shard: Any) -> Any:
    """Return the posterior (n, K) among the results of a step, dense or sparse."""
    if not isinstance(rows, tuple):
        return rows
    if len(rows) == 2:  # other results of tasks come first
        return rows[1]
    from scipy.sparse import coo_array

    task, label, values = rows
    shape = shard.n_tasks, shard.n_classes
    return coo_array((values, (task, label)), shape=shape).tocsr()


def write_table(plan: PartPlan, number: int, table: Any) -> None:
    """Write the answers of a shard as its part, which appears when it is complete."""
    import pyarrow.parquet as pq

    assert plan.folder is not None
    place = Path(plan.folder) / part_name(number)
    temporary = place.with_name(f".{place.name}.{os.getpid()}.tmp")
    pq.write_table(table, temporary, compression="zstd")
    os.replace(temporary, place)
