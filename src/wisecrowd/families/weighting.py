r"""Weighted votes: every worker has a weight, every task the class with the most of it.

.. math::
    q_i(k) \propto \pi_{ik} \sum_{j: y_{ij} = k} u_j

A method is one hook: each worker's agreement with the vote to new weights :math:`u`. One round is
O(annotations) for any number of classes.
"""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.base import Aggregator
from wisecrowd.core.problem import Problem
from wisecrowd.core.result import FitResult
from wisecrowd.core.saved_attributes import Saved, SavedArray
from wisecrowd.engines.memory import Block
from wisecrowd.families.coin import given_start
from wisecrowd.families.received import (
    Received,
    accuracy_error,
    posterior_matrix,
    received,
    row_totals,
    share_of,
    worker_weights,
)
from wisecrowd.inference.monitor import Progress, report

Floats = NDArray[np.float64]


class Agreement(NamedTuple):
    """Additive statistics of one pass: the weight of each worker's labels that won, (J,)."""

    agreement: Floats


class Votes:
    """The votes of one set of labels: ask for a round of them, or for the posterior of the last.

    Parameters
    ----------
    problem : Problem
    smoothing : float
        Votes that every class of every task has from the start.
    """

    def __init__(self, problem: Problem, smoothing: float = 0.0) -> None:
        labels = problem.data
        self._labels, self._smoothing = labels, smoothing
        self._engine = problem.cut(labels.n_workers)
        self._states = received(self._engine, labels.n_classes)
        self._no_class = np.zeros(labels.n_classes)  # the task prior says it all
        self._totals = row_totals(problem.prior, self._no_class)
        self.total = worker_weights(labels)  # (J,) of each worker's labels
        self.n_classes = labels.n_classes

    def share(self, agreement: Floats) -> Floats:
        """Return agreement as a share of each worker's labels; chance for workers without any."""
        return share_of(agreement, self.total, 1 / self.n_classes)

    def round(self, vote_weight: Floats, *, hard: bool) -> Floats:
        """Vote with the given weights (J,); return how much of each worker's labels won, (J,)."""

        def step(block: Block, state: Received, weights: Floats) -> tuple[Received, Agreement]:
            agreement = np.zeros_like(weights)
            block.kernels("sparse_posterior").vote_step(
                block.indptr, block.worker, block.weight, *state.pairs, weights,
                self._smoothing, self._no_class, block.prior_rows, block.prior_index, self._totals,
                agreement, state.probas, state.rest, hard,
            )  # fmt: skip
            return state, Agreement(agreement)

        stats: Agreement = self._engine.map_reduce(step, self._states, vote_weight)[1]
        return stats.agreement

    def agreement_with(self, given: Floats) -> Floats:
        """Return how much of each worker's labels a posterior (n_tasks, K) has right, (J,)."""
        agreement = np.zeros_like(self.total)
        for block, state in zip(self._engine.shards(), self._states, strict=True):
            agreement += given_start(block, state, given, len(agreement))[0]
        return agreement

    def posterior(self) -> Any:
        """Return the (n_tasks, n_classes) shares of the last round, dense or sparse."""
        return posterior_matrix(
            self._engine, self._states, self._labels, self._no_class, self._totals
        )


class WeightedVote(Aggregator):
    """Alternate votes and worker weights; a method says how agreement becomes weight.

    Parameters
    ----------
    max_iter : int
        The most rounds of new weights.
    tol : float
        Stop when no weight changes by more than this.
    """

    max_iter: int
    tol: float
    one_round: ClassVar[bool] = False  # whether the method is complete after a single round
    saves: ClassVar[dict[str, Saved]] = {
        "vote_weight_": SavedArray("J"),
    }

    # -------------------------------------------------------------------------------- the hooks

    def _new_weights(self, agreement: Floats, votes: Votes, old: Floats, number: int) -> Floats:
        """Return the vote weights (J,) after round ``number`` = 1, 2 ...

        ``agreement`` (J,) is the weight of each worker's labels that won the vote under ``old``.
        """
        raise TypeError(f"{type(self).__name__} must define _new_weights.")

    def _first_weights(self, votes: Votes) -> Floats:
        """Return the weights (J,) of the first vote: all equal."""
        return np.ones_like(votes.total)

    def _unknown_weight(self) -> float:
        """Return the weight of a worker about whom nothing is known, in a prediction."""
        return 1 / len(self.classes_)

    def _objective(self, agreement: Floats, votes: Votes, weights: Floats) -> float:
        """Return what ``history_`` records of a round: the share of labels that won."""
        return float(agreement.sum() / max(votes.total.sum(), 1e-300))

    # -------------------------------------------------------------------------------------- fit

    def _fit(self, problem: Problem) -> FitResult:
        votes = Votes(problem)
        weights = self._first_weights(votes)
        if problem.start is not None:
            weights = self._new_weights(votes.agreement_with(problem.start), votes, weights, 1)
        history: list[float] = []
        converged = False
        for number in range(1, self.max_iter + 1):
            agreement = votes.round(weights, hard=True)
            history.append(self._objective(agreement, votes, weights))
            report(Progress(number, self.max_iter, history[-1]))
            old, weights = weights, self._new_weights(agreement, votes, weights, number)
            converged = bool(np.abs(weights - old).max(initial=0.0) <= self.tol)
            if converged:
                break
        agreement = votes.round(weights, hard=True)
        history.append(self._objective(agreement, votes, weights))
        accuracy = votes.share(agreement)
        return FitResult(
            votes.posterior(),
            accuracy,
            accuracy_error(accuracy, votes.total),
            n_iter=number,
            converged=converged or (self.one_round and self.max_iter == 1),
            history=tuple(history),
            extra={"vote_weight": weights},
        )

    # ---------------------------------------------------------------------------------- predict

    def _predict(self, problem: Problem) -> Any:
        weights = self.vote_weight_
        if problem.data.n_workers > len(weights):
            weights = np.append(weights, self._unknown_weight())
        votes = Votes(problem)
        votes.round(weights, hard=False)
        return votes.posterior()
