"""Worker accuracies and their standard errors, from confusion matrices."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.labels import CrowdLabels
from wisecrowd.engines.answer_parts import AnswerParts

Floats = NDArray[np.float64]
TINY = 1e-300  # keeps divisors above zero
CHUNK = 1 << 16  # annotations processed at once


def accuracy_of(confusion: Floats, class_prior: Floats, per_class: Floats) -> tuple[Floats, Floats]:
    r"""Return the worker accuracy :math:`\sum_k \pi_k \theta_{jkk}` and its standard error.

    Delta method: the variance of :math:`\theta_{jkk}` is :math:`\theta (1 - \theta) / (n_{jk} +
    1)`, with :math:`n_{jk}` the expected number of labels on class ``k``; it is at most 1/4 where
    there are none.
    """
    diagonal = np.diagonal(confusion, axis1=1, axis2=2)  # (J, K)
    spread = np.maximum(diagonal * (1 - diagonal), 1 / (per_class + 4))  # never claim certainty
    variance = np.minimum(spread / (per_class + 1), 0.25)
    # Not a matrix product: BLAS would start threads for it.
    accuracy = np.einsum("jk,k->j", diagonal, class_prior)
    return accuracy, np.sqrt(np.einsum("jk,k->j", variance, class_prior**2))


def accuracy_fitted(
    labels: CrowdLabels,
    probas: Floats | AnswerParts,
    confusion: Floats,
    class_prior: Floats,
    counts: Floats,
) -> tuple[Floats, Floats]:
    r"""Return the worker accuracy and its standard error, for latent classes.

    A label that is right with probability :math:`r` is less informative about its worker than one
    whose class is known. By Louis' formula for one accuracy :math:`a` per worker, ``n`` labels keep
    the share

    .. math:: 1 - \frac{1}{n} \sum \frac{r (1 - r)}{a (1 - a)}

    of their information; the rest is lost to the latent classes. The variance also includes the
    squared shrinkage bias: the shift of the accuracy that the prior causes.

    Parameters
    ----------
    labels : CrowdLabels
    probas : (n_tasks, n_classes) posterior, or the answers of a pack
    confusion : (n_workers, n_classes, n_classes)
    class_prior : (n_classes,)
    counts : (n_workers, n_classes, n_classes)
        Expected labels of each worker, true class second.

    References
    ----------
    T. A. Louis (1982). Finding the observed information matrix when using the EM algorithm.
    Journal of the Royal Statistical Society B 44(2), 226-233.
    """
    per_class = counts.sum(axis=2)
    total = np.maximum(per_class.sum(axis=1), TINY)
    right = np.einsum("jkk->j", counts) / total
    expected = (per_class * np.diagonal(confusion, axis1=1, axis2=2)).sum(axis=1) / total
    spread = np.maximum(expected * (1 - expected), TINY)
    unsure = (
        probas.sums.unsure if isinstance(probas, AnswerParts) else _unsure_labels(labels, probas)
    )
    unsure = unsure / total
    known = np.clip(1 - unsure / spread, 0.0, 1.0)
    accuracy, error = accuracy_of(confusion, class_prior, per_class * known[:, None])
    return accuracy, np.hypot(error, right - expected)


def _unsure_labels(labels: CrowdLabels, probas: Floats) -> Floats:
    """Return the sum of r (1 - r) over the labels of each worker; r is the chance of being right.

    Works in chunks to limit memory.
    """
    found, cells = np.zeros(labels.n_workers), probas.ravel()
    for start in range(0, labels.n_annotations, CHUNK):
        rows = slice(start, start + CHUNK)
        r = cells.take(labels.task[rows] * np.int64(labels.n_classes) + labels.label[rows])
        r *= 1 - r
        if labels.weight is not None:
            r *= labels.weight[rows]
        found += np.bincount(labels.worker[rows], r, labels.n_workers)
    return found
