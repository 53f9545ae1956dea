"""Packs of numbers: shards, the pack as the data of a problem, and a survey before the first pass.

What methods ask of numbers in memory, the survey knows of a pack as sums over its shards.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.types import Floats
from wisecrowd.kernels.arguments import TaskNumbers
from wisecrowd.kinds.numbers.answers import NumberAnswers, NumberPrior
from wisecrowd.kinds.numbers.container import CrowdNumbers
from wisecrowd.kinds.numbers.methods.facts import (
    UNKNOWN_SHARE,
    Scales,
    floor_of,
    has_different_scales,
    least_noise,
    noise_limits,
    overall_mean,
    overall_variance,
    quartile_variance,
    sampling_step,
    scales_among,
    unknown_variance,
)
from wisecrowd.kinds.numbers.shards import NumberShard
from wisecrowd.packs.answers import AnswerParts, AnswerSums, PartPlan, write_table
from wisecrowd.packs.arrays import open_shard
from wisecrowd.packs.kind import PackedData, PackedKind
from wisecrowd.packs.pack import Pack

_BITS, _LEVELS = 16, 4  # a float64 in digits of 16 bits
_LARGEST = float(np.finfo(np.float64).max)


class PackedValues(PackedKind):
    """Packs of numbers: cells are local workers, and the payload has the numbers."""

    container: ClassVar[type[CrowdNumbers]] = CrowdNumbers
    payload: ClassVar[Mapping[str, str]] = {"value": "float64"}
    lists: ClassVar[Mapping[str, int]] = {"value_range": 2}
    answer_columns: ClassVar[frozenset[str]] = frozenset(
        {"task", "value", "low", "high", "n_labels"}
    )
    one_question: ClassVar[bool] = True

    def ranges(self, pack: Pack) -> dict[str, tuple[float, float]]:
        """Return the least and the largest value of each array of the payload."""
        return {"value": (-_LARGEST, _LARGEST)}

    def in_memory(
        self, pack: Pack, task: NDArray[np.int32], tasks: NDArray[Any],
        columns: dict[str, NDArray[Any]],
    ) -> CrowdNumbers:  # fmt: skip
        """Return the numbers in memory."""
        return CrowdNumbers(
            task=task, worker=columns.pop("worker"), value=columns.pop("value"), tasks=tasks,
            workers=pack.workers, weight=columns.pop("weight", None), columns=columns,
            notes=tuple(pack.summary.notes),
        )  # fmt: skip

    def load(self, pack: Pack, number: int) -> PackedNumberShard:
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

    def problem_of(self, pack: Pack, parts: AnswerParts) -> tuple[PackedNumbers, NumberPrior]:
        """Return a pack as the data of a problem, and its prior."""
        known = np.empty(0) if pack.summary.n_gold else None
        return PackedNumbers(pack, parts), NumberPrior(gold=known)

    def write(
        self, pack: Pack, shard: PackedNumberShard, rows: tuple[Floats, Floats], plan: PartPlan
    ) -> AnswerSums:
        """Write value and interval of each task of a shard, if asked for."""
        import pyarrow as pa

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
            write_table(plan, shard.number, table)
        return AnswerSums(np.zeros(0), np.zeros(0), 0)


PACKED = PackedValues()


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

    def surveyed(self, shards: Any) -> PackedNumbers:
        """Return the data with the sums that a fit needs first."""
        return replace(self, facts=survey(self, shards))

    @property
    def known_facts(self) -> NumberFacts:
        """The sums over all numbers, which a fit computes first."""
        if self.facts is None:
            raise TypeError("The numbers of the pack have not been surveyed.")
        return self.facts


@dataclass(frozen=True)
class NumberSurvey:
    """Sums over the numbers of a shard; every step returns a tuple of statistics."""

    n_workers: int

    def begin(self, shard: PackedNumberShard) -> None:
        """Return None: a shard has no state."""

    def totals(
        self, shard: PackedNumberShard, state: Any, params: Any
    ) -> tuple[Any, tuple[float, float]]:
        """Return the weight of all numbers and their weighted sum."""
        value, weight = shard.numbers.value, shard.numbers.weight
        if weight is None:
            return state, (float(len(value)), float(value.sum()))
        return state, (float(weight.sum()), float(weight @ value))

    def spreads(
        self, shard: PackedNumberShard, state: Any, mean: float
    ) -> tuple[Any, tuple[float, Floats, Floats]]:
        """Return squares around the mean, and number and sum of deviations by worker."""
        numbers, J = shard.numbers, self.n_workers
        away = numbers.value - mean
        squares = float((away**2).sum() if numbers.weight is None else numbers.weight @ away**2)
        count = np.bincount(numbers.worker, minlength=J).astype(np.float64)
        return state, (squares, count, np.bincount(numbers.worker, away, J).astype(np.float64))

    def worker_spreads(
        self, shard: PackedNumberShard, state: Any, params: tuple[float, Floats]
    ) -> tuple[Any, tuple[Floats]]:
        """Return the squares around each worker's own mean."""
        mean, own = params
        worker = shard.numbers.worker
        squares = (shard.numbers.value - mean - own[worker]) ** 2
        return state, (np.bincount(worker, squares, self.n_workers).astype(np.float64),)

    def digits(
        self, shard: PackedNumberShard, state: Any, params: tuple[NDArray[np.uint64], int]
    ) -> tuple[Any, tuple[Floats]]:
        """Return the weight (P, 2^16) of the next digit of numbers that begin with P prefixes."""
        prefixes, level = params
        key, weight = sortable_bits(shard.numbers.value), shard.numbers.weight
        digit = (key >> np.uint64(64 - _BITS * (level + 1))) & np.uint64((1 << _BITS) - 1)
        found = np.zeros((len(prefixes), 1 << _BITS))
        for place, prefix in enumerate(prefixes):
            mine = slice(None)
            if level:
                mine = key >> np.uint64(64 - _BITS * level) == prefix
            weights = None if weight is None else weight[mine]
            found[place] = np.bincount(digit[mine].astype(np.int64), weights, 1 << _BITS)
        return state, (found,)


