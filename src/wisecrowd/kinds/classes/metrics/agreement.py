r"""Agreement beyond chance: of the labels of a task, of two workers, and of each with all others.

Only tasks with two labels or more count. Alpha and kappa of tasks are sums of terms that depend on
how many labels of each class a task received, so that tasks with the same counts are handled as
one, and a bootstrap replicate is a row of a matrix product. Time and memory are proportional to
the annotations; the ordinal measure also needs the pairs of classes that meet in a task.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from wisecrowd.core.exceptions import DataError
from wisecrowd.core.metric_inputs import FloatArray, IntArray, encode_ids, encode_pair
from wisecrowd.core.parameter_checks import check_choice
from wisecrowd.core.statistics import NO_BOOTSTRAP, Bootstrap, Interval, interval_of, pairs_within
from wisecrowd.core.types import Ints

Level = Literal["nominal", "ordinal", "interval"]
LEVELS = ("nominal", "ordinal", "interval")


def krippendorff_alpha(
    task: npt.ArrayLike, label: npt.ArrayLike, *, level: Level = "nominal"
) -> float:
    r"""Krippendorff's alpha: one minus observed over expected disagreement.

    .. math::
        \alpha = 1 - (n - 1) \frac{\sum_{c, k} o_{ck} \delta^2_{ck}}
                                  {\sum_{c, k} n_c n_k \delta^2_{ck}}, \qquad
        o_{ck} = \sum_i \frac{n_{ic} (n_{ik} - [c = k])}{m_i - 1}

    with :math:`n_{ic}` labels c among the :math:`m_i \ge 2` labels of task i. Differences are
    :math:`\delta = [c \ne k]` (nominal), :math:`v_c - v_k` (interval), or the difference of the
    classes' mid-ranks among all labels (ordinal).

    Parameters
    ----------
    task, label : array-like of shape (n_annotations,)
        Ids. For "ordinal" the sorted labels are in order; for "interval" they are numbers.
    level : {"nominal", "ordinal", "interval"}, default "nominal"

    Returns
    -------
    float
        1 for perfect agreement, 0 for chance; NaN when only one class was ever used or no task
        has two labels, as chance and perfection are then the same.

    References
    ----------
    K. Krippendorff (2011). Computing Krippendorff's alpha-reliability. University of Pennsylvania.

    Examples
    --------
    >>> round(krippendorff_alpha([1, 1, 2, 2, 3, 3], ["a", "a", "b", "b", "a", "b"]), 4)
    0.4444
    """
    check_choice("level", level, LEVELS)
    counts, classes = _encode(task, label)
    numbers = None
    if level == "interval":
        if classes.dtype.kind not in "biuf":
            raise DataError(
                "The interval level needs labels that are numbers, but their type is "
                f"{classes.dtype}."
            )
        numbers = classes.astype(np.float64)
    return float(counts.alpha(level, numbers).value)


def fleiss_kappa(task: npt.ArrayLike, label: npt.ArrayLike) -> float:
    r"""Fleiss' kappa, for any number of labels per task.

    .. math::
        \kappa = \frac{\bar P - \sum_c p_c^2}{1 - \sum_c p_c^2}, \qquad
        \bar P = \frac{1}{N} \sum_i \frac{\sum_c n_{ic} (n_{ic} - 1)}{m_i (m_i - 1)}

    Where the numbers of labels :math:`m_i` differ, every task with two labels or more counts once
    in :math:`\bar P`, and :math:`p_c` is the share of c among all labels of these tasks. With equal
    numbers this is Fleiss' formula.

    Parameters
    ----------
    task, label : array-like of shape (n_annotations,)
        Ids.

    Returns
    -------
    float
        NaN when only one class was ever used or no task has two labels.

    References
    ----------
    J. L. Fleiss (1971). Measuring nominal scale agreement among many raters. Psychological
    Bulletin 76(5), 378-382.

    Examples
    --------
    >>> round(fleiss_kappa([1, 1, 2, 2, 3, 3], ["a", "a", "b", "b", "a", "b"]), 4)
    0.3333
    """
    counts, _ = _encode(task, label)
    return float(counts.fleiss().value)


@dataclass(frozen=True, eq=False)
class TaskCounts:
    """Distinct patterns of label counts among the tasks with two labels or more.

    Attributes
    ----------
    counts : (n_patterns, n_classes) sparse
        How many labels of each class.
    repeats : (n_patterns,) int
        How many tasks have the pattern.
    n_tasks : int
        Tasks with two labels or more.
    """

    counts: Any
    repeats: IntArray
    n_tasks: int

    @classmethod
    def from_codes(
        cls,
        task: npt.NDArray[np.integer[Any]],
        label: npt.NDArray[np.integer[Any]],
        n_tasks: int,
        n_classes: int,
    ) -> TaskCounts:
        """Count the labels (E,) of each task, given as codes."""
        from scipy.sparse import coo_array

        table = coo_array((np.ones(len(task)), (task, label)), shape=(n_tasks, n_classes)).tocsr()
        table = table[np.flatnonzero(table.sum(axis=1) >= 2)]
        first, repeats = _distinct_rows(table)
        return cls(table[first], repeats, table.shape[0])

    @property
    def labels(self) -> FloatArray:
        """(n_patterns,) number of labels of a task."""
        return np.asarray(self.counts.sum(axis=1), dtype=np.float64)

    @property
    def agreeing(self) -> Any:
        r"""(n_patterns, n_classes) sparse: :math:`n_{ic} (n_{ic} - 1) / (m_i - 1)`."""
        result = self.counts.copy()
        others = np.repeat(self.labels - 1, np.diff(result.indptr))
        result.data = result.data * (result.data - 1) / others
        return result

    # ------------------------------------------------------------------------------- measures

    def alpha(
        self,
        level: Level,
        values: FloatArray | None = None,
        bootstrap: Bootstrap = NO_BOOTSTRAP,
    ) -> Interval:
        """Krippendorff's alpha; ``values`` (n_classes,) are the numbers of the interval level."""
        if level == "ordinal":
            return self._ordinal_alpha(bootstrap)
        m = self.labels
        if level == "nominal":
            observed = m - np.asarray(self.agreeing.sum(axis=1))
        else:
            centred = np.asarray(values) - np.mean(np.asarray(values))  # small numbers cancel less
            first, second = self.counts @ centred, self.counts @ centred**2
            observed = 2 * (m * second - first**2) / (m - 1)

        def statistic(times: FloatArray) -> FloatArray:
            n_c, n = times @ self.counts, times @ m
            if level == "nominal":
                expected = n**2 - (n_c**2).sum(axis=1)
            else:
                expected = 2 * (n * (n_c @ centred**2) - (n_c @ centred) ** 2)
            return _ratio_to_one(times @ observed, n, expected)

        return self._interval(statistic, bootstrap)

    def _ordinal_alpha(self, bootstrap: Bootstrap) -> Interval:
        """Mid-ranks change with the replicate; the coincidences of classes are summed instead."""
        pairs, low, high = self._coincidences()

        def statistic(times: FloatArray) -> FloatArray:
            n_c = times @ self.counts
            n = n_c.sum(axis=1)
            rank = np.cumsum(n_c, axis=1) - n_c / 2
            observed = ((times @ pairs) * (rank[:, high] - rank[:, low]) ** 2).sum(axis=1)
            centred = rank - n[:, None] / 2  # the mean of the mid-ranks, weighted by n_c
            expected = 2 * n * (n_c * centred**2).sum(axis=1)
            return _ratio_to_one(observed, n, expected)

        return self._interval(statistic, bootstrap, width=len(low))

    def _coincidences(self) -> tuple[Any, IntArray, IntArray]:
        r"""(n_patterns, Q) sparse :math:`2 n_{ic} n_{ik} / (m_i - 1)` of the Q pairs c < k."""
        from scipy.sparse import coo_array

        table, K = self.counts, self.counts.shape[1]
        table.sort_indices()
        first, second = pairs_within(table.indptr)
        key = table.indices[first].astype(np.int64) * K + table.indices[second]
        distinct, column = np.unique(key, return_inverse=True)
        row = np.searchsorted(table.indptr, first, side="right") - 1
        met = 2 * table.data[first] * table.data[second] / (self.labels[row] - 1)
        shape = (table.shape[0], len(distinct))
        pairs = coo_array((met, (row, column)), shape=shape).tocsr()
        return pairs, distinct // K, distinct % K

    def fleiss(self, bootstrap: Bootstrap = NO_BOOTSTRAP) -> Interval:
        """Fleiss' kappa; see :func:`fleiss_kappa`."""
        m = self.labels
        agreement = np.asarray(self.agreeing.sum(axis=1)) / m

        def statistic(times: FloatArray) -> FloatArray:
            share = times @ self.counts / (times @ m)[:, None]
            chance = (share**2).sum(axis=1)
            return _beyond_chance(times @ agreement / times.sum(axis=1), chance)

        return self._interval(statistic, bootstrap)

    def by_class(self, bootstrap: Bootstrap = NO_BOOTSTRAP) -> Interval:
        r"""(2, n_classes): agreement on each class, and beyond chance.

        The agreement on c is the probability that another label of a task is c when one is,
        :math:`A_c = o_{cc} / n_c`; beyond chance it is :math:`(A_c - p_c) / (1 - p_c)`.
        """
        m, agreeing = self.labels, self.agreeing

        def statistic(times: FloatArray) -> FloatArray:
            n_c = times @ self.counts
            agreement = (times @ agreeing) / n_c
            share = n_c / (times @ m)[:, None]
            return np.stack([agreement, _beyond_chance(agreement, share)], axis=1)

        return self._interval(statistic, bootstrap)

    def _interval(self, statistic: Any, bootstrap: Bootstrap, width: int = 1) -> Interval:
        return interval_of(statistic, self.repeats, bootstrap, max(width, 2 * self.counts.shape[1]))


