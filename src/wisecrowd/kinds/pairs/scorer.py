"""How methods for pairs are compared: against a truth, and by hidden votes without one.

The votes are split into five folds. Each fold is hidden once, a method is fitted to the others, and
its ``predict_proba`` gives the probabilities of left, right and tie of each hidden vote. The score
is the mean log-probability of the actual outcomes. Models without ties have a layer for ties
(:mod:`wisecrowd.kinds.pairs.methods.base`), estimated from the visible votes, so that scores of all
methods are comparable.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.exceptions import DataError
from wisecrowd.core.parameter_checks import check_integer
from wisecrowd.core.types import Floats, Ints, Mask
from wisecrowd.inference.held_out import HeldOutScore
from wisecrowd.inference.scorers import (
    NEAR_BEST,
    Evaluation,
    MakeFit,
    ResultFile,
    Scores,
    evaluate_numbers,
)
from wisecrowd.kinds.pairs.answers import known_scores
from wisecrowd.kinds.pairs.container import CrowdPairs
from wisecrowd.kinds.pairs.metrics import kendall_tau, pair_accuracy
from wisecrowd.kinds.rankings.container import CrowdRankings

N_FOLDS = 5
SMALLEST = 1e-15  # probabilities below count as this much


class PairScorer:
    """Scores of methods that take pairs."""

    with_truth: ClassVar[tuple[str, ...]] = ("kendall_tau", "pair_accuracy")
    claims: ClassVar[tuple[str, ...]] = ()
    explanations: ClassVar[tuple[str, ...]] = (
        "held-out score: mean log-probability of votes that were hidden from the fit; higher is "
        "better; ± SE is its standard error over workers",
        NEAR_BEST,
        "agreement: Kendall's τ with the rankings of the other methods, on average",
    )

    def match(self, truth: Any, data: CrowdPairs) -> Floats | None:
        """Return the true scores of items, NaN where unknown."""
        return None if truth is None else known_scores(truth, data.items)

    def score(self, model: Any, truth: Floats) -> dict[str, float]:
        """Return the scores of the ranking."""
        return ranking_scores(truth, model.scores_)

    def plan(self, data: CrowdPairs) -> VotePlan:
        """Return the votes to hide, in folds."""
        return VotePlan(data)

    def score_held_out(self, fit: MakeFit, plan: VotePlan) -> HeldOutScore:
        """Return the log-probabilities of hidden votes, with their workers as groups."""
        return by_worker(held_out_votes(fit, plan.data))

    def claim(self, model: Any, data: CrowdPairs) -> dict[str, float]:
        """Return nothing: scores of items have no error of their own to claim."""
        return {}

    def agreement(self, one: Any, other: Any) -> float:
        """Return Kendall's τ of the scores."""
        return kendall_tau(one.scores_, other.scores_)


@dataclass(frozen=True, eq=False)
class VotePlan:
    """Votes to score methods on."""

    data: CrowdPairs

    @property
    def n_hidden(self) -> int:
        """Number of votes that are scored; 0 if there are fewer votes than folds."""
        n = int(np.count_nonzero(self.data.weights > 0))
        return n if n >= N_FOLDS else 0


def ranking_scores(truth: Floats, scores: Floats) -> Scores:
    """Return the scores of a ranking against the true scores of items."""
    return {
        "kendall_tau": kendall_tau(truth, scores),
        "pair_accuracy": pair_accuracy(truth, scores),
    }


def vote_folds(
    data: CrowdPairs | CrowdRankings, n_folds: int = N_FOLDS, place: Ints | None = None
) -> NDArray[np.int8]:
    """Return the fold of each annotation (n_annotations,); those of weight 0 have the fold -1.

    Folds alternate along the annotations in a random order with a fixed seed, so their sizes
    differ by one at most, and equal data have equal folds. ``place`` is the place of each one in
    another order to begin with than that of the data.

    Examples
    --------
    >>> votes = CrowdPairs.from_arrays(None, None, list("xxyy"), list("yzzx"), ["left"] * 4)
    >>> sorted(vote_folds(votes, 2).tolist())
    [0, 0, 1, 1]
    """
    check_integer("n_folds", n_folds, 2, 127)
    counts = np.flatnonzero(data.weights > 0)
    folds = np.full(data.n_annotations, -1, dtype=np.int8)
    order = np.random.default_rng(0).permutation(len(counts))
    if place is not None:
        counts = counts[place[counts].argsort(kind="stable")]
    folds[counts[order]] = np.arange(len(counts)) % n_folds
    return folds


