r"""Calibration of a learner: an exponent of the classifier, and one of a task's labels.

The posterior of a task is :math:`f_k(x_i) \prod_j \theta_j[k, l_{ij}]`. A network is too sure, or
not sure enough, and the labels of one task are not independent given its class: a difficult task
misleads several workers. The calibrated posterior is

.. math::
    q_i(k) \propto f_k(x_i)^b \, \Bigl( \prod_j \theta_j[k, l_{ij}] \Bigr)^{\beta_i}, \qquad
    \beta_i = \frac{1}{1 + \rho (n_i - 1)},

and that of a task without labels is :math:`f_k(x_i)^a`. Held-out tasks choose the three numbers
without gold: each of their labels is predicted from the features and the other labels of its task,
for :math:`a` from the features alone. Workers are judged by counts on the other held-out tasks,
because confusion matrices that the network was trained with are too optimistic. Of the values
within a standard error of the best, the exponent nearest 1 is taken, and the largest dependence.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.types import Floats
from wisecrowd.kinds.classes.container import CrowdLabels
from wisecrowd.kinds.classes.families.confusion import TINY, safe_log
from wisecrowd.learning.training.label_model import softmax, sum_rows

EXPONENTS = np.array(sorted(np.exp2(np.arange(-8, 13) / 4), key=lambda a: abs(np.log(a))))
DEPENDENCES = (0.0, 0.1, 0.3, 1.0, 3.0, 10.0)
USUAL = 0.1  # dependence that is assumed where no held-out labels choose it
POPULATION = 10.0  # labels that the confusion matrix of all workers counts for in that of one
MOST_LABELS = 5000  # held-out labels to look at
SAME = 1e-9  # relative difference of likelihoods that is rounding


class Calibration(NamedTuple):
    """Exponents *a* and *b* of the classifier's output, and dependence *ρ* of a task's labels."""

    alone: float = 1.0
    beside_labels: float = 1.0
    dependence: float = USUAL

    def apply(self, posterior: Floats, log_prior: Floats, labels: CrowdLabels) -> Floats:
        """Return the (n, K) calibrated posterior.

        Parameters
        ----------
        posterior : (n, K)
            Posterior of a method, from features and labels.
        log_prior : (n, K)
            Its part that comes from the features; the rest is the evidence of the labels.
        labels : CrowdLabels
        """
        prior = np.maximum(log_prior, np.log(TINY))
        evidence = safe_log(posterior) - prior
        labelled = (labels.labels_per_task > 0)[:, None]
        exponent = np.where(labelled, self.beside_labels, self.alone)
        return softmax(exponent * prior + _share(labels, self.dependence) * evidence)


def _share(labels: CrowdLabels, dependence: float) -> Floats:
    """Return (n, 1): the exponent of the labels of each task."""
    count = np.bincount(labels.task, labels.weight, labels.n_tasks)
    return np.asarray(1 / (1 + dependence * np.maximum(count - 1, 0)))[:, None]


def calibration_by_classes(log_probas: Floats, codes: NDArray[Any]) -> Calibration:
    """Return the calibration under which known classes (n,) are most probable.

    Examples
    --------
    >>> too_sure = np.log([[0.99, 0.01]] * 40)
    >>> calibration_by_classes(too_sure, np.repeat([0, 1], [30, 10])).alone < 0.5
    True
    """
    rows = np.arange(len(codes))
    exponent, _ = _best(lambda a: safe_log(softmax(a * log_probas))[rows, codes])
    return Calibration(exponent, exponent)


class HeldOut(NamedTuple):
    """Calibration by held-out labels, and what the features gain per label in log-likelihood.

    Without information in the features, as if all tasks had their mean output, the gain is zero.
    """

    calibration: Calibration
    gain: float
    error: float


def judge_by_labels(log_probas: Floats, labels: CrowdLabels, confusion: Floats) -> HeldOut | None:
    """Return the calibration under which held-out labels are most likely, and their gain.

    Parameters
    ----------
    log_probas : (n, K)
        The classifier's output on held-out tasks.
    labels : CrowdLabels
        Labels of these tasks.
    confusion : (J, K, K)
        The method's confusion matrices, learned without these tasks.
    """
    if labels.n_annotations > MOST_LABELS:
        step = -(-labels.n_annotations // MOST_LABELS)
        labels, log_probas = labels[np.arange(0, labels.n_tasks, step)], log_probas[::step]
    if not labels.n_annotations:
        return None
    judge = _Judge(log_probas, labels, confusion)
    candidates = DEPENDENCES if labels.labels_per_task.max() > 1 else (USUAL,)
    found = [(rho, *_best(partial(judge, dependence=rho))) for rho in candidates]
    best = max((values for _, _, values in found), key=np.sum)
    rho, beside, _ = next(each for each in reversed(found) if _as_good(each[2], best))
    rows = judge.rows(beside, rho)
    alone, values = _best(lambda a: judge.from_features(softmax(a * log_probas), rows))
    mean = softmax(alone * log_probas).mean(axis=0, keepdims=True)
    gain = values - judge.from_features(np.broadcast_to(mean, log_probas.shape), rows)
    total = judge.weight.sum()
    error = float(gain.std() * np.sqrt(len(gain)) / total)
    return HeldOut(Calibration(alone, beside, rho), float(gain.sum() / total), error)


class _Judge:
    """Log-likelihood of held-out labels, each given the features and its task's other labels."""

    def __init__(self, log_probas: Floats, labels: CrowdLabels, confusion: Floats) -> None:
        self.f, self.labels = log_probas, labels
        self.own = safe_log(confusion[labels.worker, :, labels.label])  # (E, K)
        self.weight = labels.weights
        self.evidence = self._sum(labels.task, self.own, labels.n_tasks)
        cells = labels.worker.astype(np.int64) * labels.n_classes + labels.label
        known, self.cell = np.unique(cells, return_inverse=True)
        self.n_cells = len(known)

    def _sum(self, index: NDArray[Any], rows: Floats, n: int) -> Floats:
        return sum_rows(index, rows, n, self.weight)

    def __call__(self, exponent: float, dependence: float) -> Floats:
        """Return (n,) log-likelihoods of the labels of each task."""
        task = self.labels.task
        share = _share(self.labels, dependence)
        scores = exponent * self.f + share * self.evidence
        others = softmax(scores[task] - (share[task] * self.weight[:, None]) * self.own)
        rows = self._rows(softmax(scores)[task])
        each = self.weight * safe_log((others * rows).sum(axis=1))
        return np.asarray(np.bincount(task, each, self.labels.n_tasks), dtype=np.float64)

    def rows(self, exponent: float, dependence: float) -> Floats:
        """Return (E, K): the worker's probability of each label, by the posterior of the others."""
        scores = exponent * self.f + _share(self.labels, dependence) * self.evidence
        return self._rows(softmax(scores)[self.labels.task])

    def from_features(self, probas: Floats, rows: Floats) -> Floats:
        """Return (n,) log-likelihoods of each task's labels, each given class probabilities."""
        each = self.weight * safe_log((probas[self.labels.task] * rows).sum(axis=1))
        per_task = np.bincount(self.labels.task, each, self.labels.n_tasks)
        return np.asarray(per_task, dtype=np.float64)

    def _rows(self, q: Floats) -> Floats:
        """Return (E, K): the worker's probability of each label, counted without this label."""
        labels, n_classes = self.labels, self.labels.n_classes
        everybody = self._sum(labels.label, q, n_classes).T + np.eye(n_classes) + 0.1
        everybody /= everybody.sum(axis=1, keepdims=True)
        own = q * self.weight[:, None]
        right = self._sum(self.cell, q, self.n_cells)[self.cell] - own
        total = self._sum(labels.worker, q, labels.n_workers)[labels.worker] - own
        expected = POPULATION * everybody[:, labels.label].T
        return np.asarray((np.maximum(right, 0) + expected) / (np.maximum(total, 0) + POPULATION))


def _best(likelihood: Callable[[float], Floats]) -> tuple[float, Floats]:
    """Return the exponent nearest 1 within a standard error of the best, and its likelihoods."""
    found = [likelihood(float(a)) for a in EXPONENTS]
    best = max(found, key=np.sum)
    for a, each in zip(EXPONENTS, found, strict=True):
        if _as_good(each, best):
            return float(a), each
    return 1.0, found[0]


def _as_good(each: Floats, best: Floats) -> bool:
    """Return whether log-likelihoods (n,) are within a standard error of the best."""
    lost = best - each
    error = float(lost.std() * np.sqrt(len(lost)))
    return bool(lost.sum() <= error + SAME * abs(best.sum()))
