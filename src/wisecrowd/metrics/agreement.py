r"""Agreement of the labels of a task beyond chance: Krippendorff's alpha and Fleiss' kappa.

Only tasks with two labels or more count. Everything is a sum over tasks of terms that depend on
how many labels of each class the task received, so that tasks with the same counts are handled as
one, and a bootstrap replicate is a row of a matrix product. Time and memory are proportional to
the annotations; the ordinal measure also needs the pairs of classes that meet in a task.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from wisecrowd.core.exceptions import DataError
from wisecrowd.core.parameter_checks import check_choice
from wisecrowd.metrics._inputs import FloatArray, IntArray, encode_ids
from wisecrowd.metrics.resampling import NO_BOOTSTRAP, Bootstrap, Interval, interval_of
from wisecrowd.metrics.row_pairs import pairs_within

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
    return float(counts.alpha(level, _numbers(classes) if level == "interval" else None).value)


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


def _numbers(classes: npt.NDArray[Any]) -> FloatArray:
    if classes.dtype.kind not in "biuf":
        raise DataError(
            f"The interval level needs labels that are numbers, but their type is {classes.dtype}."
        )
    return classes.astype(np.float64)
