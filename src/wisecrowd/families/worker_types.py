r"""Workers of a few types, each type with one confusion matrix, by variational Bayes.

.. math::
    m_j \sim Cat(h), \qquad y_{ij} \mid z_i = k, m_j = c \sim Cat(\theta_{ck\cdot}), \qquad
    \theta_{ck\cdot} \sim Dir(\beta_k)

A method says which prior the shares :math:`h` have and where the memberships start.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.exceptions import ParameterError
from wisecrowd.core.problem import Problem
from wisecrowd.engines.memory import MemoryShards
from wisecrowd.families.confusion import ConfusionParams, WorkerConfusionModel
from wisecrowd.families.variational import VariationalConfusion, VariationalModel
from wisecrowd.inference.dirichlet import divergence, expectation, expected_log
from wisecrowd.inference.loop import first_params
from wisecrowd.inference.priors import History
from wisecrowd.inference.start_posterior import Start
from wisecrowd.kernels.posteriors import log_normalise

Floats = NDArray[np.float64]

INNER_ROUNDS = 3  # updates of memberships and matrices per pass, from the same counts


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
        self, model: WorkerConfusionModel, shards: MemoryShards, start: Start
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
