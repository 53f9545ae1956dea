"""Cohen's kappa of pairs of workers, also weighted, with errors over tasks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from wisecrowd.core.metric_inputs import FloatArray, IntArray
from wisecrowd.core.statistics import Interval, pairs_within
from wisecrowd.core.types import Ints

Weights = Literal["identity", "linear", "quadratic"]


def two_worker_kappa(
    first: Ints, second: Ints, position: FloatArray, weights: Weights = "identity"
) -> float:
    """Return Cohen's kappa of two columns of codes, weighted by distances of positions.

    Examples
    --------
    >>> ranks = np.arange(3.0)
    >>> round(two_worker_kappa(np.array([0, 0, 1, 2]), np.array([0, 1, 1, 2]), ranks, "linear"), 4)
    0.7143
    """
    n = len(first)
    label = np.stack([first, second], axis=1).ravel()
    found = pair_kappas(
        np.arange(0, 2 * n + 1, 2), np.repeat(np.arange(n), 2), np.tile([0, 1], n), label,
        len(position), min_common=1, weights=weights, position=position,
    )  # fmt: skip
    return float(found.kappa[0])


@dataclass(frozen=True, eq=False)
class PairKappas:
    r"""Cohen's kappa of all pairs of workers that share enough tasks.

    Attributes
    ----------
    first, second : (n_pairs,) int
        Worker codes, first < second; sorted.
    common : (n_pairs,) int
        Tasks in common.
    agreement, kappa : (n_pairs,)
        Mean agreement, which for "identity" is the share of equal labels, and beyond chance; kappa
        is NaN where both gave only one class.
    kappa_error : (n_pairs,)
        Standard error of kappa.
    mean : Interval
        Mean of the kappas that are defined, every pair alike, with its interval.
    task, slope : (n_records,)
        Tasks of pairs of labels, and the derivative of the kappa of the pair by their weight.

    Notes
    -----
    Errors are those of the bootstrap over tasks of the linearised kappa, which has a closed form:
    :math:`\sqrt{\sum_i t_i^2}` with :math:`t_i` the derivative by the weight of task i. Resampling
    itself would be biased where pairs share few tasks, and costs pairs times replicates.
    """

    first: IntArray
    second: IntArray
    common: IntArray
    agreement: FloatArray
    kappa: FloatArray
    kappa_error: FloatArray
    mean: Interval
    task: Ints
    slope: FloatArray


def pair_kappas(
    indptr: Ints,
    task: Ints,
    worker: Ints,
    label: Ints,
    n_classes: int,
    *,
    min_common: int = 5,
    level: float = 0.95,
    weights: Weights = "identity",
    position: FloatArray | None = None,
) -> PairKappas:
    """Return Cohen's kappa of all pairs with ``min_common`` tasks in common or more.

    Parameters
    ----------
    indptr : (n_tasks + 1,) int
        Annotations of task i are rows ``indptr[i]`` to ``indptr[i + 1]``.
    task, worker, label : (n_annotations,) int
        Codes, sorted by (task, worker).
    n_classes : int
    min_common : int, default 5
    level : float, default 0.95
    weights : {"identity", "linear", "quadratic"}
        Agreement of two classes: 1 if they are equal, else 0; or 1 less the absolute or squared
        difference of their positions, relative to the largest one.
    position : (n_classes,), optional
        Places of the classes, in ascending order; by default 0, 1, 2, ...

    Returns
    -------
    PairKappas
        Memory is proportional to the pairs of annotations of the same task.
    """
    from scipy.special import ndtri

    left, right = pairs_within(indptr)
    apart = worker[left] != worker[right]  # a worker does not agree with itself
    left, right = left[apart], right[apart]
    key = worker[left].astype(np.int64) * (int(worker.max(initial=0)) + 1) + worker[right]
    distinct, pair, common = np.unique(key, return_inverse=True, return_counts=True)
    enough = common >= min_common
    kept = enough[pair]
    left, right = left[kept], right[kept]
    pair, common = (np.cumsum(enough) - 1)[pair[kept]], common[enough]
    first, second = np.divmod(distinct[enough], int(worker.max(initial=0)) + 1)

    n_pairs = len(common)
    place = np.arange(n_classes, dtype=np.float64) if position is None else position
    equal, of_first, of_second = _agreements(
        pair, label[left], label[right], common, place, weights
    )
    observed = np.bincount(pair, weights=equal, minlength=n_pairs) / common
    chance = np.bincount(pair, weights=of_second, minlength=n_pairs) / common
    usable = chance < 1 - 1e-12
    room = np.where(usable, 1 - chance, np.nan)
    kappa = (observed - chance) / room
    slope = (equal - observed[pair]) / room[pair]
    slope -= ((1 - observed) / room**2)[pair] * (of_first + of_second - 2 * chance[pair])
    slope /= common[pair]
    error = np.sqrt(np.bincount(pair, weights=slope**2, minlength=n_pairs))
    if not usable.any():
        mean = Interval(*(np.array(np.nan) for _ in range(3)))
    else:
        middle = np.mean(kappa[usable])
        counted = usable[pair]
        by_task = np.bincount(task[left][counted], weights=slope[counted]) / usable.sum()
        reach = ndtri((1 + level) / 2) * np.sqrt((by_task**2).sum())
        low, high = np.maximum(middle - reach, -1), np.minimum(middle + reach, 1)
        mean = Interval(np.asarray(middle), low, high)
    return PairKappas(first, second, common, observed, kappa, error, mean, task[left], slope)


def _agreements(
    pair: IntArray, one: Ints, two: Ints, common: IntArray, position: FloatArray, weights: Weights
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the agreement of two labels, and of each with a random one of the other worker.

    The second array compares ``two`` with all labels of the first worker, the third ``one`` with
    those of the second.
    """
    if weights == "identity":
        equal = (one == two).astype(np.float64)
        of_first = _share_among(pair, one, two, common, len(position))
        return equal, of_first, _share_among(pair, two, one, common, len(position))
    width = float(position[-1] - position[0]) if len(position) else 0.0
    place = (position - position[:1]) / (width or 1.0)
    power = 1 if weights == "linear" else 2
    equal = 1 - np.abs(place[one] - place[two]) ** power
    far = _mean_difference if weights == "linear" else _mean_square
    return equal, 1 - far(pair, one, two, common, place), 1 - far(pair, two, one, common, place)


