"""CATD: weights from confidence limits of the workers' noise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from wisecrowd.core.parameter_checks import Limits, Number
from wisecrowd.core.types import Floats
from wisecrowd.kinds.numbers.container import CrowdNumbers
from wisecrowd.kinds.numbers.methods.averages import Distances, WeightedMeans
from wisecrowd.kinds.numbers.methods.base import task_medians


@dataclass(eq=False, repr=False, kw_only=True)
class CATD(WeightedMeans):
    r"""Weighted means; a worker's weight is a lower confidence limit of its precision.

    .. math::
        W_j = \frac{\chi^2_{\alpha / 2}(n_j)}{\sum_{e \in j} w_e (y_e - \hat z_i)^2}, \qquad
        \hat z_i = \frac{\sum_e w_e W_j y_e}{\sum_e w_e W_j}

    with :math:`\chi^2_{\alpha / 2}(n_j)` the lower quantile at :math:`n_j` degrees of freedom, the
    labels of the worker on tasks that have others. A worker with few labels gets a small weight.

    Use it when most workers have few labels, some of them are far off, and nobody has a bias. Cost
    per iteration: O(annotations).

    Parameters
    ----------
    alpha : float
        The confidence limits have the level :math:`1 - \alpha`.
    max_iter, tol : int, float
        Maximum number of iterations; largest move of a value, in standard deviations of the
        labels, that counts as converged.
    scale : {"linear", "log"}
        With "log" the method works on the logarithms of the labels.

    Attributes
    ----------
    values_, variance_, low_, high_ : (n_tasks,)
        Weighted mean, its variance at the pooled noise, and 95% interval.
    worker_weight_ : (n_workers,)
        :math:`W_j` over its sum.
    bias_, noise_ : (n_workers,)
        Mean of the worker's deviations from the values, and root mean square around it.
    noise_variance_, level_, spread_, typical_weight_ : float
        Pooled variance around the values; mean and variance of all labels; median weight.

    Notes
    -----
    The start is the median of each task. Sums of squares are at least 1e-9 of their mean. Tasks
    with one label are left out of them, because their value is that label. There is no prior:
    ``task_prior`` is refused.

    References
    ----------
    Q. Li, Y. Li, J. Gao, L. Su, B. Zhao, M. Demirbas, W. Fan and J. Han (2014). A confidence-aware
    approach for truth discovery on long-tail data. PVLDB 8, 425-436.

    Examples
    --------
    >>> task = ["t1"] * 3 + ["t2"] * 3
    >>> labels = [1.0, 1.1, 4.0, 2.0, 2.1, 0.0]
    >>> model = CATD().fit((task, ["ann", "bob", "cem"] * 2, labels))
    >>> bool(model.worker_weight_[2] < model.worker_weight_[0])
    True
    """

    alpha: float = 0.05

    limits: ClassVar[Limits] = {"alpha": Number(1e-06, 1 - 1e-06)}

    def _start(self, data: CrowdNumbers) -> Floats:
        return task_medians(data)

    def _weights(self, distances: Distances) -> Floats:
        from scipy.special import chdtri

        used = distances.n_labels > 0
        # chdtri has the upper tail.
        limit = chdtri(np.where(used, distances.n_labels, 1.0), 1 - self.alpha / 2)
        return np.where(used, np.maximum(limit, 1e-300) / distances.floored(), 1.0)
