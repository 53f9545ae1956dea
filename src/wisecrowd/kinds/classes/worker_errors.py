r"""Standard errors of worker accuracies, by one rule for all methods of classes.

A label that is right with probability :math:`r` says less about its worker than one whose class is
known. By Louis' formula, the :math:`n` labels of a worker with accuracy :math:`a` keep the share

.. math:: \kappa = 1 - \frac{\sum r (1 - r)}{n a (1 - a)}

of their information, so that :math:`a` has the variance

.. math:: \mathrm{se}^2 = \left(\frac{n \kappa}{a (1 - a)} + \frac{1}{s^2}\right)^{-1}

with :math:`s^2` the variance between workers, which is estimated from all of them.

References
----------
T. A. Louis (1982). Finding the observed information matrix when using the EM algorithm.
Journal of the Royal Statistical Society B 44(2), 226-233.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.types import Floats

LEAST_RATE, MOST_RATE = 0.02, 0.98  # limits of an accuracy in its own variance
LEAST_SPREAD, MOST_SPREAD = 0.05**2, 0.25**2  # limits of the variance between workers
N_ROUNDS = 200  # of the estimate of this variance
CHUNK = 1 << 16  # annotations processed at once


class WorkerEvidence(NamedTuple):
    """Sums over each worker's labels; those of parts of the labels add up.

    Attributes
    ----------
    total : (n_workers,)
        Weight of the labels.
    right, unsure : (n_workers,)
        Sums of r and of r (1 - r), with r the probability that a label is right.
    """

    total: Floats
    right: Floats
    unsure: Floats

    @property
    def mean_right(self) -> Floats:
        """(n_workers,): mean probability of a worker's own labels; 0 without labels."""
        return self.right / np.where(self.total > 0, self.total, 1.0)

    def scaled_to(self, total: Floats) -> WorkerEvidence:
        """Return the sums as if there were more labels like these, for streams of labels.

        Workers without labels here count as typical ones.
        """
        own = np.where(self.total > 0, self.total, 1.0)
        typical = max(float(self.total.sum()), 1.0)
        right, unsure = (
            total * np.where(self.total > 0, one / own, one.sum() / typical)
            for one in (self.right, self.unsure)
        )
        return WorkerEvidence(total, right, unsure)


def worker_evidence(labels: Any, probas: Any) -> WorkerEvidence:
    """Return the sums over the labels of each worker.

    Parameters
    ----------
    labels : CrowdLabels
    probas : (n_tasks, n_classes) posterior, array or sparse
    """
    J = labels.n_workers
    total, right, unsure = np.zeros(J), np.zeros(J), np.zeros(J)
    for start in range(0, labels.n_annotations, CHUNK):  # limits memory
        rows = slice(start, start + CHUNK)
        worker = labels.worker[rows]
        r = own_probabilities(probas, labels.task[rows], labels.label[rows])
        weight = None if labels.weight is None else labels.weight[rows]
        total += np.bincount(worker, weight, J)
        right += np.bincount(worker, r if weight is None else r * weight, J)
        r = r * (1 - r)
        unsure += np.bincount(worker, r if weight is None else r * weight, J)
    return WorkerEvidence(total, right, unsure)


def own_probabilities(probas: Any, task: NDArray[Any], label: NDArray[Any]) -> Floats:
    """Return the probability of each label under the posterior (n_tasks, n_classes) of its task."""
    if hasattr(probas, "tocsr"):
        return np.asarray(probas[task, label], dtype=np.float64).ravel()
    cell = task * np.int64(probas.shape[1]) + label  # faster than two indices
    return np.asarray(probas.ravel().take(cell), dtype=np.float64)


def accuracy_and_error(accuracy: Floats, evidence: WorkerEvidence) -> tuple[Floats, Floats]:
    """Return worker accuracies (n_workers,) and their standard errors.

    A worker without labels gets the mean of the others, and their spread as error.

    Examples
    --------
    >>> evidence = WorkerEvidence(np.array([100.0, 0.0]), np.array([80.0, 0.0]), np.zeros(2))
    >>> accuracy_and_error(np.array([0.8, 0.5]), evidence)
    (array([0.8, 0.8]), array([0.03949763, 0.25      ]))
    """
    total = evidence.total
    if not (total > 0).any():
        return accuracy, np.full(len(accuracy), np.sqrt(MOST_SPREAD))
    mean = float(np.average(accuracy, weights=total))
    accuracy = np.where(total > 0, accuracy, mean)
    rate = np.clip(accuracy, LEAST_RATE, MOST_RATE)
    binomial = rate * (1 - rate)
    known = 1 - evidence.unsure / (np.where(total > 0, total, 1.0) * binomial)
    information = total * np.clip(known, 0.0, 1.0) / binomial
    square = (accuracy - mean) ** 2
    spread = MOST_SPREAD
    if np.count_nonzero(total) > 1:
        spread = float(np.clip(np.average(square, weights=total), LEAST_SPREAD, MOST_SPREAD))
        for _ in range(N_ROUNDS):
            latent = np.average(square + 1 / (information + 1 / spread), weights=total)
            spread = float(np.clip(latent, LEAST_SPREAD, MOST_SPREAD))
    return accuracy, np.sqrt(1 / (information + 1 / spread))
