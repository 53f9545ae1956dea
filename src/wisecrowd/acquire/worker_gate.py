r"""The gate: workers whom the others show to be poor, each judged without its own labels.

.. math::
    w = 1 - \frac{H(q_i^{-j})}{\log K}, \quad r_j = \sum w\, q_i^{-j}(y_{ij}), \quad n_j = \sum w,
    \quad m_j = \frac{6 + r_j}{8 + n_j}, \quad
    u_j = m_j + 2 \sqrt{\frac{m_j (1 - m_j)}{9 + n_j}}

over the labels of worker j on tasks that others labelled too. A worker is surely poor if
:math:`u_j < (\operatorname{median} m + 1/K) / 2`. Fitted accuracies are not used: a busy worker is
the sole witness of its own early tasks, and a fit then overrates it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wisecrowd.acquire.shrunken_models import COIN, STRETCH, CrowdBelief, entropy
from wisecrowd.core.labels import CrowdLabels
from wisecrowd.kernels.posteriors import log_normalise

Floats = NDArray[np.float64]

POOR = 0.05  # factor of the score of a surely poor worker
Z = 2.0  # standard errors of the upper end


class WorkerGate(NamedTuple):
    """How others judge each worker.

    Attributes
    ----------
    mean : (n_workers,)
        Shrunken share of labels on which the others agree.
    upper : (n_workers,)
        Upper end of an interval of two standard errors.
    judged : (n_workers,)
        Weight of the labels that could be judged.
    poor : (n_workers,) bool
        Whether the upper end is below the bar.
    """

    mean: Floats
    upper: Floats
    judged: Floats
    poor: NDArray[np.bool_]

    @property
    def factor(self) -> Floats:
        """(n_workers,) factor of the score of a query to each worker."""
        return np.where(self.poor, POOR, 1.0)


def worker_gate(
    labels: CrowdLabels, belief: CrowdBelief, known: NDArray[np.bool_] | None = None
) -> WorkerGate:
    """Judge every worker by the others.

    Parameters
    ----------
    labels : CrowdLabels
    belief : CrowdBelief
        A fit of the same labels.
    known : (n_tasks,) bool, optional
        Tasks with gold: a single label on them can be judged too.
    """
    K, J = labels.n_classes, labels.n_workers
    right, judged = np.zeros(J), np.zeros(J)
    shared = labels.labels_per_task >= 2
    if known is not None:
        shared = shared | known
    rows = np.flatnonzero(shared[labels.task]) if K > 1 else np.empty(0, np.int64)
    size = max(1, STRETCH // K)
    for first in range(0, len(rows), size):
        some = rows[first : first + size]
        q, weight = _without_own(labels, belief, some)
        worker = labels.worker[some]
        agreed = weight * q[np.arange(len(some)), labels.label[some]]
        right += np.bincount(worker, agreed, J)
        judged += np.bincount(worker, weight, J)
    mean = (COIN.a + right) / (COIN.a + COIN.b + judged)
    upper = mean + Z * np.sqrt(mean * (1 - mean) / (COIN.a + COIN.b + 1 + judged))
    seen = mean[judged > 0]
    bar = (np.median(seen) + 1 / K) / 2 if len(seen) else 0.0
    return WorkerGate(mean, upper, judged, upper < bar)


def _without_own(
    labels: CrowdLabels, belief: CrowdBelief, rows: NDArray[Any]
) -> tuple[Floats, Floats]:
    """Return the posterior (n, K) of each annotation's task without it, and its information."""
    task, worker, label = labels.task[rows], labels.worker[rows], labels.label[rows]
    K = labels.n_classes
    own = belief.law.log_prob(label[:, None], np.arange(K), worker[:, None], task[:, None])
    if labels.weight is not None:
        own = own * labels.weight[rows, None]
    q = log_normalise(np.log(np.maximum(belief.rows(task), 1e-300)) - own)[0]
    return q, np.clip(1 - entropy(q) / np.log(K), 0.0, 1.0)