def _ratio_to_one(observed: FloatArray, n: FloatArray, expected: FloatArray) -> FloatArray:
    # Rounding must not turn "no variation" into a number.
    usable = expected > 1e-12 * n**2
    return np.where(usable, 1 - (n - 1) * observed / np.where(usable, expected, 1.0), np.nan)


def _beyond_chance(agreement: FloatArray, chance: FloatArray) -> FloatArray:
    usable = chance < 1 - 1e-12
    return np.where(usable, (agreement - chance) / np.where(usable, 1 - chance, 1.0), np.nan)


def _distinct_rows(table: Any) -> tuple[IntArray, IntArray]:
    """Return the first row of each distinct one and how often it occurs.

    A row of small counts is a number written in base "largest count plus one"; where that number
    would overflow every row stands for itself, which costs time only.
    """
    n_rows, n_classes = table.shape
    base = int(table.data.max(initial=0)) + 1
    if base**n_classes >= 2**62:
        return np.arange(n_rows), np.ones(n_rows, dtype=np.intp)
    digits = np.array([base**k for k in range(n_classes)], dtype=np.int64)
    code = table.astype(np.int64) @ digits
    _, first, repeats = np.unique(code, return_index=True, return_counts=True)
    return first, repeats


def _encode(task: npt.ArrayLike, label: npt.ArrayLike) -> tuple[TaskCounts, npt.NDArray[Any]]:
    task_codes, tasks = encode_ids(task, "task")
    label_codes, classes = encode_ids(label, "label")
    if len(task_codes) != len(label_codes):
        raise DataError(
            f"`task` has {len(task_codes)} values but `label` has {len(label_codes)}; "
            "give one of each per annotation."
        )
    return TaskCounts.from_codes(task_codes, label_codes, len(tasks), len(classes)), classes


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
    if not usable.any():
        mean = Interval(*(np.array(np.nan) for _ in range(3)))
    else:
        middle = np.mean(kappa[usable])
        counted = usable[pair]
        by_task = np.bincount(task[left][counted], weights=slope[counted]) / usable.sum()
        reach = ndtri((1 + level) / 2) * np.sqrt((by_task**2).sum())
        low, high = np.maximum(middle - reach, -1), np.minimum(middle + reach, 1)
        mean = Interval(np.asarray(middle), low, high)
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
    from scipy.sparse import csr_array

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
    # Sparse (patterns, workers) matrices that sum over the patterns of each worker.
    _, column = np.unique(who, return_inverse=True)
    shape = (len(who), int(column.max(initial=-1)) + 1)
    sums = [
        csr_array((row, column, np.arange(len(who) + 1)), shape=shape)
        for row in (np.ones(len(who)), values[of_value], overall[of_class])
    ]

    def statistic(times: FloatArray) -> FloatArray:
        n, agreeing, chance = (times @ table for table in sums)
        agreement, expected = agreeing / n, chance / n
        full = np.full((len(times), 2, n_workers), np.nan)
        full[:, 0, compared > 0] = agreement
        full[:, 1, compared > 0] = (agreement - expected) / (1 - expected)
        return full

    return compared, interval_of(statistic, repeats, bootstrap, 2 * n_workers)
