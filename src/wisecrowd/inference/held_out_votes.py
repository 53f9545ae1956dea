r"""Held-out votes: how well a fit predicts votes that were hidden from it, without any truth.

The votes are split into five folds. Each fold is hidden once, a method is fitted to the others, and
its ``predict_proba`` gives the probabilities of left, right and tie of each hidden vote. The score
is the mean log-probability of the actual outcomes.

Every method for pairs has probabilities of the same three outcomes, so that scores are comparable.
Models with ties use their own. The others have one common layer,

.. math:: p(\text{left}, \text{right}, \text{tie}) \propto (e^{a x / 2}, e^{-a x / 2}, e^\theta),

on their log-odds :math:`x`, whose two parameters are estimated from the visible votes
(``wisecrowd.families.tie_layer``).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.exceptions import DataError
from wisecrowd.core.pairs import CrowdPairs
from wisecrowd.core.parameter_checks import check_integer

Floats = NDArray[np.float64]
Ints = NDArray[np.integer[Any]]

N_FOLDS = 5
SMALLEST = 1e-15  # probabilities below count as this much


def vote_folds(data: CrowdPairs, n_folds: int = N_FOLDS) -> NDArray[np.int8]:
    """Return the fold of each vote (n_annotations,); votes of weight 0 have the fold -1.

    Folds alternate along the votes in a random order with a fixed seed, so their sizes differ by
    one at most, and equal data have equal folds.

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
    folds[counts[order]] = np.arange(len(counts)) % n_folds
    return folds


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


def paired_vote_difference(a: HeldOutVotes, b: HeldOutVotes) -> tuple[float, float]:
    """Return the mean of ``a - b`` per vote and its standard error over workers.

    Both scores must be of the same votes. The standard error of a difference is usually far below
    that of each score: votes that are hard to predict are hard for both.
    """
    if len(a.per_vote) != len(b.per_vote) or not np.array_equal(a.worker, b.worker):
        raise ValueError("The scores are of different votes; use the same data for both.")
    difference = HeldOutVotes(a.per_vote - b.per_vote, a.correct, a.worker, a.weight)
    return difference.mean, difference.standard_error


def held_out_votes(
    make_fit: Callable[[CrowdPairs], Any], data: CrowdPairs, n_folds: int = N_FOLDS
) -> HeldOutVotes:
    """Fit a method without each fold and score the votes that were hidden from it.

    Parameters
    ----------
    make_fit : function of CrowdPairs to a fitted method
        Fits the method to the visible votes, which keep all vocabularies.
    data : CrowdPairs
    n_folds : int

    Raises
    ------
    DataError
        If there are fewer votes than folds.
    """
    folds = vote_folds(data, n_folds)
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
