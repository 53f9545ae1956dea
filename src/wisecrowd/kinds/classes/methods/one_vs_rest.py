"""OneVsRest: two-class methods for more classes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from wisecrowd.core.footprint import Footprint
from wisecrowd.core.problem import Problem
from wisecrowd.core.result import Fit
from wisecrowd.core.types import Floats
from wisecrowd.kinds.classes.families.class_prior import with_class_prior
from wisecrowd.kinds.classes.families.wrapped_method import BinaryReduction, as_dense, two_classes
from wisecrowd.kinds.classes.prior import TaskPrior
from wisecrowd.kinds.classes.worker_errors import worker_evidence


@dataclass(eq=False, repr=False, kw_only=True)
class OneVsRest(BinaryReduction):
    r"""One two-class problem per class, this class against the rest, by any method.

    .. math::
        p(z_i = k) = \frac{p_k(z_i = k)}{\sum_{k'} p_{k'}(z_i = k')}

    with :math:`p_k` the method's posterior when every label other than ``k`` counts as "rest".

    Use it when a method handles two classes only, or when different workers are good at different
    classes. Cost: that of the method, times the number of classes.

    Parameters
    ----------
    method : method or its name
        The two-class method; by default Dawid-Skene, with two error rates per worker and class. Set
        its own parameters as ``method__tol`` and so on.
    class_prior : "auto", "uniform" or (n_classes,) probabilities
        Prior of all classes, not of one against the rest; "auto" leaves it to the method, which
        estimates the share of one class at a time.

    Attributes
    ----------
    methods_ : list of fitted methods, one per class
        A single one, fitted to the unchanged labels, if there are at most two classes.
    class_prior_ : (n_classes,)
        Computed from the methods' shares of each class against the rest, if they have them.
    worker_accuracy_ : (n_workers,)
        Expected share of correct labels under the posterior, 1 / n_classes for workers without
        labels; with two classes, the method's own estimate.

    Notes
    -----
    With two classes this is the method itself. Gold, task priors and starts are passed on; the
    probabilities of all other classes are summed to that of the rest.

    References
    ----------
    D. R. Karger, S. Oh and D. Shah (2013). Efficient crowdsourcing for multi-class labeling.
    SIGMETRICS, 81-92.

    Examples
    --------
    >>> from wisecrowd.kinds.classes.container import CrowdLabels
    >>> labels = CrowdLabels.from_matrix([[0, 0, 1], [1, 1, 0], [2, 2, 2], [2, 2, 1], [0, 0, 0]])
    >>> OneVsRest("dawid-skene").fit(labels).labels_
    array([0, 1, 2, 2, 0])
    >>> OneVsRest().set_params(method__max_iter=7)
    OneVsRest(method=DawidSkene(max_iter=7))
    """

    footprint = Footprint(cell=63.4)

    @staticmethod
    def _n_problems(n_classes: int) -> int:
        return n_classes if n_classes > 2 else 1

    # ------------------------------------------------------------------------------------- fit

    def _fit(self, problem: Problem) -> Fit:
        problem = with_class_prior(problem, self.class_prior)
        labels, prior = problem.data, problem.prior
        if labels.n_classes <= 2:
            fitted, result = self._fit_one(problem)
            return replace(result, extra={**result.extra, "methods": [fitted]})
        parts = [self._fit_one(_against_rest(problem, k)) for k in range(labels.n_classes)]
        probas = _normalised([result.probas for _, result in parts], prior)
        return Fit(
            probas,
            worker_evidence(labels, probas).mean_right,
            class_prior=_class_shares([result.class_prior for _, result in parts]),
            n_iter=max(result.n_iter for _, result in parts),
            converged=all(result.converged for _, result in parts),
            findings=tuple(
                replace(one, explanation=f"Class {label!r} against the rest: {one.explanation}")
                for label, (_, result) in zip(labels.classes.tolist(), parts, strict=True)
                for one in result.findings
            ),
            extra={"methods": [fitted for fitted, _ in parts]},
        )

    # --------------------------------------------------------------------------------- predict

    def _predict(self, problem: Problem) -> Any:
        problem = with_class_prior(problem, self.class_prior)
        if problem.data.n_classes <= 2:
            return self.methods_[0]._predict(problem)
        parts = [
            fitted._predict(_against_rest(problem, k)) for k, fitted in enumerate(self.methods_)
        ]
        return _normalised(parts, problem.prior)


def _against_rest(problem: Problem, k: int) -> Problem:
    """Return the problem with class ``k`` as 1 and all others as 0."""
    is_class = np.arange(problem.data.n_classes) == k
    return two_classes(problem, is_class, ("rest", "class"))


def _normalised(parts: list[Any], prior: TaskPrior) -> Floats:
    """Return the posterior (N, K) from the K posteriors (N, 2) of class against rest."""
    scores = np.stack([as_dense(part)[:, 1] for part in parts], axis=1)
    total = scores.sum(axis=1)
    if (total > 0).all():
        return np.asarray(scores / total[:, None])
    # Every class was certainly "rest": use the prior.
    scores = np.where(total[:, None] > 0, scores, prior.probabilities(len(scores)))
    return np.asarray(scores / scores.sum(axis=1, keepdims=True))


def _class_shares(parts: list[Floats | None]) -> Floats | None:
    shares = np.array([0.0 if part is None else part[1] for part in parts])
    if any(part is None for part in parts) or not shares.sum() > 0:
        return None
    return np.asarray(shares / shares.sum())