def _nameless_order(data: CrowdPairs) -> Ints:
    """Return the place of each vote in an order that names do not matter for.

    Votes are sorted by their outcome, by the success of their items, of these items' opponents, and
    of their worker.
    """
    n, weight = data.n_items, data.weights
    sign = weight * np.array([1.0, -1.0, 0.0])[data.outcome]
    votes = np.bincount(data.left, weight, n) + np.bincount(data.right, weight, n) + 1
    success = (np.bincount(data.left, sign, n) - np.bincount(data.right, sign, n)) / votes
    left, right = success[data.left], success[data.right]
    rivals = (np.bincount(data.left, weight * right, n)
              + np.bincount(data.right, weight * left, n)) / votes  # fmt: skip
    total = np.bincount(data.worker, weight, data.n_workers)
    agreement = np.bincount(data.worker, sign * (left - right), data.n_workers)
    keys = (
        data.outcome, total[data.worker], agreement[data.worker], rivals[data.right],
        rivals[data.left], right, left,
    )  # fmt: skip
    place = np.empty(data.n_annotations, dtype=np.int64)
    place[np.lexsort([np.round(key, 9) for key in keys])] = np.arange(data.n_annotations)
    return place


@dataclass(frozen=True, eq=False)
class HeldOutVotes:
    """Log-probabilities of hidden votes, and their mean.

    Attributes
    ----------
    per_vote : (n_hidden,)
        Log-probability of the outcome of each hidden vote.
    correct : (n_hidden,) bool
        Whether the most probable outcome was the actual one.
    worker : (n_hidden,)
        Code of its worker.
    weight : (n_hidden,)
    """

    per_vote: Floats
    correct: NDArray[np.bool_]
    worker: Ints
    weight: Floats

    @cached_property
    def mean(self) -> float:
        """Mean log-probability per vote; higher is better. Its negative is the log loss."""
        return float(np.average(self.per_vote, weights=self.weight))

    @cached_property
    def accuracy(self) -> float:
        """Share of votes whose most probable outcome was the actual one."""
        return float(np.average(self.correct, weights=self.weight))

    @cached_property
    def standard_error(self) -> float:
        """Standard error of the mean over workers, whose votes are dependent.

        With a single worker it is that over votes.
        """
        centred = self.weight * (self.per_vote - self.mean)
        codes, place = np.unique(self.worker, return_inverse=True)
        sums = np.bincount(place, weights=centred) if len(codes) > 1 else centred
        if len(sums) < 2:
            return float("nan")
        n = len(sums)
        return float(np.sqrt(n / (n - 1) * (sums @ sums)) / self.weight.sum())


def by_worker(votes: HeldOutVotes) -> HeldOutScore:
    """Return the scores with workers as groups, or each vote as its own with a single worker."""
    several = len(np.unique(votes.worker)) > 1
    group = votes.worker if several else np.arange(len(votes.per_vote))
    return HeldOutScore(votes.per_vote, group, votes.weight)


def held_out_votes(
    make_fit: Callable[[CrowdPairs], Any],
    data: CrowdPairs,
    n_folds: int = N_FOLDS,
    *,
    nameless: bool = True,
) -> HeldOutVotes:
    """Fit a method without each fold and score the votes that were hidden from it.

    Parameters
    ----------
    make_fit : function of CrowdPairs to a fitted method
        Fits the method to the visible votes, which keep all vocabularies.
    data : CrowdPairs
    n_folds : int
    nameless : bool
        Whether the folds do not depend on names, for votes with a winner.

    Raises
    ------
    DataError
        If there are fewer votes than folds.
    """
    place = _nameless_order(data) if nameless else None
    folds = vote_folds(data, n_folds, place)
    scored = folds >= 0
    if int(scored.sum()) < n_folds:
        raise DataError(
            f"Held-out scores need at least {n_folds} votes, and there are {int(scored.sum())}; "
            "collect more."
        )
    logs, correct = np.zeros(data.n_annotations), np.zeros(data.n_annotations, dtype=bool)
    for fold in range(n_folds):
        hidden = folds == fold
        method = make_fit(data.select_annotations(~hidden))
        rows = data.select_annotations(hidden)
        probas = method.predict_proba(rows)
        chosen = probas[np.arange(len(probas)), rows.outcome]
        logs[hidden] = np.log(np.maximum(chosen, SMALLEST))
        correct[hidden] = probas.argmax(axis=1) == rows.outcome
    weight = data.weights[scored]
    return HeldOutVotes(logs[scored], correct[scored], data.worker[scored], weight)


def evaluate(found: ResultFile, truth: Any, notes: Any) -> Evaluation:
    """Score a ranking: item and score."""
    return evaluate_numbers(found, truth, notes, "item", "score", ranking_scores)


def judge_hidden(data: CrowdPairs, fit: Any, visible: Mask, hidden: Mask) -> Floats:
    """Return the log-probability of hidden votes under a fit without them."""
    rows = data.select_annotations(hidden)
    probas = fit.predict_proba(rows)
    return np.asarray(np.log(np.maximum(probas[np.arange(len(probas)), rows.outcome], SMALLEST)))


SCORER = PairScorer
