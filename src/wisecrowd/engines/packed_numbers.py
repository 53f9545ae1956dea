"""Packs of numbers: shards in the form that models take, and parts of answers."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.number_answers import NumberAnswers
from wisecrowd.core.number_prior import NumberPrior
from wisecrowd.engines.answer_parts import AnswerSums, PartPlan, part_name
from wisecrowd.engines.number_shards import NumberShard
from wisecrowd.engines.packed_data import PackedData
from wisecrowd.engines.packs import Pack
from wisecrowd.engines.shard_arrays import open_shard
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
    scales : Scales, optional
        Workers who use different scales.
    """

    mean: float
    variance: float
    least_noise: Floats
    scales: Any = None


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
    """Return a shard of numbers."""
    summary, info = pack.summary, pack.summary.shards[number]
    found, first = open_shard(pack, number), sum(one.n_rows for one in summary.shards[:number])
    gold = None if found.gold is None or np.isnan(found.gold).all() else found.gold
    return PackedNumberShard(
        slice(first, first + info.n_rows),
        TaskNumbers(found.indptr, found.worker, found.payload["value"], found.weight, None),
        NumberPrior(gold=gold),
        summary.n_annotations,
        number,
    )


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
    return AnswerSums(np.zeros(0), np.zeros(0), 0)
