"""Mean: the weighted mean of each task's numbers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from wisecrowd.kinds.numbers.container import CrowdNumbers
from wisecrowd.kinds.numbers.methods.averages import TaskAverage
from wisecrowd.kinds.numbers.methods.base import task_means


@dataclass(eq=False, repr=False, kw_only=True)
class Mean(TaskAverage):
    r"""The weighted mean of the numbers of each task.

    .. math:: \hat z_i = \frac{\sum_e w_e y_e}{\sum_e w_e}, \qquad
              \operatorname{Var} \hat z_i = \frac{s^2}{\sum_e w_e}

    with :math:`s^2` the pooled variance of labels around the mean of their task.

    Use it when workers are about equally good, as a baseline. Cost: O(annotations).

    Parameters
    ----------
    scale : {"linear", "log"}
        With "log" the means are of the logarithms, so that the values are geometric means.

    Attributes
    ----------
    values_, variance_, low_, high_ : (n_tasks,)
        Mean, its variance (of the logarithm on a log scale) and 95% interval.
    bias_, noise_ : (n_workers,)
        Mean of the worker's deviations from the means, and root mean square around it.
    noise_variance_ : float
        :math:`s^2`; the variance of all labels if no task has two.
    level_, spread_ : float
        Mean and variance of all labels, for tasks without labels.

    Notes
    -----
    A task with a known number keeps it. There is no prior: ``task_prior`` is refused.

    References
    ----------
    C. F. Gauss (1809). Theoria motus corporum coelestium.

    Examples
    --------
    >>> Mean().fit((["t1", "t1", "t2"], ["ann", "bob", "ann"], [1.0, 2.0, 5.0])).values_
    array([1.5, 5. ])
    """

    def _averages(self, data: CrowdNumbers) -> NDArray[np.float64]:
        return task_means(data, data.weights)
