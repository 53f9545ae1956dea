"""Answers of a pack: one parquet file per shard, and sums over its annotations."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.exceptions import DataError
from wisecrowd.core.one_worker import MOST_ALONE, capped_rows
from wisecrowd.core.pairs import NOBODY
from wisecrowd.core.result import choose_labels, confidence_of, dense_rows
from wisecrowd.engines.packs import Pack
from wisecrowd.engines.shard_arrays import open_column

if TYPE_CHECKING:
    from wisecrowd.engines.packed_shard import PackedShard

Floats = NDArray[np.float64]


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


def write_part(pack: Pack, shard: PackedShard, rows: Any, plan: PartPlan) -> AnswerSums:
    """Write the answers of a shard, if asked for, and return its sums."""
    probas = posterior_of_rows(rows, shard)
    if is_alone(pack):
        probas = capped_rows(probas, MOST_ALONE)
    codes, ties = choose_labels(probas, np.array(pack.summary.class_totals))
    confidence = confidence_of(probas, codes)
    if plan.folder is not None:
        pattern = open_column(pack, shard.number, "pattern")
        _write(pack, shard, pattern, (codes, confidence, ties, probas), plan)
    tied = ties if shard.repeat is None else ties * shard.repeat
    return AnswerSums(*_worker_sums(shard, probas), int(tied.sum()))


def is_alone(pack: Pack) -> bool:
    """Return whether all labels of a pack without gold are by one worker, who has a name."""
    one = int(np.count_nonzero(pack.worker_totals)) == 1 and not pack.summary.n_gold
    return one and only_name(pack) != NOBODY


def only_name(pack: Pack) -> Any:
    """Return the id of the worker with most labels."""
    return pack.workers[[int(np.argmax(pack.worker_totals))]].tolist()[0]


def posterior_of_rows(rows: Any, shard: PackedShard) -> Any:
    """Return the posterior (n, K) among the results of a step, dense or sparse."""
    if not isinstance(rows, tuple):
        return rows
    if len(rows) == 2:  # other results of tasks come first
        return rows[1]
    from scipy.sparse import coo_array

    task, label, values = rows
    shape = shard.n_tasks, shard.n_classes
    return coo_array((values, (task, label)), shape=shape).tocsr()


def _worker_sums(shard: PackedShard, probas: Any) -> tuple[Floats, Floats]:
    """Return the sums of r and r (1 - r) over each worker's labels."""
    task = np.repeat(np.arange(shard.n_tasks), np.diff(shard.indptr))
    r = np.asarray(probas[task, shard.label], dtype=np.float64).ravel()
    weight = np.ones(len(r)) if shard.weight is None else shard.weight
    if shard.repeat is not None:
        weight = weight * shard.repeat[task]
    right, unsure = (
        np.bincount(shard.worker, values * weight, shard.n_workers).astype(np.float64)
        for values in (r, r * (1 - r))
    )
    return right, unsure


def _write(
    pack: Pack,
    shard: PackedShard,
    pattern: NDArray[np.int32] | None,
    answers: tuple[NDArray[np.int32], Floats, NDArray[np.bool_], Any],
    plan: PartPlan,
) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    codes, confidence, ties, probas = answers
    columns: dict[str, Any] = {
        "label": pa.array(pack.classes).take(pa.array(codes)),
        "confidence": pa.array(confidence),
        "tie": pa.array(ties),
        "n_labels": pa.array(np.diff(shard.indptr)),
    }
    if plan.soft:
        table = dense_rows(probas)
        columns |= {f"p_{name}": table[:, k] for k, name in enumerate(pack.classes.tolist())}
    rows = pa.table(columns)
    if pattern is not None:
        rows = rows.take(pa.array(pattern))
    rows = rows.add_column(0, "task", pack.tasks(shard.number))
    assert plan.folder is not None
    place = Path(plan.folder) / part_name(shard.number)
    temporary = place.with_name(f".{place.name}.{os.getpid()}.tmp")
    pq.write_table(rows, temporary, compression="zstd")
    os.replace(temporary, place)
