r"""What the other workers of a task say of it: the posterior without one worker's own label.

.. math::
    q_i^{-j}(k) \propto \pi_k \prod_{j' \ne j} \theta_{j' k y_{ij'}}

A worker is judged by this and not by the full posterior, which its own label has pulled its way.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.labels import CrowdLabels
from wisecrowd.families.confusion import safe_log
from wisecrowd.kernels.posteriors import log_normalise

Floats = NDArray[np.float64]


class Judged(NamedTuple):
    """The labels of one worker on tasks that others have labelled too.

    Attributes
    ----------
    worker : int
        Code of the worker.
    rows : (n,) int
        Its annotations.
    label : (n,) int
    belief : (n, n_classes)
        Posterior of each task without the worker's label.
    """

    worker: int
    rows: NDArray[np.int64]
    label: NDArray[np.int32]
    belief: Floats


def fitted(labels: CrowdLabels, fit: Any) -> Any:
    """Return the given fit of these labels, or a Dawid-Skene fit if there is none."""
    if fit is not None:
        return fit
    from wisecrowd.aggregation.dawid_skene import DawidSkene

    return DawidSkene()._fit_without_checks(labels)


def judged_by_others(labels: CrowdLabels, fit: Any, min_labels: int) -> Iterator[Judged]:
    """Yield every worker with at least ``min_labels`` labels that others can be compared with.

    ``fit`` is a fitted method with confusion matrices and a class prior, of the same labels. Memory
    is that of the posteriors and of one worker's labels.
    """
    log_confusion, weight = safe_log(fit.confusion_), labels.weight
    scores = np.empty((labels.n_tasks, labels.n_classes))
    for k in range(labels.n_classes):
        value = log_confusion[labels.worker, k, labels.label]
        value = value if weight is None else value * weight
        scores[:, k] = np.bincount(labels.task, weights=value, minlength=labels.n_tasks)
    scores += safe_log(fit.class_prior_)
    indptr, order = labels.by_worker
    for j in np.flatnonzero(labels.labels_per_worker >= min_labels).tolist():
        rows = order[indptr[j] : indptr[j + 1]]
        rows = rows[labels.labels_per_task[labels.task[rows]] >= 2]
        if len(rows) < min_labels:
            continue
        label = labels.label[rows]
        own = log_confusion[j][:, label].T
        own = own if weight is None else own * weight[rows, None]
        yield Judged(j, rows, label, log_normalise(scores[labels.task[rows]] - own)[0])
