"""Median: the weighted median of each task's numbers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from wisecrowd.core.types import Floats
from wisecrowd.kinds.numbers.container import CrowdNumbers
from wisecrowd.kinds.numbers.methods.averages import TaskAverage
from wisecrowd.kinds.numbers.methods.base import labels_by_task, task_medians


@dataclass(eq=False, repr=False, kw_only=True)
class Median(TaskAverage):
    r"""The weighted median of the numbers of each task.

    .. math::
        \hat z_i = \min \Big\{ y : \sum_{e \in i:\, y_e \le y} w_e \ge
        \tfrac12 \sum_{e \in i} w_e \Big\}

    If the cumulative weight is exactly half, the median is the mean of this number and the next.
    Its variance is that of a median of normal
    labels, :math:`\frac{\pi}{2} s^2 / \sum_e w_e`, without :math:`\pi / 2` for up to two labels.

    Use it when some labels are far off, such as typing errors, and workers are otherwise about
    equally good. Cost: O(annotations × log of the labels per task).

    Parameters
    ----------
    scale : {"linear", "log"}
        Medians are nearly the same on both scales; intervals are not.

    Attributes
    ----------
    values_, variance_, low_, high_ : (n_tasks,)
        Median, its variance (of the logarithm on a log scale) and 95% interval.
    bias_, noise_ : (n_workers,)
        Mean of the worker's deviations from the medians, and root mean square around it.
    noise_variance_ : float
        :math:`s^2`, the pooled mean square around the medians; far-off labels make it large.
    level_, spread_ : float
        Mean and variance of all labels, for tasks without labels.

    Notes
    -----
    A task with a known number keeps it. There is no prior: ``task_prior`` is refused.

    References
    ----------
    F. Y. Edgeworth (1887). On observations relating to several quantities. Hermathena 6, 279-285.

    Examples
    --------
    >>> labels = [1.0, 2.0, 90.0]
    >>> Median().fit((["t1", "t1", "t1"], ["ann", "bob", "cem"], labels)).values_
    array([2.])
    """

    def _averages(self, data: CrowdNumbers) -> Floats:
        return task_medians(data)

    def _share_factor(self, data: CrowdNumbers) -> Floats:
        return self._variance_factor(labels_by_task(data))

    def _variance_factor(self, n_labels: Floats) -> Floats:
        return np.where(n_labels > 2, np.pi / 2, 1.0)