def sortable_bits(values: Floats) -> NDArray[np.uint64]:
    """Return integers in the order of the numbers.

    Examples
    --------
    >>> keys = sortable_bits(np.array([-2.0, -1.0, 0.0, 1e-9, 3.0]))
    >>> bool((keys[1:] > keys[:-1]).all())
    True
    """
    bits = (values + 0.0).view(np.uint64)  # minus zero is zero
    top = np.uint64(1 << 63)
    return np.where(bits & top, ~bits, bits | top)


def number_of_bits(keys: NDArray[np.uint64]) -> Floats:
    """Return the numbers that :func:`sortable_bits` made integers of."""
    top = np.uint64(1 << 63)
    return np.asarray(np.where(keys & top, keys ^ top, ~keys)).view(np.float64)


def survey(data: PackedNumbers, shards: Any) -> NumberFacts:
    """Return mean, variance and smallest noise of workers, by passes over the shards."""
    model = NumberSurvey(data.n_workers)
    states = shards.begin(model)
    _, (total, weighted) = shards.map_reduce(model, "totals", states, None)
    if not total > 0:
        return NumberFacts(0.0, 0.0, np.full(data.n_workers, floor_of(0.0)))
    mean = weighted / total
    _, (squares, count, away) = shards.map_reduce(model, "spreads", states, mean)
    n = np.maximum(count, 1)
    _, (own,) = shards.map_reduce(model, "worker_spreads", states, (mean, away / n))
    variance = squares / total

    def quantiles(targets: Floats) -> Floats:
        return _quantiles(model, shards, states, targets)

    spread = quartile_variance(total, quantiles, variance)
    limits = noise_limits(count, own / n, spread, variance)
    return NumberFacts(mean, variance, limits, _scales(data))


def _scales(data: PackedNumbers) -> Scales | None:
    """Return the workers who use different scales, by the numbers of every m-th task."""
    step = sampling_step(data.n_annotations)
    columns = []
    for number in range(len(data.pack.summary.shards)):
        shard = PACKED.load(data.pack, number)
        numbers, first = shard.numbers, shard.tasks.start
        task = first + np.repeat(np.arange(shard.n_tasks), np.diff(numbers.indptr))
        rows = task % step == 0
        weight = np.ones(len(task)) if numbers.weight is None else numbers.weight
        columns.append((task[rows], numbers.worker[rows], numbers.value[rows], weight[rows]))
    task, worker, value, weight = map(np.concatenate, zip(*columns, strict=True))
    return scales_among(task, worker, value, weight, data.n_workers)


def _quantiles(model: NumberSurvey, shards: Any, states: Any, targets: Floats) -> Floats:
    """Return the smallest numbers up to which the weight is at least ``targets``, exactly."""
    prefix, below = np.zeros(len(targets), np.uint64), np.zeros(len(targets))
    for level in range(_LEVELS):
        distinct, place = np.unique(prefix, return_inverse=True)
        _, (weight,) = shards.map_reduce(model, "digits", states, (distinct, level))
        weight = weight[place]
        upto = below[:, None] + np.cumsum(weight, axis=1)
        last = weight.shape[1] - 1 - np.argmax(weight[:, ::-1] > 0, axis=1)
        enough = upto >= targets[:, None]
        digit = np.where(enough.any(axis=1), enough.argmax(axis=1), last)
        row = np.arange(len(targets))
        below = upto[row, digit] - weight[row, digit]
        prefix = (prefix << np.uint64(_BITS)) | digit.astype(np.uint64)
    return number_of_bits(prefix)


# ----------------------------------------------- what methods ask of numbers, answered for packs


@overall_mean.register
def _(data: PackedNumbers) -> float:
    return data.known_facts.mean


@overall_variance.register
def _(data: PackedNumbers) -> float:
    return data.known_facts.variance


@has_different_scales.register
def _(data: PackedNumbers) -> bool:
    return data.known_facts.scales is not None


@least_noise.register
def _(data: PackedNumbers) -> Floats:
    return data.known_facts.least_noise


@unknown_variance.register
def _(data: PackedNumbers) -> float:
    if data.pack.summary.labels_per_task[1] > 1:
        return 0.0
    facts = data.known_facts
    return UNKNOWN_SHARE * facts.variance or facts.mean**2 or 1.0
