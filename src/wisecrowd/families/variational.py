r"""Confusion-matrix methods by variational Bayes: Dirichlet rows and a Dirichlet class prior.

.. math::
    \pi \sim Dir(c, \dots, c), \qquad q(z, \theta, \pi) = q(z) q(\theta) q(\pi)

The E-step is that of EM with expected logarithms in place of logarithms. Then
:math:`\sum_i \log Z_i` minus the divergences of the posteriors from their priors is exactly the
evidence lower bound, and every iteration raises it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.labels import CrowdLabels
from wisecrowd.core.parameter_checks import check_number
from wisecrowd.core.problem import Problem
from wisecrowd.core.result import Fit
from wisecrowd.core.saved_attributes import Saved, SavedArray
from wisecrowd.core.task_prior import TaskPrior
from wisecrowd.families.confusion import (
    ConfusionEM,
    ConfusionParams,
    ConfusionStats,
    WorkerConfusionModel,
    as_table,
)
from wisecrowd.inference.class_prior import known_class_prior
from wisecrowd.inference.dirichlet import divergence, expected_log
from wisecrowd.inference.loop import LoopResult

Floats = NDArray[np.float64]

LEAST_ALPHA = 1e-12  # a Dirichlet parameter of zero does not define a density


@dataclass(frozen=True, eq=False, kw_only=True)
class VariationalModel(WorkerConfusionModel):
    """Confusion matrices by variational Bayes; subclasses turn counts into posteriors.

    Where the class frequencies are inferred, their prior is a symmetric Dirichlet with parameter
    ``class_alpha``, and ``extra["class_posterior"]`` (K,) has the parameters of their posterior.
    """

    class_alpha: float

    def global_step(self, stats: ConfusionStats, params: ConfusionParams | None) -> ConfusionParams:
        """Update the posteriors of workers and classes from the expected counts."""
        by_class = stats.counts.reshape(-1, self.n_classes, self.n_classes).transpose(0, 2, 1)
        previous = None if params is None else params.extra
        log_confusion, bound, extra = self.worker_update(by_class, previous)
        log_class, loss, of_class = self.class_terms(stats.mass)
        return ConfusionParams(as_table(log_confusion), log_class, bound - loss, extra | of_class)

    def class_terms(self, mass: Floats) -> tuple[Floats, float, dict[str, Any]]:
        """Return the expected log class prior (K,), its divergence, and the Dirichlet if any."""
        if self.fixed_class is not None:
            return self.fixed_class, 0.0, {}
        alpha = self.class_alpha + mass
        logs = expected_log(alpha)
        loss = divergence(alpha, np.full_like(alpha, self.class_alpha), logs)
        return logs, loss, {"class_posterior": alpha}

    def class_mean(self, params: ConfusionParams) -> Floats:
        """Return the expected class frequencies (K,)."""
        if self.fixed_class is None:
            alpha = params.extra["class_posterior"]
        else:
            alpha = np.exp(self.fixed_class)
        return np.asarray(alpha / alpha.sum())


class VariationalConfusion(ConfusionEM):
    """Methods whose model is a :class:`VariationalModel`.

    Parameters
    ----------
    class_prior : "auto", "estimate", "uniform" or (n_classes,) probabilities
        "auto" infers the class frequencies unless a task prior is given, or fewer than a tenth
        of the tasks have labels by two workers; they are then equal.
    class_alpha : float
        Dirichlet parameter of every class, if the frequencies are inferred.
    max_iter, tol : int, float
        Maximum number of iterations; relative gain of the bound that counts as converged.
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
        # A given class prior has no posterior.
        "class_posterior_": SavedArray("K", "positive", optional=True),
    }

    def _validate_parameters(self) -> None:
        super()._validate_parameters()
        check_number("class_alpha", self.class_alpha, LEAST_ALPHA)

    def _shape(self, problem: Problem) -> dict[str, Any]:
        return super()._shape(problem) | {"class_alpha": float(self.class_alpha)}

    # ---------------------------------------------------------------------------------- results

    def _result(
        self, model: WorkerConfusionModel, labels: CrowdLabels, best: LoopResult, probas: Floats
    ) -> Fit:
        assert isinstance(model, VariationalModel)
        params: ConfusionParams = best.params
        class_prior = model.class_mean(params)
        confusion = self._confusion_of(params)
        accuracy = np.diagonal(confusion, axis1=1, axis2=2) @ class_prior
        return Fit(
            probas,
            accuracy,
            class_prior=class_prior,
            confusion=confusion,
            n_iter=best.n_iter,
            converged=best.converged,
            history=best.history,
            extra=self._published(params, class_prior),
        )

    def _published(self, params: ConfusionParams, class_prior: Floats) -> dict[str, Any]:
        """Return the attributes of the fit that are specific to the method."""
        return params.extra

    # ---------------------------------------------------------------------------------- predict

    def _predict(self, problem: Problem) -> Floats:
        log_class = self._known_log_class(problem.prior)
        return self._known(problem, self._known_log_confusion(), log_class)[0]

    def _known_log_class(self, prior: TaskPrior) -> Floats:
        """Return the expected log class prior (K,) of new tasks; "auto" may drop it."""
        dropped = prior.given and isinstance(self.class_prior, str) and self.class_prior == "auto"
        if dropped or "class_posterior_" not in self.__dict__:
            return known_class_prior(self.class_prior, prior, self.class_prior_)
        return expected_log(self.class_posterior_)
