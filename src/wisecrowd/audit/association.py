r"""Permutation test of whether a worker's labels depend on the others' votes on the same task.

Let :math:`s_i` be the weighted votes (K,) of the other workers on task i, and :math:`\tilde s_i`
these minus their mean over the worker's tasks. The slope of the worker's one-hot labels on them is

.. math::
    t_j = \frac{T_j}{\sum_i \lVert \tilde s_i \rVert^2}, \qquad T_j = \sum_i \tilde s_i[y_{ij}]

If the labels are independent of the tasks, every assignment of labels to tasks is equally likely.
Over all permutations :math:`T_j` then has mean zero and the following variance, even if the other
workers depend on each other:

.. math::
    \frac{1}{n_j - 1} \sum_{l, l'} \Big(\sum_i \tilde s_i[l] \tilde s_i[l']\Big)
    \Big(n_{jl} 1[l = l'] - \frac{n_{jl} n_{jl'}}{n_j}\Big)
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.labels import CrowdLabels
from wisecrowd.core.memory_check import require_memory
from wisecrowd.families.moments.pair_moments import counted_annotations

Floats = NDArray[np.float64]


class Association(NamedTuple):
    """Dependence of each worker's labels on those of the others.

    Attributes
    ----------
    slope : (n_workers,)
        Slope of the one-hot labels on the votes of the others; 0 if undetermined.
    error : (n_workers,)
        Standard deviation of the slope if the labels were independent of the tasks. It is 0 for a
        worker who gives only one label, and infinite if undetermined.
    typical_error : (n_workers,)
        The same for a worker on the same tasks whose label frequencies are the crowd's.
    """

    slope: Floats
    error: Floats
    typical_error: Floats

    @property
    def z(self) -> Floats:
        """(n_workers,): the slope in standard deviations; 0 for a worker with only one label."""
        known = self.error > 0
        return np.where(known, self.slope / np.where(known, self.error, 1.0), 0.0)


def association(labels: CrowdLabels, vote_weight: Floats) -> Association:
    """Return the association of every worker with the votes of the others.

    Parameters
    ----------
    labels : CrowdLabels
    vote_weight : (n_workers,)
        Weight of each worker's votes.

    Examples
    --------
    Two workers always agree, and one always gives the same label.

    >>> labels = CrowdLabels.from_matrix([[0, 0, 0], [1, 1, 0], [0, 0, 0], [1, 1, 0]])
    >>> found = association(labels, np.array([1.0, 1.0, 0.0]))
    >>> found.slope.round(3), found.z.round(3)
    (array([1., 1., 0.]), array([1.732, 1.732, 0.   ]))
    """
    J, K = labels.n_workers, labels.n_classes
    task, worker, label, weight = counted_annotations(labels)
    require_memory(
        8 * (len(task) * (K + 2) + 2 * J * K * K),
        f"The association of {J} workers with the others would",
        "audit fewer classes, or a sample of the tasks",
    )
    votes = vote_weight[worker] * weight
    per_task = _sums(
        task.astype(np.int64) * K + label, weights=votes, minlength=labels.n_tasks * K
    ).reshape(-1, K)
    others = per_task[task]
    others[np.arange(len(task)), label] -= votes
    others -= others.mean(axis=1, keepdims=True)  # the number of votes does not depend on the class
    count = _sums(worker, weights=weight, minlength=J)
    safe = np.where(count > 0, count, 1.0)
    for k in range(K):
        mean = _sums(worker, weights=weight * others[:, k], minlength=J) / safe
        others[:, k] -= mean[worker]
    total = _sums(worker, weights=weight * others[np.arange(len(task)), label], minlength=J)
    scatter = _scatter(others, worker, weight, J)
    given = _sums(worker.astype(np.int64) * K + label, weights=weight, minlength=J * K)
    shares = given.reshape(J, K) / safe[:, None]
    overall = given.reshape(J, K).sum(axis=0)
    pooled = overall / max(overall.sum(), 1e-300)
    return _summary(total, scatter, count, shares, pooled)


def _summary(
    total: Floats, scatter: Floats, count: Floats, shares: Floats, pooled: Floats
) -> Association:
    size = np.einsum("jkk->j", scatter)
    # Rounding errors remain where votes do not vary at all.
    known = (count > 1) & (size > 1e-12 * count)
    size = np.where(known, size, 1.0)
    degrees = np.where(known, count - 1, 1.0)

    def error(frequencies: Floats) -> Floats:
        variance = np.einsum("jkk,jk->j", scatter, frequencies) - np.einsum(
            "jkl,jk,jl->j", scatter, frequencies, frequencies
        )
        variance = np.where(variance > 1e-12 * size, variance, 0.0) * count / degrees
        return np.where(known, np.sqrt(variance) / size, np.inf)

    slope = np.where(known, total / size, 0.0)
    return Association(slope, error(shares), error(np.broadcast_to(pooled, shares.shape)))


def _sums(codes: NDArray[np.integer[Any]], *, weights: Floats, minlength: int) -> Floats:
    """Return the sum of the weights of each code."""
    return np.asarray(np.bincount(codes, weights=weights, minlength=minlength), dtype=np.float64)


def _scatter(
    others: Floats, worker: NDArray[np.integer[Any]], weight: Floats, n_workers: int
) -> Floats:
    """(J, K, K) sums of the products of the centred votes; one (E,) temporary at a time."""
    K = others.shape[1]
    scatter = np.empty((n_workers, K, K))
    for k in range(K):
        weighted = weight * others[:, k]
        for m in range(k + 1):
            scatter[:, k, m] = scatter[:, m, k] = _sums(
                worker, weights=weighted * others[:, m], minlength=n_workers
            )
    return scatter
