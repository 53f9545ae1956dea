"""Comparison of end-to-end methods by held-out labels, without gold."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.features import as_features, as_targets, is_dataset
from wisecrowd.core.labels import CrowdLabels
from wisecrowd.families.confusion import safe_log
from wisecrowd.learning.training.crowd_classifier import CrowdClassifier
from wisecrowd.learning.training.label_model import fit_confusion, label_log_probas

Floats = NDArray[np.float64]


def held_out_likelihood(
    method: CrowdClassifier, X: Any, labels: CrowdLabels, *, share: float = 0.2, seed: int = 0
) -> float:
    """Return the mean log-likelihood of labels on held-out tasks.

    The score is comparable between methods: it ignores a method's own model of the workers.
    Confusion matrices are estimated from the classifier's output on its training tasks, and
    classifier and matrices give the likelihood of the held-out labels.

    Parameters
    ----------
    method : CrowdClassifier
        Unfitted method, which this function fits.
    X : array
    labels : CrowdLabels
        Task ``i`` is row ``i`` of ``X``, as ``as_targets`` gives it.
    share : float
        Share of the labelled tasks to hold out.
    seed : int

    Examples
    --------
    >>> from wisecrowd.learning import Raykar
    >>> rng = np.random.default_rng(0)
    >>> X = np.repeat(np.eye(2), 30, axis=0) + 0.1 * rng.normal(size=(60, 2))
    >>> votes = as_targets(np.repeat([[0, 0, 1], [1, 1, 1]], 30, axis=0), 60)
    >>> held_out_likelihood(Raykar(), X, votes) > -0.69  # better than a coin
    True
    """
    if is_dataset(X):
        raise TypeError("Held-out tasks are selected by rows: give an array of features.")
    labelled = np.flatnonzero(labels.labels_per_task > 0)
    order = np.random.default_rng(seed).permutation(labelled)
    n_test = min(max(1, int(share * len(order))), len(order) - 1)
    test, train = np.sort(order[:n_test]), np.sort(order[n_test:])
    seen, unseen = labels[train], labels[test]
    method.fit(X[train], seen, tasks=seen.tasks)
    known = np.exp(method._log_probas(as_features(X[train])))
    confusion = fit_confusion(known, seen)
    values = label_log_probas(method._log_probas(as_features(X[test])), unseen, safe_log(confusion))
    return float(np.average(values, weights=unseen.weight))


def aligned(X: Any, labels: Any, tasks: Any) -> tuple[Any, CrowdLabels]:
    """Return features, and labels whose task ``i`` is row ``i``."""
    features = as_features(X)
    return features, as_targets(labels, len(features), tasks)
