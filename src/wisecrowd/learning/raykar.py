"""Raykar: logistic regression and confusion matrices of the workers by EM, without torch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from wisecrowd.core.parameter_checks import Limits, Number
from wisecrowd.core.saved_attributes import Saved, SavedArray
from wisecrowd.core.types import Floats
from wisecrowd.inference.engine import in_memory
from wisecrowd.inference.monitor import Progress, report
from wisecrowd.inference.priors import as_row_prior
from wisecrowd.kinds.classes.families.confusion import known_mixture
from wisecrowd.kinds.classes.methods.dawid_skene import dirichlet_update
from wisecrowd.kinds.classes.prior import TaskPrior
from wisecrowd.learning.base import FlatLearner
from wisecrowd.learning.training.crowd_classifier import CrowdClassifier, Learned, Training
from wisecrowd.learning.training.label_model import (
    Standardised,
    expected_counts,
    log_softmax,
    soft_votes,
    solve_logistic,
    with_gold,
)


@dataclass(eq=False, repr=False, kw_only=True)
class Raykar(FlatLearner, CrowdClassifier):
    r"""Logistic regression as the class prior of a Dawid-Skene model, by EM; needs no torch.

    .. math::
        \sum_i \log \sum_k f_k(x_i) \prod_j \theta_j[k, y_{ij}]
        + \sum_{jkl} \alpha_{kl} \log \theta_j[k, l] - \frac{\lambda}{2} \|W\|^2, \qquad
        f(x) = \mathrm{softmax}(W x + b)

    The M-step is exact (expected counts for :math:`\theta`, L-BFGS on a convex problem for
    :math:`W`), so the objective never decreases. Features are standardised; rows of ``X`` that are
    not vectors are flattened.

    Use it when classes are roughly linear in the features and tasks have several labels each.

    Parameters
    ----------
    prior : "weak", None, number, (n_classes, n_classes) array or prior object
        Pseudo-counts :math:`\alpha` of the confusion rows, as in ``DawidSkene``; for two classes
        they are the Beta priors of sensitivity and specificity. None is maximum likelihood.
    l2 : float
        :math:`\lambda`, for weights of standardised features; the intercept is not penalised.
    max_iter : int
        Maximum number of EM iterations.
    tol : float
        Relative gain that counts as converged.
    random_state : int
        Not used; the method is deterministic.

    Attributes
    ----------
    coef_, intercept_ : (n_classes, n_features), (n_classes,)
        Weights and intercepts for the features as given.
    confusion_ : (n_workers, n_classes, n_classes)
    history_ : tuple of dict
        The objective after every iteration.

    References
    ----------
    Raykar et al. (2010). Learning from crowds. JMLR 11, 1297-1322.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = np.repeat(np.eye(2), 30, axis=0) + 0.1 * rng.normal(size=(60, 2))
    >>> votes = np.repeat([[0, 0, 1], [1, 1, 1]], 30, axis=0)
    >>> Raykar().fit(X, votes).predict(np.eye(2))
    array([0, 1])
    """

    prior: Any = "weak"
    l2: float = 10.0
    max_iter: int = 100
    tol: float = 1e-6

    takes_sparse: ClassVar[bool] = True
    saves: ClassVar[dict[str, Saved]] = {
        "coef_": SavedArray("K inputs"),
        "intercept_": SavedArray("K"),
    }

    limits: ClassVar[Limits] = {
        "l2": Number(0.0),
    }

    def _fit(self, training: Training) -> Learned:
        self._refuse_to_resume(training)
        X, labels = self._as_matrix(training.X), training.labels
        standard = Standardised.of(X)
        prior = as_row_prior(self.prior, labels.classes)
        alpha = prior.pseudo_counts(labels.workers, labels.n_classes)
        em = _EM(standard.X, training, self.l2, alpha)
        history, converged = em.run(self.max_iter, self.tol)
        coef, intercept = standard.as_given(em.weights)
        return Learned(
            em.log_f,
            confusion=np.exp(em.log_confusion),
            probas=em.posterior,
            n_iter=len(history),
            converged=converged,
            history=tuple(
                {"iteration": float(i + 1), "objective": x} for i, x in enumerate(history)
            ),
            findings=self._unused(training),
            extra={"coef": coef, "intercept": intercept},
        )

    def _log_probas(self, X: Any) -> Floats:
        flat = self._new_matrix(X)
        return log_softmax(flat @ self.coef_.T + self.intercept_)


class _EM:
    """The state of EM: weights (K, d + 1), log confusion (J, K, K) and posterior (N, K)."""

    log_f: Floats
    log_confusion: Floats

    def __init__(self, X: Any, training: Training, l2: float, alpha: Floats) -> None:
        self.X, self.labels, self.l2, self.alpha = X, training.labels, l2, alpha
        n_classes = self.labels.n_classes
        # Other tasks do not inform either part: their posterior is f itself.
        self.useful = (self.labels.labels_per_task > 0) | (training.gold >= 0)
        self.weights = np.zeros((n_classes, self.X.shape[1]))
        self.posterior = soft_votes(training)
        with np.errstate(divide="ignore"):  # a known class rules the others out
            self.possible = np.log(with_gold(np.ones((len(X), n_classes)), training))

    def run(self, max_iter: int, tol: float) -> tuple[list[float], bool]:
        """Iterate; return the objective after every iteration, and whether it converged."""
        history: list[float] = []
        for iteration in range(1, max_iter + 1):
            history.append(self._iterate())
            report(Progress(iteration, max_iter, history[-1]))
            if len(history) > 1 and history[-1] - history[-2] <= tol * max(1.0, abs(history[-1])):
                return history, True
        return history, False

    def _iterate(self) -> float:
        """M-step, then E-step; return the objective at the new parameters."""
        counts = expected_counts(self.posterior, self.labels)
        self.log_confusion, log_prior = dirichlet_update(counts, self.alpha)
        self.weights = solve_logistic(
            self.X[self.useful], self.posterior[self.useful], self.l2, self.weights
        )
        self.log_f = log_softmax(self.X @ self.weights.T)
        rows = self.log_f + self.possible
        prior = TaskPrior(rows, np.arange(len(rows), dtype=np.int32), given=True)
        self.posterior, evidence = known_mixture(
            in_memory(self.labels, prior), np.exp(self.log_confusion), np.ones(rows.shape[1])
        )
        return evidence + log_prior - 0.5 * self.l2 * float((self.weights[:, :-1] ** 2).sum())
