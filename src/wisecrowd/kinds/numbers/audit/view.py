r"""Numbers without their tasks: leave-one-out consensus, bias and residual of every worker.

The consensus of an annotation is the median of the other workers' numbers on the same task, after
their biases are subtracted. No worker is compared with a value that contains its own label.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.annotations import Annotations
from wisecrowd.core.types import Floats, Ints, Mask
from wisecrowd.kinds.classes.container import CrowdLabels
from wisecrowd.kinds.numbers.container import CrowdNumbers
from wisecrowd.kinds.numbers.methods.facts import skewness

SWEEPS = 30  # updates of the biases; each halves the distance to the solution
LARGE, FEW_SWEEPS = 300_000, 10  # annotations above which there are fewer sweeps
CLIPPED = 5.0  # robust standard deviations; larger differences are clipped to this
MAD = 1.4826  # of a normal distribution: standard deviation over median absolute deviation
MOST_SKEW = 1.0  # how much the logarithm must lower the skewness


@dataclass(frozen=True, eq=False)
class NumberView:
    """Numbers compared with the consensus of the others.

    Attributes
    ----------
    data : Annotations
    value : (n_annotations,)
        The numbers on the working scale.
    scale : {"linear", "log"}
        Working scale: logarithmic where the logarithm removes a strong skew.
    consensus : (n_annotations,)
        Median of the others' numbers less their biases; NaN if nobody else labelled the task.
    difference : (n_annotations,)
        Value less consensus, with gross outliers clipped.
    n : (n_workers,)
        Number of labels on tasks that others labelled too.
    bias, bias_error, spread : (n_workers,)
        Mean of the differences, its standard error, and their standard deviation. The median worker
        has the bias 0. NaN without labels; errors need two.
    skewness, log_skewness : float
        Skewness of the numbers and of their logarithms, about the median of the task. The second is
        NaN if a number is not positive.
    """

    data: Annotations
    value: Floats
    scale: str
    consensus: Floats
    difference: Floats
    n: NDArray[np.int64]
    bias: Floats
    bias_error: Floats
    spread: Floats
    skewness: float
    log_skewness: float

    @cached_property
    def compared(self) -> Mask:
        """(n_annotations,): whether others labelled the task."""
        return ~np.isnan(self.consensus)

    @cached_property
    def typical_spread(self) -> float:
        """Median of the workers' standard deviations about the consensus."""
        known = self.spread[(self.n >= 5) & np.isfinite(self.spread)]
        if not len(known):
            known = self.spread[np.isfinite(self.spread)]
        return float(np.median(known)) if len(known) else float("nan")


def number_view(data: CrowdNumbers, fit: Any = None) -> NumberView:
    """Return the view of numbers; strongly skewed positive ones are seen on a log scale.

    Examples
    --------
    >>> data = CrowdNumbers.from_arrays([0, 0, 0, 1, 1, 1], list("abcabc"), [1, 2, 5, 3, 4, 7])
    >>> number_view(data).bias
    array([-1.,  0.,  3.])
    """
    linear = _skewness(data, data.value)
    logarithmic = float("nan")
    scale = "linear"
    if (data.value > 0).all():
        logarithmic = _skewness(data, np.log(data.value))
        if linear - abs(logarithmic) > MOST_SKEW:
            scale = "log"
    value = np.log(data.value) if scale == "log" else data.value
    return _view(data, value, scale, linear, logarithmic)


def view_of_grades(data: CrowdLabels, fit: Any = None) -> NumberView:
    """Return the view of ordered classes, counted 0, 1, 2, ..."""
    return _view(data, data.label.astype(np.float64), "linear", float("nan"), float("nan"))


def _view(
    data: Annotations, value: Floats, scale: str, skewness: float, log_skewness: float
) -> NumberView:
    worker, J = data.worker, data.n_workers
    compared = data.labels_per_task[data.task] > 1
    n = np.bincount(worker[compared], minlength=J)
    bias = np.zeros(J)
    for _ in range(SWEEPS if data.n_annotations <= LARGE else FEW_SWEEPS):
        consensus = median_of_others(data, value - bias[worker])
        update = _mean_by(worker, _clipped(worker, value - consensus, compared, J), compared, J)
        update -= np.median(update[n > 0]) if (n > 0).any() else 0.0
        bias = np.where(n > 0, (bias + update) / 2, 0.0)
    consensus = median_of_others(data, value - bias[worker])
    difference = _clipped(worker, value - consensus, compared, J)
    mean = _mean_by(worker, difference, compared, J)
    level = float(np.median(mean[n > 0])) if (n > 0).any() else 0.0
    squares = np.where(compared, (difference - mean[worker]) ** 2, 0.0)
    with np.errstate(invalid="ignore", divide="ignore"):
        spread = np.sqrt(np.bincount(worker, squares, J) / (n - 1))
        error = np.where(n > 1, spread / np.sqrt(n), np.nan)
    return NumberView(
        data, value, scale, consensus + level, difference - level, n,
        np.where(n > 0, mean - level, np.nan), error, np.where(n > 1, spread, np.nan),
        skewness, log_skewness,
    )  # fmt: skip


