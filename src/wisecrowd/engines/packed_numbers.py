"""Packs of numbers: shards in the form that models take, and parts of answers."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.exceptions import DataError
from wisecrowd.core.number_answers import NumberAnswers
from wisecrowd.core.number_prior import NumberPrior
from wisecrowd.engines.answer_parts import AnswerSums, PartPlan, part_name
from wisecrowd.engines.number_shards import NumberShard
from wisecrowd.engines.packed_data import PackedData
from wisecrowd.engines.packs import Pack
from wisecrowd.kernels.arguments import TaskNumbers

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class PackedNumberShard(NumberShard):
    """A shard of a pack of numbers; ``number`` is its place in the pack."""

    number: int


@dataclass(frozen=True, eq=False)
class NumberFacts:
    """Sums over all numbers of a pack, which a fit needs before its first pass.

    Attributes
    ----------
    mean, variance : float
    least_noise : (n_workers,)
        Smallest noise of each worker.
    """

    mean: float
    variance: float
    least_noise: Floats


@dataclass(frozen=True, eq=False)
class PackedNumbers(PackedData):
    """A pack of numbers as the data of a problem: sizes and sums, but no annotations.

    Attributes
    ----------
    pack : Pack
    parts : AnswerParts
        Where the answers go.
    facts : NumberFacts, optional
    """

    facts: NumberFacts | None = None

    @property
    def questions(self) -> tuple[tuple[str, ...], None]:
        """No questions: a pack holds the numbers of one."""
        return (), None


def load_numbers(pack: Pack, number: int) -> PackedNumberShard:
    """Return a shard of numbers; compiled code may trust its arrays."""
    summary, info = pack.summary, pack.summary.shards[number]
    indptr, value = pack.required(number, "indptr"), pack.required(number, "value")
    weight, gold = pack.array(number, "weight"), pack.array(number, "gold")
    worker = workers_of(pack, number)
    name = f"shard {info.name} of {pack.path}"
    first = sum(one.n_rows for one in summary.shards[:number])
    require_sizes(
        name,
        {
            "indptr.npy": good_pointers(indptr, info.n_rows, len(worker)),
            "value.npy": value.dtype == np.float64 and value.shape == worker.shape
            and bool(np.isfinite(value).all()),
            "weight.npy": weight is None or weight.shape == worker.shape,
            "gold.npy": gold is None or (gold.dtype == np.float64 and len(gold) == info.n_rows),
        },
    )  # fmt: skip
    if gold is not None and np.isnan(gold).all():
        gold = None
    return PackedNumberShard(
        slice(first, first + info.n_rows),
        TaskNumbers(indptr, worker, value, weight, None),
        NumberPrior(gold=gold),
        summary.n_annotations,
        number,
    )


def workers_of(pack: Pack, number: int) -> NDArray[np.int32]:
    """Return the (n_annotations,) workers of a shard whose cells are local workers."""
    cell, local = pack.required(number, "cell"), pack.required(number, "workers")
    name = f"shard {pack.summary.shards[number].name} of {pack.path}"
    n_annotations = pack.summary.shards[number].n_annotations
    good_cell = cell.dtype in (np.int32, np.int64) and cell.shape == (n_annotations,)
    good_local = local.dtype == np.int32 and local.ndim == 1
    require_sizes(name, {"cell.npy": good_cell, "workers.npy": good_local})
    inside = not len(cell) or bool(cell.min() >= 0 and cell.max() < len(local))
    known = not len(local) or bool(local.min() >= 0 and local.max() < pack.summary.n_workers)
    require_sizes(name, {"cell.npy": inside, "workers.npy": known})
    return np.asarray(local[cell])


def good_pointers(indptr: NDArray[Any], n_rows: int, n_annotations: int) -> bool:
    """Return whether row pointers lead to the annotations."""
    if indptr.dtype != np.int64 or indptr.shape != (n_rows + 1,):
        return False
    ends = indptr[0] == 0 and indptr[-1] == n_annotations
    return bool(ends and (indptr[1:] >= indptr[:-1]).all())


def require_sizes(name: str, good: dict[str, bool]) -> None:
    """Refuse files of a shard whose content compiled code would follow anywhere."""
    for file, fine in good.items():
        if not fine:
            raise DataError(f"{file} of {name} is damaged; copy the pack again.")


def write_number_part(
    pack: Pack, shard: PackedNumberShard, rows: tuple[Floats, Floats], plan: PartPlan
) -> AnswerSums:
    """Write value and interval of each task of a shard, if asked for."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    if plan.folder is not None:
        found = NumberAnswers.normal(*rows)
        table = pa.table(
            {
                "task": pack.tasks(shard.number),
                "value": found.values,
                "low": found.low,
                "high": found.high,
                "n_labels": np.diff(shard.numbers.indptr),
            }
        )
        place = Path(plan.folder) / part_name(shard.number)
        temporary = place.with_name(f".{place.name}.{os.getpid()}.tmp")
        pq.write_table(table, temporary, compression="zstd")
        os.replace(temporary, place)
    return AnswerSums(np.zeros(0), 0)