def _share_among(
    pair: IntArray, counted: Ints, asked: Ints, common: IntArray, n_classes: int
) -> FloatArray:
    """Return, per record of a pair, the share of the label ``asked`` among the ``counted``."""
    base = pair.astype(np.int64) * n_classes
    distinct, counts = np.unique(base + counted, return_counts=True)
    if not len(distinct):
        return np.empty(0)
    place = np.minimum(np.searchsorted(distinct, base + asked), len(distinct) - 1)
    found = distinct[place] == base + asked
    return np.where(found, counts[place], 0) / common[pair]


def _mean_square(
    pair: IntArray, counted: Ints, asked: Ints, common: IntArray, place: FloatArray
) -> FloatArray:
    """Return the mean squared difference of each ``asked`` from the ``counted`` of its pair."""
    x, n = place[counted], len(common)
    mean = np.bincount(pair, x, n) / common
    spread = np.bincount(pair, (x - mean[pair]) ** 2, n) / common
    return np.asarray((place[asked] - mean[pair]) ** 2 + spread[pair])


def _mean_difference(
    pair: IntArray, counted: Ints, asked: Ints, common: IntArray, place: FloatArray
) -> FloatArray:
    """Return the mean absolute difference of each ``asked`` from the ``counted`` of its pair."""
    base = pair.astype(np.int64) * len(place)
    key = np.sort(base + counted)
    sums = np.append(0.0, np.cumsum(place[key % len(place)]))
    end = np.cumsum(common)
    start, end = (end - common)[pair], end[pair]
    below = np.searchsorted(key, base + asked)
    y = place[asked]
    far = y * (2 * below - start - end) + sums[end] + sums[start] - 2 * sums[below]
    return np.asarray(far / common[pair])