def median_of_others(data: Annotations, value: Floats) -> Floats:
    """Return for each annotation the median of the other values of its task, NaN without any.

    Examples
    --------
    >>> data = CrowdNumbers.from_arrays([0, 0, 0, 1], list("abca"), [1.0, 2.0, 5.0, 4.0])
    >>> median_of_others(data, data.value)
    array([3.5, 3. , 1.5, nan])
    """
    order = np.lexsort((value, data.task))
    start = data.indptr[data.task]
    count = data.labels_per_task[data.task]
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    place -= start  # rank of the annotation within its task
    sorted_values = value[order]
    rest = np.maximum(count - 1, 1)
    found = np.zeros(len(order))
    for middle in ((rest - 1) // 2, rest // 2):
        at = middle + (middle >= place)  # the annotation itself is skipped
        found += 0.5 * sorted_values[np.minimum(start + at, len(order) - 1)]
    return np.where(count > 1, found, np.nan)


def group_ranks(group: Ints, value: Floats) -> Floats:
    """Return the rank of each value within its group; equal values share their mean rank.

    Examples
    --------
    >>> group_ranks(np.array([0, 0, 0, 1]), np.array([5.0, 2.0, 5.0, 1.0]))
    array([2.5, 1. , 2.5, 1. ])
    """
    if not len(value):
        return np.zeros(0)
    order = np.lexsort((value, group))
    sorted_group, sorted_value = group[order], value[order]
    new_group = np.r_[True, sorted_group[1:] != sorted_group[:-1]]
    new_run = new_group | np.r_[True, sorted_value[1:] != sorted_value[:-1]]
    position = np.arange(len(order))
    first = position[new_group][np.cumsum(new_group) - 1]
    run = np.cumsum(new_run) - 1
    starts = position[new_run]
    ends = np.r_[starts[1:], len(order)]
    mean = ((starts + ends - 1) / 2)[run] - first + 1.0
    found = np.empty(len(order))
    found[order] = mean
    return found


def _clipped(group: Ints, difference: Floats, use: Mask, n_groups: int) -> Floats:
    """Return differences with outliers clipped about the group's median; NaN becomes 0."""
    rows = np.flatnonzero(use)
    middle = _group_median(group[rows], difference[rows], n_groups)
    apart = np.abs(difference[rows] - middle[group[rows]])
    width = CLIPPED * MAD * _group_median(group[rows], apart, n_groups)
    # Half of the differences may be equal, as on a short scale; then nothing is an outlier.
    width = np.where(width > 0, width, np.inf)
    found = np.zeros(len(difference))
    low, high = (middle - width)[group[rows]], (middle + width)[group[rows]]
    found[rows] = np.clip(difference[rows], low, high)
    return found


def _group_median(group: Ints, value: Floats, n_groups: int) -> Floats:
    order = np.lexsort((value, group))
    count = np.bincount(group, minlength=n_groups)
    start = np.concatenate([[0], np.cumsum(count)[:-1]])
    if not len(order):
        return np.zeros(n_groups)
    low = np.minimum(start + np.maximum(count - 1, 0) // 2, len(order) - 1)
    high = np.minimum(start + count // 2, len(order) - 1)
    sorted_values = value[order]
    return np.where(count > 0, 0.5 * (sorted_values[low] + sorted_values[high]), 0.0)


def _mean_by(group: Ints, value: Floats, use: Mask, n_groups: int) -> Floats:
    count = np.bincount(group[use], minlength=n_groups)
    total = np.bincount(group[use], value[use], n_groups)
    return np.asarray(total / np.maximum(count, 1))


def _skewness(data: CrowdNumbers, value: Floats) -> float:
    """Return the skewness of the numbers about the median of their task."""
    middle = _group_median(data.task, value, data.n_tasks)
    apart = (value - middle[data.task])[data.labels_per_task[data.task] > 1]
    return skewness(apart) if len(apart) >= 3 else 0.0
