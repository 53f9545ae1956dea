"""NumericCRH: weights from the workers' shares of all squared distances."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from wisecrowd.core.types import Floats
from wisecrowd.kinds.numbers.container import CrowdNumbers
from wisecrowd.kinds.numbers.methods.averages import Distances, WeightedMeans
from wisecrowd.kinds.numbers.methods.base import task_means
from wisecrowd.kinds.numbers.methods.facts import least_variance

LEAST_WEIGHT = 1e-9  # of a worker with all of the distance, such as the only one


@dataclass(eq=False, repr=False, kw_only=True)
class NumericCRH(WeightedMeans):
    r"""Weighted means; a worker's weight falls with its share of all squared distances.

    .. math::
        d_j = \frac{1}{n_j} \sum_{e \in j} \frac{w_e (y_e - \hat z_i)^2}{s_i}, \qquad
        W_j = -\log \frac{d_j}{\sum_k d_k}, \qquad
        \hat z_i = \frac{\sum_e w_e W_j y_e}{\sum_e w_e W_j}

    with :math:`s_i` the standard deviation of the task's labels, and :math:`n_j` the labels of the
    worker on tasks that have others.

    Use it when workers differ in care and have no bias, and weights should not differ by much.
    Cost per iteration: O(annotations).

    Parameters
    ----------
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
    The paper does not divide by :math:`n_j`. Workers with few labels then look good, and on real
    crowds the result can be worse than the mean. Tasks with one label are left out of the
    distances, because their value is that label. There is no prior: ``task_prior`` is refused.

    References
    ----------
    Q. Li, Y. Li, J. Gao, B. Zhao, W. Fan and J. Han (2014). Resolving conflicts in heterogeneous
    data by truth discovery and source reliability estimation. SIGMOD, 1187-1198.

    Examples
    --------
    >>> task = ["t1"] * 3 + ["t2"] * 3
    >>> labels = [1.0, 1.1, 4.0, 2.0, 2.1, 0.0]
    >>> model = NumericCRH().fit((task, ["ann", "bob", "cem"] * 2, labels))
    >>> bool(model.worker_weight_[2] < model.worker_weight_[0])
    True
    """

    def _units(self, data: CrowdNumbers) -> Floats:
        mean, weight = task_means(data, data.weights), data.weights
        squares = weight * (data.value - mean[data.task]) ** 2
        total = np.bincount(data.task, weight, data.n_tasks)
        variance = np.bincount(data.task, squares, data.n_tasks) / np.where(total > 0, total, 1.0)
        return np.sqrt(np.maximum(variance, least_variance(data)))

    def _weights(self, distances: Distances) -> Floats:
        used = distances.n_labels > 0
        mean = distances.floored() / np.where(used, distances.n_labels, 1.0)
        share = np.where(used, mean, 0.0) / max(float(mean[used].sum()), 1e-300)
        weight = -np.log(np.where(used, np.maximum(share, 1e-300), 1.0))
        return np.where(used, np.maximum(weight, LEAST_WEIGHT), 1.0)
