r"""Likelihood of labels given the output of a classifier, and the posterior they imply.

For given class probabilities :math:`f(x_i)`, a label of worker :math:`j` on task :math:`i` has
probability :math:`\sum_k f_k(x_i)\, \theta_j[k, l]`. Its logarithm is concave in :math:`\theta`,
so confusion matrices can be estimated for any trained classifier.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.labels import CrowdLabels
from wisecrowd.core.task_prior import TaskPrior
from wisecrowd.engines.memory import in_memory
from wisecrowd.families.confusion import naive_bayes

Floats = NDArray[np.float64]


def fit_confusion(
    probas: Floats,
    labels: CrowdLabels,
    *,
    smoothing: float = 0.1,
    max_iter: int = 50,
    prior: Floats | None = None,
) -> Floats:
    r"""Return the (J, K, K) confusion matrices that maximise the likelihood of the labels.

    EM for :math:`\sum_e \log \sum_k f_k \theta[k, l_e]` plus a weak prior towards the diagonal,
    :math:`\mathrm{Dir}(1 + s K I + s)` for every row.

    Parameters
    ----------
    probas : (N, K)
        The classifier's output for each task.
    labels : CrowdLabels
    smoothing : float
        :math:`s`.
    max_iter : int
    prior : (K, K), optional
        Pseudo-counts of every matrix, instead of the smoothing.
    """
    n_workers, n_classes = labels.n_workers, labels.n_classes
    start = smoothing * (1 + n_classes * np.eye(n_classes)) if prior is None else prior
    cell = labels.worker.astype(np.int64) * n_classes + labels.label  # (E,) worker and label
    f = probas[labels.task] if labels.n_annotations else np.zeros((0, n_classes))
    weight = 1.0 if labels.weight is None else labels.weight[:, None]
    theta = _normalised(np.broadcast_to(start, (n_workers, n_classes, n_classes)))
    for _ in range(max_iter):
        rows = theta.transpose(0, 2, 1).reshape(-1, n_classes)[cell]  # (E, K)
        share = f * rows
        share *= weight / np.maximum(share.sum(axis=1, keepdims=True), 1e-300)
        counts = sum_rows(cell, share, n_workers * n_classes)
        by_label = counts.reshape(n_workers, n_classes, n_classes)  # (J, L, K)
        updated = _normalised(by_label.transpose(0, 2, 1) + start)
        change = np.abs(updated - theta).max(initial=0.0)
        theta = updated
        if change < 1e-6:
            break
    return theta


def _normalised(counts: Floats) -> Floats:
    return np.asarray(counts / counts.sum(axis=-1, keepdims=True))


def label_log_probas(log_probas: Floats, labels: CrowdLabels, log_confusion: Floats) -> Floats:
    """Return (E,) log-probabilities of labels, each given its task's features and its worker."""
    scores = log_probas[labels.task] + log_confusion[labels.worker, :, labels.label]
    top = scores.max(axis=1, keepdims=True, initial=-np.inf)
    return np.asarray(np.log(np.exp(scores - top).sum(axis=1)) + top[:, 0])


def forecast(log_probas: Floats, labels: CrowdLabels, confusion: Floats) -> Floats:
    r"""Return the (N, K) posterior :math:`\propto f_k \prod_j \theta_j[k, l_{ij}]`.

    Tasks without labels keep the classifier's output.
    """
    rows = np.arange(labels.n_tasks, dtype=np.int32)
    prior = TaskPrior(np.asarray(log_probas, dtype=np.float64), rows, given=True)
    return naive_bayes(in_memory(labels, prior), confusion, np.ones(labels.n_classes))


def softmax(scores: Floats) -> Floats:
    """Return (N, K) probabilities of log-scores."""
    shifted = np.exp(scores - scores.max(axis=1, keepdims=True))
    return np.asarray(shifted / shifted.sum(axis=1, keepdims=True))


def vote_scores(weight: Floats, labels: CrowdLabels) -> Floats:
    """Return (N, K) sums of ``weight[j, :, l]`` over the labels of each task."""
    rows = weight[labels.worker, :, labels.label]  # (E, K)
    return sum_rows(labels.task, rows, labels.n_tasks, labels.weight)


def sum_rows(
    index: NDArray[np.integer[Any]], rows: Floats, n: int, weight: Floats | None = None
) -> Floats:
    """Return (n, K) sums of the (E, K) rows with the same index, times their weights (E,)."""
    if weight is not None:
        rows = rows * weight[:, None]
    return np.stack([np.bincount(index, column, n) for column in rows.T], axis=1)
