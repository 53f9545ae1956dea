"""What a fit needs to know of all numbers of a pack before its first pass, as sums over shards."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.engines.packed_numbers import (
    NumberFacts,
    PackedNumbers,
    PackedNumberShard,
    load_numbers,
)
from wisecrowd.families.number_facts import floor_of, noise_limits, quartile_variance
from wisecrowd.families.number_scales import Scales, sampling_step, scales_among

Floats = NDArray[np.float64]
_BITS, _LEVELS = 16, 4  # a float64 in digits of 16 bits


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
        shard = load_numbers(data.pack, number)
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
