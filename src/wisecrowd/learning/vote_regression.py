"""VoteRegression: logistic regression on vote shares, without torch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from wisecrowd.core.parameter_checks import Limits, Number, is_auto
from wisecrowd.core.saved_attributes import NUMBER, Saved, SavedArray
from wisecrowd.core.types import Floats
from wisecrowd.learning.base import FlatLearner
from wisecrowd.learning.training.crowd_classifier import CrowdClassifier, Learned, Training
from wisecrowd.learning.training.label_model import (
    Standardised,
    fit_confusion,
    log_softmax,
    soft_votes,
    solve_logistic,
)

PENALTIES = (1000.0, 300.0, 100.0, 30.0, 10.0, 3.0, 1.0)  # tried with l2="auto"
N_FOLDS = 5
ALL_FOLDS = 2000  # tasks; above, one fold chooses the penalty
ROUGH = 1e-4  # tolerance of the fits that only choose the penalty


@dataclass(eq=False, repr=False, kw_only=True)
class VoteRegression(FlatLearner, CrowdClassifier):
    r"""Logistic regression on the vote shares of each task; needs no torch.

    .. math::
        \max_{W, b} \sum_i \sum_k s_i(k) \log f_k(x_i) - \frac{\lambda}{2} \|W\|^2, \qquad
        f(x) = \mathrm{softmax}(W x + b)

    :math:`s_i(k)` is the share of class :math:`k` among the labels of task :math:`i`. Workers count
    alike while the classifier is fitted. Their confusion matrices are estimated afterwards, from
    its output. Features are standardised; rows of ``X`` that are not vectors are flattened.

    Use it when you need a baseline: it assumes nothing about workers, and a method that does not
    predict held-out labels better adds nothing. Cost: O(tasks × features × min(tasks, features))
    once, and O(tasks × min(tasks, features) × classes) per step of L-BFGS.

    Parameters
    ----------
    l2 : "auto" or float
        :math:`\lambda`, for weights of standardised features; the intercept is not penalised.
        "auto" selects the value with the highest likelihood of held-out votes, by five folds of
        the tasks, or one of them above 2000 tasks.
    random_state : int
        Seed of the folds.

    Attributes
    ----------
    l2_ : float
        Penalty of the fit.
    coef_, intercept_ : (n_classes, n_features), (n_classes,)
        Weights and intercepts for the features as given.
    confusion_ : (n_workers, n_classes, n_classes)
        Estimated from the classifier's output, which is as uncertain as the votes. Matrices are
        therefore closer to the identity than those of a sharper classifier.
    history_ : tuple of dict
        Mean log-likelihood of held-out votes for every penalty tried.

    References
    ----------
    Peterson, Battleday, Griffiths and Russakovsky (2019). Human uncertainty makes classification
    more robust. ICCV.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = np.repeat(np.eye(2), 30, axis=0) + 0.1 * rng.normal(size=(60, 2))
    >>> votes = np.repeat([[0, 0, 1], [1, 1, 1]], 30, axis=0)
    >>> model = VoteRegression().fit(X, votes)
    >>> model.predict(np.eye(2)), bool(model.predict_proba(np.eye(2))[0, 0] < 0.9)
    (array([0, 1]), True)
    """

    l2: Any = "auto"

    saves: ClassVar[dict[str, Saved]] = {
        "l2_": NUMBER,
        "coef_": SavedArray("K inputs"),
        "intercept_": SavedArray("K"),
    }

    limits: ClassVar[Limits] = {"l2": Number(0.0, auto=True)}

    def _fit(self, training: Training) -> Learned:
        self._refuse_to_resume(training)
        X = self._as_matrix(training.X)
        standard = Standardised.of(X)
        rows = np.flatnonzero((training.labels.labels_per_task > 0) | (training.gold >= 0))
        design, back = _rotated(standard.X[rows])
        targets = soft_votes(training)[rows]
        scores = {} if not is_auto(self.l2) else held_out_votes(design, targets, self.random_state)
        l2 = max(scores, key=scores.__getitem__) if scores else float(self.l2)
        start = np.zeros((targets.shape[1], design.shape[1]))
        weights = solve_logistic(design, targets, l2, start) @ back
        coef, intercept = standard.as_given(weights)
        log_probas = log_softmax(X @ coef.T + intercept)
        return Learned(
            log_probas,
            confusion=fit_confusion(np.exp(log_probas), training.labels),
            history=tuple(
                {"l2": penalty, "held_out_log_likelihood": x} for penalty, x in scores.items()
            ),
            findings=self._unused(training),
            extra={"l2": l2, "coef": coef, "intercept": intercept},
        )

    def _log_probas(self, X: Any) -> Floats:
        flat = self._new_matrix(X)
        return log_softmax(flat @ self.coef_.T + self.intercept_)


def held_out_votes(X: Floats, targets: Floats, random_state: int | None) -> dict[float, float]:
    """Return the mean log-likelihood of held-out vote shares for every penalty.

    Parameters
    ----------
    X : (N, d)
        Features with a last column of ones.
    targets : (N, K)
    random_state : int
    """
    n = len(X)
    fold = np.random.default_rng(random_state).permutation(n) % N_FOLDS
    found = dict.fromkeys(PENALTIES, 0.0)
    n_scored = 0
    for number in range(min(N_FOLDS if n <= ALL_FOLDS else 1, n)):
        hidden = fold == number
        weights = np.zeros((targets.shape[1], X.shape[1]))
        n_scored += int(hidden.sum())
        for penalty in PENALTIES:  # from strong to weak: each starts the next
            weights = solve_logistic(X[~hidden], targets[~hidden], penalty, weights, ROUGH)
            log_f = log_softmax(X[hidden] @ weights.T)
            found[penalty] += float((targets[hidden] * log_f).sum())
    return {penalty: total / max(n_scored, 1) for penalty, total in found.items()}


def _rotated(X: Floats) -> tuple[Floats, Floats]:
    """Return at most N rotated features with a column of ones, and the rotation of weights back.

    The penalty does not change under rotations, so directions without any task have no weight.
    """
    n, d = len(X), X.shape[1] - 1
    if d <= n:
        return X, np.eye(d + 1)
    values, left = np.linalg.eigh(X[:, :-1] @ X[:, :-1].T)
    kept = values > 1e-12 * max(float(values.max()), 1e-300)
    root = np.sqrt(values[kept])
    right = (left[:, kept] / root).T @ X[:, :-1]  # (r, d), orthonormal rows
    back = np.zeros((len(right) + 1, d + 1))
    back[:-1, :-1], back[-1, -1] = right, 1.0
    return np.hstack([left[:, kept] * root, np.ones((n, 1))]), back
