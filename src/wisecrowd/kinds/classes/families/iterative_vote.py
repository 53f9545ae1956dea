r"""Weighted votes: every worker has a weight; the class with the largest total weight wins.

.. math::
    q_i(k) \propto \pi_{ik} \sum_{j: y_{ij} = k} u_j

A method implements one hook, which turns each worker's agreement with the vote into new weights
:math:`u`. One round is O(annotations) for any number of classes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.aggregator import Aggregator
from wisecrowd.core.problem import Problem
from wisecrowd.core.result import Fit
from wisecrowd.core.saved_attributes import Saved, SavedArray
from wisecrowd.core.types import Floats
from wisecrowd.inference.monitor import Progress, report
from wisecrowd.kinds.classes.families.posteriors import (
    SparsePosterior,
    Start,
    begin_posterior,
    each_annotation,
    given_start,
    posterior_matrix,
    posterior_rows,
    row_totals,
    share_of,
    sum_over_workers,
    worker_weights,
)
from wisecrowd.kinds.classes.kernels.sparse_posterior import NormalisedPriors, VoteOutput
from wisecrowd.kinds.classes.shards import Shard


class VoteStats(NamedTuple):
    """Additive statistics of one pass: weight of each worker's winning labels, (J,)."""

    agreement: Floats


class VoteParams(NamedTuple):
    """Vote weights (J,), and whether only the winning class counts in the agreement."""

    weight: Floats
    hard: bool


class VoteState(NamedTuple):
    """Labels of a shard with their shares of the votes, and totals of its prior rows."""

    posterior: SparsePosterior
    totals: Floats


@dataclass(frozen=True, eq=False)
class VoteModel:
    """Weighted votes.

    Attributes
    ----------
    n_workers : int
    no_class : (n_classes,) zeros
        Zeros, because the class prior is part of the task prior.
    smoothing : float
        Pseudo-count of votes for every class of every task.
    by_frequency : (n_classes,) classes by frequency, or None if posteriors are dense
    """

    n_workers: int
    no_class: Floats
    smoothing: float
    by_frequency: NDArray[np.intp] | None

    def begin(self, shard: Shard) -> VoteState:
        """Return the distinct labels of a shard's tasks."""
        totals = row_totals(shard.prior_rows, self.no_class)
        return VoteState(begin_posterior(shard, len(self.no_class)), totals)

    def first(self, shard: Shard, state: VoteState, start: Start) -> tuple[VoteState, VoteStats]:
        """Return the expected correct labels of each worker under a given posterior."""
        assert start.given is not None
        right, _ = given_start(shard, state.posterior, start.given, self.n_workers)
        return state, VoteStats(right)

    def local_step(
        self, shard: Shard, state: VoteState, params: VoteParams
    ) -> tuple[VoteState, VoteStats]:
        """Vote, and return the weight of each worker's winning labels."""
        agreement, labels = np.zeros_like(params.weight), state.posterior
        votes, weight = shard.task_labels, params.weight
        if shard.repeat is not None:
            votes, weight = each_annotation(shard), weight[shard.worker]
            agreement = np.zeros(len(weight))
        priors = NormalisedPriors(self.no_class, shard.prior_rows, shard.prior_index, state.totals)
        output = VoteOutput(agreement, labels.probas, labels.rest)
        shard.kernels("sparse_posterior").vote_step(
            votes, labels.pairs, weight, priors, output, self.smoothing, params.hard
        )
        if shard.repeat is not None:
            agreement = sum_over_workers(shard, agreement, len(params.weight))
        return state, VoteStats(agreement)

    def last_step(
        self, shard: Shard, state: VoteState, params: VoteParams
    ) -> tuple[Any, VoteStats]:
        """Vote again, where the shares of the last round were not kept, and return them."""
        return self.answer(shard, self.local_step(shard, state, params)[0], None)

    def answer(self, shard: Shard, state: VoteState, params: None) -> tuple[Any, VoteStats]:
        """Return the shares (n, K) of the last round."""
        labels = state.posterior
        rows = posterior_rows(shard, labels, self.no_class, state.totals, self.by_frequency)
        return rows, VoteStats(np.zeros(0))


class Votes:
    """Votes on one set of labels: runs rounds and returns the posterior of the last one.

    Parameters
    ----------
    problem : Problem
    smoothing : float
        Pseudo-count of votes for every class of every task.
    """

    def __init__(self, problem: Problem, smoothing: float = 0.0) -> None:
        labels = problem.data
        self._probas = posterior_matrix(labels)
        self._model = VoteModel(
            labels.n_workers, np.zeros(labels.n_classes), smoothing, self._probas.by_frequency
        )
        self._shards = problem.cut(labels.n_workers)
        self._states = self._shards.begin(self._model)
        self._last: Any = None  # parameters of the last round
        self.total = worker_weights(labels)  # (J,) total weight of each worker's labels
        self.n_classes = labels.n_classes

    def share(self, agreement: Floats) -> Floats:
        """Return agreement as a share of each worker's labels; chance level without labels."""
        return share_of(agreement, self.total, 1 / self.n_classes)

    def round(self, vote_weight: Floats, *, hard: bool) -> Floats:
        """Vote with weights (J,); return the weight of each worker's winning labels, (J,)."""
        return self._run("local_step", VoteParams(vote_weight, hard))

    def agreement_with(self, given: Floats) -> Floats:
        """Return the expected correct labels (J,) of the workers under a posterior (n_tasks, K)."""
        return self._run("first", Start(given))

    def _run(self, step: str, params: Any) -> Floats:
        stats: VoteStats
        self._last = params
        self._states, stats = self._shards.map_reduce(self._model, step, self._states, params)
        return stats.agreement

    def posterior(self) -> Any:
        """Return the (n_tasks, n_classes) shares of the last round, dense or sparse."""
        step, params = ("answer", None) if self._shards.keeps_states else ("last_step", self._last)
        self._shards.collect(self._model, step, self._states, params, self._probas.store)
        return self._probas.matrix()


class IterativeVote(Aggregator):
    """Base of methods that alternate votes and worker weights.

    Parameters
    ----------
    max_iter : int
        Maximum number of rounds of new weights.
    tol : float
        Largest change of a weight that counts as converged.
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
        """Return the weight of an unknown worker in a prediction."""
        return 1 / len(self.classes_)

    def _objective(self, agreement: Floats, votes: Votes, weights: Floats) -> float:
        """Return the value that ``history_`` records after a round: the share of winning labels."""
        return float(agreement.sum() / max(votes.total.sum(), 1e-300))

    # -------------------------------------------------------------------------------------- fit

    def _fit(self, problem: Problem) -> Fit:
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
        return Fit(
            votes.posterior(),
            accuracy,
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
