r"""Facts of all numbers: level, spread and limits of the noise, and whether workers share a scale.

They are of data in memory, or sums over a pack. On different scales the numbers of a worker are a
constant multiple of those of others, such as other units. The logarithms of the absolute numbers
are sums of an effect of the task and one of the worker,

.. math:: \log |y_e| = c_i + r_j + \varepsilon_e,

fitted by least squares. Workers use different scales if the largest gap between neighbouring
:math:`r_j` is wide, far wider than the residuals of a worker, and than the spread on either side.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import singledispatch
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.exceptions import DataError
from wisecrowd.core.findings import Finding
from wisecrowd.core.messages.descriptions import describe_ids
from wisecrowd.core.messages.option_spelling import parameter
from wisecrowd.core.types import Floats, Ints
from wisecrowd.kinds.numbers.answers import TWO_SIDED_95
from wisecrowd.kinds.numbers.container import CrowdNumbers

CONSTANT_FROM = 5  # labels from which a worker can be constant, and their share of the variance
CONSTANT_SHARE = 1e-4
NORMAL_WIDTH = 1.3489795003921634  # distance between the quartiles of a standard normal
UNKNOWN_SHARE = 0.5  # share of the variance that is noise if no task has two labels
LEAST_VARIANCE = 1e-12  # smallest variance, as a share of that of all labels, or absolute
DIFFERENT_SCALES = "different-scales"  # id of the finding
FACTOR = 5.0  # smallest ratio of two scales; a smaller one may be the habit of a worker
CLEAR = 3.0  # times the spread of residuals, and of the workers on either side
FEWEST = 4  # numbers of a worker whose scale is compared
FEW, FACTOR_OF_FEW = 2, 100.0  # the same where fewer than two workers have so many
MOST_CHECKED = 100_000  # numbers; of more, those of every m-th task are compared
ROUNDS = 30
MAD = 1.4826  # standard deviation of a normal over its median absolute deviation


@singledispatch
def overall_mean(data: Any) -> float:
    """Return the weighted mean of all labels, 0 without labels."""
    if data.n_annotations == 0 or (data.weight is not None and not data.weight.any()):
        return 0.0
    return float(np.average(data.value, weights=data.weight))


@singledispatch
def overall_variance(data: Any) -> float:
    """Return the weighted variance of all labels, 0 without labels."""
    if data.n_annotations == 0 or (data.weight is not None and not data.weight.any()):
        return 0.0
    return float(np.average((data.value - overall_mean(data)) ** 2, weights=data.weight))


@singledispatch
def has_different_scales(data: Any) -> bool:
    """Return whether workers use different scales, for fits whose shards must know it; of packs."""
    return False


@singledispatch
def unknown_variance(data: Any) -> float:
    """Return the error that is assumed of the tasks of a pack if none has two numbers, else 0."""
    return 0.0


def least_variance(data: CrowdNumbers) -> float:
    """Return the floor of all variances: a share of the variance of the labels, or absolute."""
    return floor_of(overall_variance(data))


def floor_of(variance: float) -> float:
    """Return the floor of all variances, of labels with this variance."""
    return LEAST_VARIANCE * (variance or 1.0)


def robust_spread(data: CrowdNumbers) -> float:
    """Return the variance of all labels by their quartiles, which single labels cannot change.

    It is the plain variance if half of the labels are equal.
    """
    order = np.argsort(data.value, kind="stable")
    value, total = data.value[order], np.cumsum(data.weights[order])
    if not len(total) or not total[-1] > 0:
        return overall_variance(data)

    def quantiles(targets: Floats) -> Floats:
        return np.asarray(value[np.minimum(np.searchsorted(total, targets), len(total) - 1)])

    return quartile_variance(float(total[-1]), quantiles, overall_variance(data))


def quartile_variance(
    total: float, quantiles: Callable[[Floats], Floats], variance: float
) -> float:
    """Return the variance of a normal with these quartiles; ``variance`` if they are equal.

    ``quantiles`` returns the labels up to which the weight is at least a target. Both neighbours
    of a quartile count, so that signs do not matter.
    """
    near = np.array([1 - 1e-12, 1 + 1e-12])
    found = quantiles(np.concatenate([total * 0.25 * near, total * 0.75 * near]))
    width = float(found[2:].mean() - found[:2].mean()) / NORMAL_WIDTH
    return width**2 if width > 0 else variance


@singledispatch
def least_noise(data: Any) -> Floats:
    """Return the smallest noise (n_workers,): the variance of all labels for constant workers.

    A worker is constant who gave at least ``CONSTANT_FROM`` labels whose variance is below
    ``CONSTANT_SHARE`` of that of all labels. Others have the floor of variances.
    """
    count = data.labels_per_worker
    n = np.maximum(count, 1)
    away = data.value - overall_mean(data)
    mean = np.bincount(data.worker, away, data.n_workers) / n
    spread = np.bincount(data.worker, (away - mean[data.worker]) ** 2, data.n_workers) / n
    return noise_limits(count, spread, robust_spread(data), overall_variance(data))


def noise_limits(count: NDArray[Any], spread: Floats, usual: float, variance: float) -> Floats:
    """Return the smallest noise (n_workers,) from number and variance of each worker's labels.

    ``usual`` is the robust variance of all labels, ``variance`` the plain one.
    """
    floor = floor_of(variance)
    constant = (count >= CONSTANT_FROM) & (spread < CONSTANT_SHARE * usual)
    return np.where(constant, max(variance, floor), floor)


def skewness(values: Floats) -> float:
    """Return the skewness of values around their mean; 0 if all are equal.

    Examples
    --------
    >>> round(skewness(np.array([0.0, 0.0, 3.0])), 3)
    0.707
    """
    centred = values - values.mean()
    spread = float(np.mean(centred**2))
    return float(np.mean(centred**3) / spread**1.5) if spread > 0 else 0.0


def logarithms(values: Floats, where: Any, name: str) -> Floats:
    """Return the logarithms of positive numbers; refuse others and say where the first is."""
    bad = ~(values > 0)
    if bad.any():
        e = int(np.argmax(bad))
        raise DataError(
            f"The {where(e)} is {values[e]:g}, which has no logarithm; {name} with "
            f"{parameter('scale', 'log')} needs numbers above 0: correct it or use "
            f"{parameter('scale', 'linear')}."
        )
    return np.log(values)


class Scales(NamedTuple):
    """Two groups of workers whose numbers differ by a factor.

    Attributes
    ----------
    factor : float
        Ratio of the numbers of ``workers`` to those of the others.
    workers : (n,) codes
        The group with fewer numbers; of equal groups, that with the larger ones.
    """

    factor: float
    workers: Ints


def different_scales(data: CrowdNumbers) -> Scales | None:
    """Return two groups of workers who use different scales, None if there are none.

    Examples
    --------
    >>> task, worker = np.divmod(np.arange(40), 4)
    >>> value = (task + 1.0) * np.where(worker == 3, 100, 1)
    >>> different_scales(CrowdNumbers.from_arrays(task, worker, value))
    Scales(factor=100.0, workers=array([3]))
    """
    step = sampling_step(data.n_annotations)
    rows = data.task % step == 0
    return scales_among(
        data.task[rows], data.worker[rows], data.value[rows], data.weights[rows], data.n_workers
    )


def sampling_step(n_annotations: int) -> int:
    """Return m: the numbers of every m-th task are compared."""
    return max(1, -(-n_annotations // MOST_CHECKED))


def scales_among(
    task: Ints, worker: Ints, value: Floats, weight: Floats, n_workers: int
) -> Scales | None:
    """Return two groups of workers whose numbers differ by a factor, None if there are none."""
    task, worker, size = _compared(task, worker, value, weight)
    count = np.bincount(worker, minlength=n_workers)
    able, factor = np.flatnonzero(count >= FEWEST), FACTOR
    if len(able) < 2:
        able, factor = np.flatnonzero(count >= FEW), FACTOR_OF_FEW
    if len(able) < 2:
        return None
    level, residual = _effects(task, worker, size)
    order = able[np.argsort(level[able], kind="stable")]
    gaps = np.diff(level[order])
    place = int(np.argmax(gaps)) + 1
    gap = float(gaps[place - 1])
    usual = _usual_spread(residual, worker, order)
    sides = order[:place], order[place:]
    within = max(float(np.ptp(level[side])) for side in sides)
    if gap < np.log(factor) or gap < CLEAR * usual or gap < within:
        return None
    small, large = (int(count[side].sum()) for side in sides)
    factor = float(np.exp(np.median(level[sides[1]]) - np.median(level[sides[0]])))
    if small < large:
        return Scales(round(1 / factor, 12), np.sort(sides[0]))
    return Scales(round(factor, 9), np.sort(sides[1]))


def scale_findings(data: CrowdNumbers, scales: Scales | None) -> list[Finding]:
    """Return the finding on workers who use another scale."""
    if scales is None:
        return []
    ids, factor = data.workers[scales.workers], scales.factor
    ratio = f"{factor:.3g} times" if factor > 1 else f"1/{1 / factor:.3g} of"
    several = len(ids) > 1
    return [
        Finding(
            DIFFERENT_SCALES, "high", max(factor, 1 / factor), tuple(ids.tolist()),
            f"{len(ids)} worker{'s' if several else ''} ({describe_ids(ids)}) "
            f"give{'' if several else 's'} {ratio} the numbers of the others on the same tasks: "
            "they use different scales or units. Values are kept inside the labels of their task "
            "and intervals hold all of these, but neither says which scale is right.",
            "Convert the numbers of these workers, or leave them out.",
        )
    ]  # fmt: skip


def inside_range(
    mean: Floats, variance: Floats, task: Ints, value: Floats, width: Any = TWO_SIDED_95
) -> tuple[Floats, Floats]:
    """Return estimates inside the range of their task's numbers, with 95% intervals that hold it.

    ``task`` and ``value`` are those of the numbers that count; an interval has ``width`` standard
    deviations on either side.
    """
    low, high = np.full(len(mean), np.inf), np.full(len(mean), -np.inf)
    np.minimum.at(low, task, value)
    np.maximum.at(high, task, value)
    labelled = low <= high
    mean = np.where(labelled, np.clip(mean, low, high), mean)
    reach = np.where(labelled, np.maximum(high - mean, mean - low), 0.0) / width
    return mean, np.maximum(variance, reach**2)


def _compared(task: Ints, worker: Ints, value: Floats, weight: Floats) -> tuple[Ints, Ints, Floats]:
    """Return task, worker and log of the absolute number, where a task has two other than zero."""
    used = (value != 0) & (weight > 0)
    used &= (np.bincount(task[used], minlength=int(task.max(initial=0)) + 1) > 1)[task]
    return task[used], worker[used], np.log(np.abs(value[used]))


def _effects(task: Ints, worker: Ints, size: Floats) -> tuple[Floats, Floats]:
    """Return the effect of each worker, and the residuals of the two-way model."""
    in_task, of_worker = (np.maximum(np.bincount(code), 1) for code in (task, worker))
    level = np.zeros(len(of_worker))
    for _ in range(ROUNDS):
        center = np.bincount(task, size - level[worker]) / in_task
        level = np.bincount(worker, size - center[task]) / of_worker
    return level, size - center[task] - level[worker]


def _usual_spread(residual: Floats, worker: Ints, order: Ints) -> float:
    """Return the median over workers of the robust spread of their residuals."""
    by = np.lexsort((np.abs(residual), worker))
    count = np.bincount(worker, minlength=int(order.max()) + 1)
    begin = np.cumsum(count) - count
    middle = np.abs(residual)[by][begin[order] + count[order] // 2]
    return MAD * float(np.median(middle))
