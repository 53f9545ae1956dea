r"""Confusion-matrix methods by variational Bayes: Dirichlet rows and a Dirichlet class prior.

.. math::
    \pi \sim Dir(c, \dots, c), \qquad q(z, \theta, \pi) = q(z) q(\theta) q(\pi)

EM's E-step stays as it is, with expected logarithms in place of logarithms: then
:math:`\sum_i \log Z_i` minus the divergences of the posteriors from their priors is the evidence
lower bound, exactly, and every iteration raises it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.labels import CrowdLabels
from wisecrowd.core.parameters import check_number
from wisecrowd.core.problem import Problem
from wisecrowd.core.result import FitResult
from wisecrowd.core.saved_attributes import Saved, SavedArray
from wisecrowd.core.task_prior import TaskPrior
from wisecrowd.families.confusion import ConfusionEM, Params, Stats, as_table, posterior
from wisecrowd.inference.class_prior import known_class_prior
from wisecrowd.inference.dirichlet import divergence, expected_log
from wisecrowd.inference.loop import Run

Floats = NDArray[np.float64]

LEAST_ALPHA = 1e-12  # a Dirichlet parameter of zero is no density


class VariationalConfusion(ConfusionEM):
    """Variational Bayes for confusion matrices; subclasses say how counts become posteriors.

    Parameters
    ----------
    class_prior : "auto", "estimate", "uniform" or (n_classes,) probabilities
        "auto" infers the class frequencies unless a task prior is given.
    class_alpha : float
        Dirichlet parameter of every class where the frequencies are inferred.
    max_iter, tol : int, float
        Stop after so many passes, or when the bound gains less than ``tol`` times its size.
    n_init : int
        Number of starts; the highest evidence lower bound wins.
    random_state : int, Generator or None
    """

    class_prior: Any
    class_alpha: float
    max_iter: int
    tol: float
    n_init: int
    random_state: Any

    saves: ClassVar[dict[str, Saved]] = {
        # Where the class prior is given there is none.
        "class_posterior_": SavedArray("K", "positive", optional=True),
    }

    def _validate_parameters(self) -> None:
        super()._validate_parameters()
        check_number("class_alpha", self.class_alpha, LEAST_ALPHA)

    # ----------------------------------------------------------------------------------- update

    def global_step(self, stats: Stats, params: Params | None) -> Params:
        """Update the posteriors of workers and classes from the expected counts."""
        n_classes = len(stats.mass)
        by_class = stats.counts.reshape(-1, n_classes, n_classes).transpose(0, 2, 1)
        previous = None if params is None else params.extra
        log_confusion, bound, extra = self._worker_update(by_class, previous)
        log_class, loss, of_class = self._class_terms(stats.mass)
        return Params(as_table(log_confusion), log_class, bound - loss, extra | of_class)

    def _class_terms(self, mass: Floats) -> tuple[Floats, float, dict[str, Any]]:
        """Return the expected log class prior (K,), its divergence, and the Dirichlet if any."""
        if self._fixed_class is not None:
            return self._fixed_class, 0.0, {}
        alpha = self.class_alpha + mass
        logs = expected_log(alpha)
        loss = divergence(alpha, np.full_like(alpha, self.class_alpha), logs)
        return logs, loss, {"class_posterior": alpha}

    # ---------------------------------------------------------------------------------- results

    def _result(self, labels: CrowdLabels, best: Run, probas: Floats) -> FitResult:
        params: Params = best.params
        class_prior = self._class_mean(params)
        confusion = self._confusion_of(params)
        accuracy = np.diagonal(confusion, axis1=1, axis2=2) @ class_prior
        return FitResult(
            probas,
            accuracy,
            np.sqrt(self._accuracy_variance(params, class_prior)),
            class_prior=class_prior,
            confusion=confusion,
            n_iter=best.n_iter,
            converged=best.converged,
            history=best.history,
            extra=self._published(params),
        )

    def _class_mean(self, params: Params) -> Floats:
        """Return the expected class frequencies (K,)."""
        alpha = params.extra.get("class_posterior")
        if alpha is None:
            assert self._fixed_class is not None
            alpha = np.exp(self._fixed_class)
        return np.asarray(alpha / alpha.sum())

    def _accuracy_variance(self, params: Params, class_prior: Floats) -> Floats:
        """Return the posterior variance (J,) of the workers' accuracies."""
        raise TypeError(f"{type(self).__name__} must define _accuracy_variance.")

    def _published(self, params: Params) -> dict[str, Any]:
        """Return what the fit exposes besides what all methods have."""
        return params.extra

    # ---------------------------------------------------------------------------------- predict

    def _predict(self, problem: Problem) -> Floats:
        engine, params = self._known_params(problem, self._known_log_confusion())
        params = replace(params, log_class=self._known_log_class(problem.prior))
        return posterior(engine, params, problem.data.n_classes)[0]

    def _known_log_class(self, prior: TaskPrior) -> Floats:
        """Return the expected log class prior (K,) of new tasks; "auto" drops it for a prior."""
        dropped = prior.given and isinstance(self.class_prior, str) and self.class_prior == "auto"
        if dropped or "class_posterior_" not in self.__dict__:
            return known_class_prior(self.class_prior, prior, self.class_prior_)
        return expected_log(self.class_posterior_)
