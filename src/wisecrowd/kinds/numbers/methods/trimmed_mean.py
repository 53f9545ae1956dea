"""TrimmedMean: the mean of each task's numbers without the smallest and the largest."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from wisecrowd.core.parameter_checks import Limits, Number
from wisecrowd.core.types import Floats
from wisecrowd.kinds.numbers.container import CrowdNumbers
from wisecrowd.kinds.numbers.methods.averages import TaskAverage
from wisecrowd.kinds.numbers.methods.base import labels_by_task
from wisecrowd.kinds.numbers.methods.facts import overall_mean

WHOLE = 1e-9  # tolerance of a number of labels that counts as whole


@dataclass(eq=False, repr=False, kw_only=True)
class TrimmedMean(TaskAverage):
    r"""The mean of a task's numbers without a share of the smallest and of the largest.

    .. math:: \hat z_i = \frac{\sum_e r_e y_e}{\sum_e r_e}, \qquad
              \sum_e r_e = W - 2 \lfloor \text{share} \cdot W \rfloor

    The weights :math:`r_e` are those of the task's labels, with total :math:`W`, without
    :math:`\lfloor \text{share} \cdot W \rfloor` of the smallest and of the largest numbers. The
    variance is :math:`s^2` over the weight that is left.

    Use it when a few labels are far off, and the median wastes too many of the others. Cost:
    O(annotations × log annotations).

    Parameters
    ----------
    share : float
        Share of the labels that is left out at each end, at most .49; 0 is the mean.
    scale : {"linear", "log"}
        With "log" the means are of the logarithms.

    Attributes
    ----------
    values_, variance_, low_, high_ : (n_tasks,)
        Trimmed mean, its variance (of the logarithm on a log scale) and 95% interval.
    bias_, noise_ : (n_workers,)
        Mean of the worker's deviations from these means, and root mean square around it.
    noise_variance_ : float
        :math:`s^2`, the pooled variance of all labels around their task's trimmed mean.
    level_, spread_ : float
        Mean and variance of all labels, for tasks without labels.

    Notes
    -----
    A task with a known number keeps it. There is no prior: ``task_prior`` is refused.

    References
    ----------
    J. W. Tukey and D. H. McLaughlin (1963). Less vulnerable confidence and significance procedures
    for location based on a single sample. Sankhya A 25, 331-352.

    Examples
    --------
    >>> labels = [1.0, 2.0, 3.0, 4.0, 90.0]
    >>> TrimmedMean().fit((["t"] * 5, list("abcde"), labels)).values_
    array([3.])
    """

    share: float = 0.2

    limits: ClassVar[Limits] = {"share": Number(0.0, 0.49)}

    def _averages(self, data: CrowdNumbers) -> Floats:
        kept, center = self._shares(data), overall_mean(data)
        sums = np.bincount(data.task, kept * (data.value - center), data.n_tasks)
        inside = np.bincount(data.task, kept, data.n_tasks)
        has = inside > 0
        return np.where(has, center + sums / np.where(has, inside, 1.0), np.nan)

    def _shares(self, data: CrowdNumbers) -> Floats:
        """Return the part (E,) of each label between the two ends of its task."""
        order = np.lexsort((data.value, data.task))
        task, weight = data.task[order], data.weights[order]
        total = labels_by_task(data)
        left_out = self._left_out(total)
        running = np.cumsum(weight)
        first = data.indptr[:-1][task]  # tasks keep their places in the order
        end = running - (running[first] - weight[first])
        kept = np.minimum(end, (total - left_out)[task]) - np.maximum(end - weight, left_out[task])
        found = np.empty(len(kept))
        found[order] = np.maximum(kept, 0.0)
        return found

    def _variance_factor(self, n_labels: Floats) -> Floats:
        return n_labels / (n_labels - 2 * self._left_out(n_labels))

    def _left_out(self, total: Floats) -> Floats:
        return np.floor(self.share * total + WHOLE)
