r"""Workers whose numbers are a constant multiple of those of others, such as other units.

The logarithms of the absolute numbers are sums of an effect of the task and one of the worker,

.. math:: \log |y_e| = c_i + r_j + \varepsilon_e,

fitted by least squares. Workers use different scales if the largest gap between neighbouring
:math:`r_j` is wide, far wider than the residuals of a worker, and than the spread on either side.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.findings import Finding
from wisecrowd.core.messages.descriptions import describe_ids
from wisecrowd.core.number_answers import TWO_SIDED_95
from wisecrowd.core.numbers import CrowdNumbers
from wisecrowd.engines.packed_numbers import PackedNumbers

Floats = NDArray[np.float64]
Ints = NDArray[np.integer[Any]]

DIFFERENT_SCALES = "different-scales"  # id of the finding
FACTOR = 5.0  # smallest ratio of two scales; a smaller one may be the habit of a worker
CLEAR = 3.0  # times the spread of residuals, and of the workers on either side
FEWEST = 4  # numbers of a worker whose scale is compared
MOST_CHECKED = 100_000  # numbers; of more, those of every m-th task are compared
ROUNDS = 30
MAD = 1.4826  # standard deviation of a normal over its median absolute deviation


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
    able = np.flatnonzero(count >= FEWEST)
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
    if gap < np.log(FACTOR) or gap < CLEAR * usual or gap < within:
        return None
    small, large = (int(count[side].sum()) for side in sides)
    factor = float(np.exp(np.median(level[sides[1]]) - np.median(level[sides[0]])))
    if small < large:
        return Scales(round(1 / factor, 12), np.sort(sides[0]))
    return Scales(round(factor, 9), np.sort(sides[1]))


def scale_findings(data: CrowdNumbers | PackedNumbers, scales: Scales | None) -> list[Finding]:
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
    mean: Floats, variance: Floats, task: Ints, value: Floats
) -> tuple[Floats, Floats]:
    """Return estimates inside the range of their task's numbers, with 95% intervals that hold it.

    ``task`` and ``value`` are those of the numbers that count.
    """
    low, high = np.full(len(mean), np.inf), np.full(len(mean), -np.inf)
    np.minimum.at(low, task, value)
    np.maximum.at(high, task, value)
    labelled = low <= high
    mean = np.where(labelled, np.clip(mean, low, high), mean)
    reach = np.where(labelled, np.maximum(high - mean, mean - low), 0.0) / TWO_SIDED_95
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
