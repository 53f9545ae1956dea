r"""Confusion-matrix methods by variational Bayes: Dirichlet rows and a Dirichlet class prior.

.. math::
    \pi \sim Dir(c, \dots, c), \qquad q(z, \theta, \pi) = q(z) q(\theta) q(\pi)

The E-step is that of EM with expected logarithms in place of logarithms. Then
:math:`\sum_i \log Z_i` minus the divergences of the posteriors from their priors is exactly the
evidence lower bound, and every iteration raises it.

Workers may be of a few types, each type with one confusion matrix; a method says which prior the
shares :math:`h` have and where the memberships start:

.. math::
    m_j \sim Cat(h), \qquad y_{ij} \mid z_i = k, m_j = c \sim Cat(\theta_{ck\cdot}), \qquad
    \theta_{ck\cdot} \sim Dir(\beta_k)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.exceptions import ParameterError
from wisecrowd.core.parameter_checks import Limits, Number
from wisecrowd.core.problem import Problem
from wisecrowd.core.result import Fit
from wisecrowd.core.saved_attributes import Saved, SavedArray
from wisecrowd.core.types import Floats
from wisecrowd.inference.dirichlet import divergence, expectation, expected_log
from wisecrowd.inference.engine import MemoryShards
from wisecrowd.inference.loop import LoopResult, first_params
from wisecrowd.inference.priors import History
from wisecrowd.kinds.classes.container import CrowdLabels
from wisecrowd.kinds.classes.families.class_prior import known_class_prior
from wisecrowd.kinds.classes.families.confusion import (
    ConfusionEM,
    ConfusionParams,
    ConfusionStats,
    as_table,
)
from wisecrowd.kinds.classes.families.posteriors import Start
from wisecrowd.kinds.classes.kernels.posteriors import log_normalise
from wisecrowd.kinds.classes.methods.dawid_skene import WorkerConfusionModel
from wisecrowd.kinds.classes.prior import TaskPrior

LEAST_ALPHA = 1e-12  # a Dirichlet parameter of zero does not define a density
INNER_ROUNDS = 3  # updates of memberships and matrices per pass, from the same counts


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

    limits: ClassVar[Limits] = {"class_alpha": Number(LEAST_ALPHA)}

    def _shape(self, problem: Problem) -> dict[str, Any]:
        return super()._shape(problem) | {"class_alpha": float(self.class_alpha)}

    # ---------------------------------------------------------------------------------- results

    def _result(self, model: Any, labels: CrowdLabels, best: LoopResult, probas: Floats) -> Fit:
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


@dataclass(frozen=True, eq=False)
class TypesStart(Start):
    """A random start: ``changes`` are the fields of the model that start elsewhere."""

    changes: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, eq=False, kw_only=True)
class WorkerTypesModel(VariationalModel):
    """Types that share a confusion matrix, by variational Bayes.

    Attributes
    ----------
    n_types : int
    beta : (K, L) or (C, K, L)
        Dirichlet parameters of the types' confusion rows.
    membership : (J, C) or None
        Memberships to start from; by default those of ``first_memberships``.
    """

    n_types: int
    beta: Floats
    membership: Floats | None = None

    def share_terms(self, size: Floats) -> tuple[Floats, float, Floats]:
        """Return the expected log shares (C,), their divergence, and the mean shares.

        ``size`` (C,) is the expected number of workers of each type.
        """
        raise TypeError(f"{type(self).__name__} must define share_terms.")

    def first_memberships(self, counts: Floats, active: NDArray[np.bool_]) -> Floats:
        """Return memberships (J, C) from the counts of the starting posterior."""
        raise TypeError(f"{type(self).__name__} must define first_memberships.")

    def arranged(self, membership: Floats, active: NDArray[np.bool_]) -> Floats:
        """Return the memberships with the types in the order that the prior prefers."""
        return membership

    def memberships(self, scores: Floats) -> tuple[Floats, Floats]:
        """Return memberships (J, C) given their logarithms, and the log normalisers (J,)."""
        return log_normalise(scores)

    def worker_update(
        self, counts: Floats, previous: dict[str, Any] | None
    ) -> tuple[Floats, float, dict[str, Any]]:
        """Alternate types given memberships and memberships given types."""
        active = counts.sum(axis=(1, 2)) > 0
        flat = counts.reshape(len(counts), -1)  # (J, K·L)
        if previous is not None:
            membership = previous["membership"]
        elif self.membership is not None:
            membership = self.membership
        else:
            membership = self.first_memberships(counts, active)
        for _ in range(INNER_ROUNDS):
            membership = self.arranged(membership, active)
            members = membership * active[:, None]
            beta = self.beta + (members.T @ flat).reshape(-1, *counts.shape[1:])
            log_share, loss, share = self.share_terms(members.sum(axis=0))
            logs = expected_log(beta)
            scores = log_share + flat @ logs.reshape(len(logs), -1).T
            membership, log_norm = self.memberships(scores)
        # log_norm includes the terms of the labels, which the local step counts too: subtract them.
        table = np.tensordot(membership, logs, axes=1)  # (J, K, L)
        bound = float(log_norm[active].sum() - (counts * table).sum())
        bound -= loss + divergence(beta, self.beta, logs)
        membership = np.where(active[:, None], membership, share)
        extra = {"membership": membership, "type_posterior": beta, "share": share}
        return np.tensordot(membership, logs, axes=1), bound, extra


class WorkerTypes(VariationalConfusion):
    """Methods whose model is a :class:`WorkerTypesModel`."""

    def _require_type_prior(self, prior: Any) -> None:
        if isinstance(prior, History):
            raise ParameterError(
                "A history is of workers and the prior here of types of worker; give 'weak', a "
                "number, or Dirichlet parameters (n_classes, n_classes)."
            )

    def _start(self, problem: Problem, rng: np.random.Generator | None) -> Start:
        """Return the given start or the soft vote; with ``rng``, with random types too."""
        if rng is None:
            return super()._start(problem, None)
        changes = self._random_types(problem, rng)
        start = super()._start(problem, rng)
        return TypesStart(start.given, start.noise, changes=changes)

    def _random_types(self, problem: Problem, rng: np.random.Generator) -> dict[str, Any]:
        """Return the fields of the model at which a random start differs."""
        raise TypeError(f"{type(self).__name__} must define _random_types.")

    def _first(
        self, model: Any, shards: MemoryShards, start: Start
    ) -> tuple[ConfusionParams, list[Any]]:
        if isinstance(start, TypesStart):
            model = replace(model, **start.changes)
        return first_params(model, shards, start)

    def _confusion_of(self, params: ConfusionParams) -> Floats:
        mean = expectation(params.extra["type_posterior"])
        return np.asarray(np.tensordot(params.extra["membership"], mean, axes=1))


def dirichlet_shares(size: Floats, alpha: float) -> tuple[Floats, float, Floats]:
    """Return the expected log shares (C,), their divergence, and the mean shares.

    Their prior is a symmetric Dirichlet with parameter ``alpha``; ``size`` (C,) is the expected
    number of workers of each type.
    """
    prior = np.full(len(size), alpha)
    eta = prior + size
    log_share = expected_log(eta)
    return log_share, divergence(eta, prior, log_share), expectation(eta)


def by_agreement(counts: Floats, active: NDArray[np.bool_], n_types: int) -> Floats:
    """Return soft memberships (J, C) by agreement with the starting posterior.

    A hard cut would let rounding decide between workers who agree equally often.
    """
    C = n_types
    if C == 1 or not active.any():
        return np.full((len(counts), C), 1 / C)
    total = np.where(active, counts.sum(axis=(1, 2)), 1.0)
    agreement = np.trace(counts, axis1=1, axis2=2) / total
    centre = np.quantile(agreement[active], 1 - (np.arange(C) + 0.5) / C)
    width = max((centre[0] - centre[-1]) / C, 1e-3)
    return log_normalise(-0.5 * ((agreement[:, None] - centre) / width) ** 2)[0]
