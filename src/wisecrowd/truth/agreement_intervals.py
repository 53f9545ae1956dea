r"""Two intervals of a coefficient of agreement: for other tasks, and for other workers too.

With the effects :math:`\tau_e` and :math:`\omega_e` of label e, the first one has the variance

.. math:: V_t = \sum_i \Big(\sum_{e \in i} \tau_e\Big)^2

and "other workers too" has :math:`V_t + V_w - V_l`, at least :math:`V_t`, with

.. math::
    V_w = \frac{J - 1}{J} \sum_j \Big(\frac{\sum_{e \in j} \omega_e}{1 - h_j}\Big)^2, \qquad
    V_l = \sum_e \omega_e^2

where :math:`h_j` is the share of the pairs of labels that worker j is in. So :math:`V_w` is what
leaving out one worker after the other gives (jackknife), in closed form. What labels vary without
their worker is in :math:`V_w` and in :math:`V_t`, so :math:`V_l` is subtracted. The quantile is
that of the t distribution with :math:`1 / \sum_j s_j^2 - 1` degrees of freedom, where :math:`s_j`
are the workers' shares of the labels: :math:`J - 1` if they have equally many.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from wisecrowd.core.agreement_evidence import AgreementEvidence, Measured
from wisecrowd.core.types import Floats, Ints

FEWEST_WORKERS = 3  # with fewer, nothing can be said of other workers
MOST_LEVERAGE = 0.9  # share of the pairs that one worker can be in, for the variance


class TaskInterval(NamedTuple):
    """A coefficient, and its interval for these workers and other tasks."""

    value: float
    low: float
    high: float


class TwoIntervals(NamedTuple):
    """A coefficient, its interval for other tasks, and that for other workers too."""

    value: float
    low: float
    high: float
    low_workers: float
    high_workers: float


class Variances(NamedTuple):
    """Variances of a coefficient, and the degrees of freedom of the workers."""

    tasks: float
    workers: float
    labels: float
    freedom: float


def task_interval(measured: Measured, task: Ints, level: float = 0.95) -> TaskInterval:
    """Return the interval for these workers and other tasks; NaN where nothing varies.

    Parameters
    ----------
    measured : Measured
    task : (n_labels,)
    level : float

    Examples
    --------
    >>> effect = np.array([0.01, 0.02, -0.02, -0.01])
    >>> found = task_interval(Measured(0.5, effect, effect), np.array([0, 0, 1, 1]))
    >>> round(found.low, 2), round(found.high, 2)
    (-0.26, 1.0)
    """
    from scipy.special import stdtrit

    n = int((np.bincount(task) >= 2).sum())
    variance = _cluster_variance(measured.of_task, task, n)
    if n < 2 or not variance > 0:
        return TaskInterval(measured.value, float("nan"), float("nan"))
    reach = float(stdtrit(n - 1, (1 + level) / 2)) * float(np.sqrt(variance))
    return TaskInterval(measured.value, *_ends(measured, reach))


def both_intervals(
    measured: Measured, evidence: AgreementEvidence, level: float = 0.95
) -> TwoIntervals:
    """Return both intervals of a coefficient."""
    first = task_interval(measured, evidence.task, level)
    if evidence.n_workers < FEWEST_WORKERS or not np.isfinite(first.low):
        return TwoIntervals(*first, float("nan"), float("nan"))
    low, high = _ends(measured, _reach(variances_of(measured, evidence), level))
    return TwoIntervals(*first, min(low, first.low), max(high, first.high))


def _reach(found: Variances, level: float) -> float:
    """Return half of the width for other tasks and workers."""
    from scipy.special import stdtrit

    error = np.sqrt(found.tasks + max(found.workers - found.labels, 0.0))
    return float(stdtrit(found.freedom, (1 + level) / 2) * error)


def variances_of(measured: Measured, evidence: AgreementEvidence) -> Variances:
    """Return the variances of a coefficient.

    Examples
    --------
    >>> effect = np.array([0.1, -0.1, 0.2, -0.2, 0.3, -0.3])
    >>> evidence = AgreementEvidence(
    ...     task=np.repeat([0, 1], 3), worker=np.tile([0, 1, 2], 2), coefficients={})
    >>> found = variances_of(Measured(0.5, effect, effect), evidence)
    >>> round(found.workers, 2), round(found.labels, 2), round(found.freedom, 2)
    (0.36, 0.28, 2.0)
    """
    tasks = _cluster_variance(measured.of_task, evidence.task, evidence.n_tasks)
    count = np.bincount(evidence.worker[evidence.shared], minlength=1 + evidence.worker.max())
    share = count / max(count.sum(), 1)
    kept = 1 - np.minimum(2 * share, MOST_LEVERAGE)
    sums = np.bincount(evidence.worker, measured.of_worker, len(share)) / kept
    J = evidence.n_workers
    workers = (J - 1) / max(J, 1) * float((sums**2).sum())
    freedom = max(1 / float((share**2).sum()) - 1, 1.0) if J else 1.0
    return Variances(tasks, workers, float((measured.of_worker**2).sum()), freedom)


def _cluster_variance(effect: Floats, cluster: Ints, n: int) -> float:
    """Return the variance of a sum over clusters, ``n`` of which have something to compare."""
    return float((np.bincount(cluster, effect, 1) ** 2).sum()) * n / max(n - 1, 1)


def _ends(measured: Measured, reach: float) -> tuple[float, float]:
    return max(measured.value - reach, measured.least), min(measured.value + reach, 1.0)


def difference_with_intervals(
    name: str, groups: tuple[AgreementEvidence, AgreementEvidence], level: float = 0.95
) -> TwoIntervals:
    """Return the difference of a coefficient between two groups of workers, with both intervals.

    The tasks of the groups have the same codes: effects are subtracted by task. The variances over
    the workers of the groups add up, and so do their degrees of freedom.
    """
    from scipy.special import stdtrit

    first, second = (group.coefficients[name] for group in groups)
    effect = np.concatenate([first.of_task, -second.of_task])
    task = np.concatenate([one.task for one in groups])
    n = len(np.unique(task[np.concatenate([one.shared for one in groups])]))
    tasks = _cluster_variance(effect, task, n)
    value = first.value - second.value
    narrow = float(stdtrit(max(n - 1, 1), (1 + level) / 2) * np.sqrt(tasks))
    wide = float("nan")
    if min(one.n_workers for one in groups) >= FEWEST_WORKERS:
        one, two = (
            variances_of(each, group) for each, group in zip((first, second), groups, strict=True)
        )
        both = (tasks, one.workers + two.workers, one.labels + two.labels)
        wide = max(narrow, _reach(Variances(*both, one.freedom + two.freedom), level))
    ends = (value - narrow, value + narrow, value - wide, value + wide)
    return TwoIntervals(value, *(float(np.clip(end, -2, 2)) for end in ends))
