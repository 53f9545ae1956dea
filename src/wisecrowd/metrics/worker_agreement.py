"""Agreement of workers: Cohen's kappa of pairs, and each worker with all others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from wisecrowd.metrics._inputs import FloatArray, IntArray, encode_pair
from wisecrowd.metrics.resampling import NO_BOOTSTRAP, Bootstrap, Interval, interval_of
from wisecrowd.metrics.row_pairs import pairs_within

Ints = npt.NDArray[np.integer[Any]]


def cohen_kappa(first: npt.ArrayLike, second: npt.ArrayLike) -> float:
    r"""Cohen's kappa: how far two workers agree beyond chance.

    .. math::
        \kappa = \frac{p_o - p_e}{1 - p_e}, \qquad p_e = \sum_c f_c g_c

    with :math:`p_o` the share of equal labels, and f and g the shares of class c among the first
    and the second worker's labels.

    Parameters
    ----------
    first, second : array-like of shape (n_tasks,)
        Labels of the two workers on the same tasks, in the same order.

    Returns
    -------
    float
        NaN when both always gave the same one class.

    References
    ----------
    J. Cohen (1960). A coefficient of agreement for nominal scales. Educational and Psychological
    Measurement 20(1), 37-46.

    Examples
    --------
    >>> round(cohen_kappa(["a", "a", "b", "b"], ["a", "b", "b", "b"]), 4)
    0.5
    """
    one, two, classes = encode_pair(first, second)
    n = len(one)
    task = np.repeat(np.arange(n), 2)
    worker, label = np.tile([0, 1], n), np.stack([one, two], axis=1).ravel()
    indptr = np.arange(0, 2 * n + 1, 2)
    return float(pair_kappas(indptr, task, worker, label, len(classes), min_common=1).kappa[0])


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
        Share of equal labels, and beyond chance; kappa is NaN where both gave only one class.
    kappa_error : (n_pairs,)
        Standard error of kappa.
    mean : Interval
        Mean of the kappas that are defined, every pair alike, with its interval.

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


def pair_kappas(
    indptr: Ints,
    task: Ints,
    worker: Ints,
    label: Ints,
    n_classes: int,
    *,
    min_common: int = 5,
    level: float = 0.95,
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

    Returns
    -------
    PairKappas
        Memory is proportional to the pairs of annotations of the same task.
    """
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
    equal = (label[left] == label[right]).astype(np.float64)
    observed = np.bincount(pair, weights=equal, minlength=n_pairs) / common
    of_first = _share_among(pair, label[left], label[right], common, n_classes)
    of_second = _share_among(pair, label[right], label[left], common, n_classes)
    chance = np.bincount(pair, weights=of_second, minlength=n_pairs) / common
    usable = chance < 1 - 1e-12
    room = np.where(usable, 1 - chance, np.nan)
    kappa = (observed - chance) / room
    slope = (equal - observed[pair]) / room[pair]
    slope -= ((1 - observed) / room**2)[pair] * (of_first + of_second - 2 * chance[pair])
    slope /= common[pair]
    error = np.sqrt(np.bincount(pair, weights=slope**2, minlength=n_pairs))
    mean = _mean_interval(kappa, usable, slope, pair, task[left], level)
    return PairKappas(first, second, common, observed, kappa, error, mean)


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


def _mean_interval(
    kappa: FloatArray,
    usable: npt.NDArray[np.bool_],
    slope: FloatArray,
    pair: IntArray,
    task: Ints,
    level: float,
) -> Interval:
    from scipy.special import ndtri

    if not usable.any():
        return Interval(*(np.array(np.nan) for _ in range(3)))
    mean = np.mean(kappa[usable])
    counted = usable[pair]
    by_task = np.bincount(task[counted], weights=slope[counted]) / usable.sum()
    reach = ndtri((1 + level) / 2) * np.sqrt((by_task**2).sum())
    return Interval(np.asarray(mean), np.maximum(mean - reach, -1), np.minimum(mean + reach, 1))


def worker_agreement(
    indptr: Ints,
    worker: Ints,
    label: Ints,
    n_workers: int,
    n_classes: int,
    bootstrap: Bootstrap = NO_BOOTSTRAP,
) -> tuple[IntArray, Interval]:
    r"""Return how far each worker agrees with the others of the same tasks.

    .. math::
        A_j = \frac{1}{n_j} \sum_{i} \frac{n_{i y_{ij}} - 1}{m_i - 1}, \qquad
        \kappa_j = \frac{A_j - E_j}{1 - E_j}, \qquad E_j = \frac{1}{n_j} \sum_i p_{y_{ij}}

    over the tasks of worker j that have two labels or more; :math:`p_c` is the share of class c
    among all labels of such tasks. The bootstrap resamples the tasks of each worker.

    Parameters
    ----------
    indptr, worker, label
        See :func:`pair_kappas`.
    n_workers, n_classes : int
    bootstrap : Bootstrap

    Returns
    -------
    compared : (n_workers,) int
        Labels that could be compared.
    measures : Interval of (2, n_workers)
        Agreement and kappa; NaN for workers without such labels.
    """
    per_task = np.diff(indptr)
    task = np.repeat(np.arange(len(per_task)), per_task)
    rows = np.flatnonzero(per_task[task] >= 2)
    cell = task[rows].astype(np.int64) * n_classes + label[rows]
    _, entry, same = np.unique(cell, return_inverse=True, return_counts=True)
    share = (same[entry] - 1) / (per_task[task[rows]] - 1)
    overall = np.bincount(label[rows], minlength=n_classes) / max(len(rows), 1)

    # Labels of one worker with the same class and the same share are one pattern.
    values, value = np.unique(share, return_inverse=True)
    n_values = max(len(values), 1)
    key = (worker[rows].astype(np.int64) * n_classes + label[rows]) * n_values + value
    distinct, repeats = np.unique(key, return_counts=True)
    rest, of_value = np.divmod(distinct, n_values)
    who, of_class = np.divmod(rest, n_classes)
    compared = np.bincount(who, weights=repeats, minlength=n_workers).astype(np.intp)
    sums = _sums_by(who, np.stack([np.ones(len(who)), values[of_value], overall[of_class]]))

    def statistic(times: FloatArray) -> FloatArray:
        n, agreeing, chance = (times @ table for table in sums)
        agreement, expected = agreeing / n, chance / n
        full = np.full((len(times), 2, n_workers), np.nan)
        full[:, 0, compared > 0] = agreement
        full[:, 1, compared > 0] = (agreement - expected) / (1 - expected)
        return full

    return compared, interval_of(statistic, repeats, bootstrap, 2 * n_workers)


def _sums_by(group: IntArray, values: FloatArray) -> list[Any]:
    """Return one sparse (P, G) matrix per row of values (V, P) that sums patterns by group."""
    from scipy.sparse import csr_array

    _, column = np.unique(group, return_inverse=True)
    indptr = np.arange(len(group) + 1)
    shape = (len(group), int(column.max(initial=-1)) + 1)
    return [csr_array((row, column, indptr), shape=shape) for row in values]
