r"""Leave-one-out posterior: the posterior of a task without one worker's label.

.. math::
    q_i^{-j}(k) \propto \pi_k \prod_{j' \ne j} p(y_{ij'} \mid z_i = k)

Workers are judged by this posterior, because the full posterior depends on their own labels.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.labels import CrowdLabels
from wisecrowd.families.confusion import safe_log
from wisecrowd.inference.label_law import LabelLaw
from wisecrowd.kernels.posteriors import log_normalise

Floats = NDArray[np.float64]


class HeldOutWorker(NamedTuple):
    """Labels of one worker on tasks that others have labelled too.

    Attributes
    ----------
    worker : int
        Code of the worker.
    rows : (n,) int
                Positions of its annotations.
    label : (n,) int
    belief : (n, n_classes)
        Posterior of each task without the worker's label.
    """

    worker: int
    rows: NDArray[np.int64]
    label: NDArray[np.int32]
    belief: Floats


def leave_one_out_posteriors(
    labels: CrowdLabels, law: LabelLaw, min_labels: int
) -> Iterator[HeldOutWorker]:
    """Yield every worker with at least ``min_labels`` labels that others can be compared with.

    ``law`` is the label law of a fit of the same labels. Memory is needed for the posteriors and
    for one worker's labels.
    """
    weight, classes = labels.weight, np.arange(labels.n_classes)
    scores = np.empty((labels.n_tasks, labels.n_classes))
    for k in classes:
        value = law.log_prob(labels.label, k, labels.worker, labels.task)
        value = value if weight is None else value * weight
        scores[:, k] = np.bincount(labels.task, weights=value, minlength=labels.n_tasks)
    scores += safe_log(law.class_prior)
    indptr, order = labels.by_worker
    for j in np.flatnonzero(labels.labels_per_worker >= min_labels).tolist():
        rows = order[indptr[j] : indptr[j + 1]]
        rows = rows[labels.labels_per_task[labels.task[rows]] >= 2]
        if len(rows) < min_labels:
            continue
        label, task = labels.label[rows], labels.task[rows]
        own = law.log_prob(label[:, None], classes, j, task[:, None])
        own = own if weight is None else own * weight[rows, None]
        yield HeldOutWorker(j, rows, label, log_normalise(scores[task] - own)[0])
