r"""RankCentrality: scores are the stationary distribution of a walk from losers to winners.

The walk goes from item a to a compared item b with probability

.. math:: P_{ab} = \frac{1}{m} \frac{w_{ba} + \epsilon}{w_{ab} + w_{ba} + 2 \epsilon},

where :math:`w_{ba}` counts the wins of b over a and m is the largest number of opponents of an
item, and stays otherwise. Under Bradley-Terry, the shares of wins satisfy the detailed balance
:math:`e^{s_a} P_{ab} = e^{s_b} P_{ba}`, so scores are the logarithm of the stationary distribution.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from wisecrowd.core.aggregator import Tags
from wisecrowd.core.parameter_checks import Limits, Number
from wisecrowd.core.problem import Problem
from wisecrowd.core.result import Fit
from wisecrowd.core.saved_attributes import Saved
from wisecrowd.core.statistics import log_sigmoid, sigmoid
from wisecrowd.core.types import Floats
from wisecrowd.kinds.pairs.container import CrowdPairs
from wisecrowd.kinds.pairs.methods.base import TIE_LAYER, ComparisonMethod, fit_tie_layer
from wisecrowd.kinds.pairs.methods.comparisons import (
    Votes,
    agreement,
    pair_votes,
    parts,
    require_votes,
    single_votes,
)
from wisecrowd.kinds.pairs.methods.covariance import check_clusters
from wisecrowd.kinds.pairs.methods.vote_laws import Solution, VirtualItem, fitted, uncertain_scores

DENSE = 2000  # items of a part up to which the distribution is solved for directly
MOST_STEPS, CLOSE = 100_000, 1e-12  # of the power iteration above
SMALLEST = 1e-300


@dataclass(frozen=True, eq=False)
class LogisticLaw(VirtualItem):
    """Law of a vote under Bradley-Terry, for the intervals; ties are half a vote for each side."""

    def terms(
        self, gap: Floats, shared: Floats, own: Floats, counts: Floats
    ) -> tuple[Floats, Floats]:
        """Return log-likelihood and gradient of each row; see VoteLaw."""
        left, right = (counts[:, k] + 0.5 * counts[:, 2] for k in (0, 1))
        value = left * log_sigmoid(gap) + right * log_sigmoid(-gap)
        return value, (left - (left + right) * sigmoid(gap))[:, None]

    def log_prior(self, shared: Floats, own: Floats) -> tuple[float, Floats, Floats]:
        """Return nothing: only the scores have a prior."""
        return 0.0, np.zeros(len(shared)), np.zeros(own.shape)


@dataclass(eq=False, repr=False, kw_only=True)
class RankCentrality(ComparisonMethod):
    r"""Scores from a random walk over items that moves to the winners of votes.

    .. math:: s_a = \log \pi_a, \qquad \pi^\top P = \pi^\top, \qquad
        P_{ab} \propto \text{share of the wins of } b \text{ over } a

    Use it when a second opinion without a likelihood is wanted; Bradley-Terry has smaller errors.
    Cost: O(items³) up to 2000 connected items, O(pairs) per step of a power iteration above.

    Parameters
    ----------
    smoothing : float
        Wins that are added to both items of every compared pair. Without them, every item must
        beat every other one through a chain of wins.
    cluster : {"auto", "workers", "tasks", "votes"}
        Votes that may depend on each other, for intervals. "auto" takes workers if there are two
        or more. Fewer than 10 only widen the intervals by votes.

    Attributes
    ----------
    scores_, low_, high_ : (n_items,)
        Scores in logits with mean 0, and 95% intervals.
    rank_, rank_low_, rank_high_, p_best_, tied_with_best_, component_ : (n_items,)
    covariance_ : (n_items, n_items)
        Covariance of the scores, up to 5000 items.
    worker_accuracy_, worker_accuracy_error_ : (n_workers,)
        Share of votes for the item with the higher score; ties count half.
    tie_layer_ : (2,)
        Scale and level of the probability of ties in ``predict_proba``.

    Notes
    -----
    The intervals are those of Bradley-Terry at these scores, which is optimistic: the walk uses
    votes less well. Items of different connected parts are not comparable.

    References
    ----------
    S. Negahban, S. Oh, D. Shah (2017). Rank centrality: ranking from pairwise comparisons.
    Operations Research 65.

    Examples
    --------
    >>> votes = (["x", "x", "x", "y"], ["y", "y", "z", "z"], ["left", "right", "left", "left"])
    >>> RankCentrality().fit(votes).rank_
    array([1, 1, 3])
    """

    smoothing: float = 1.0
    cluster: str = "auto"

    promises: ClassVar[Tags] = Tags(inductive=False, likelihood=True)
    saves: ClassVar[dict[str, Saved]] = TIE_LAYER

    limits: ClassVar[Limits] = {"smoothing": Number(0.0, 1000000.0), "cluster": check_clusters}

    def _fit(self, problem: Problem[CrowdPairs, None]) -> Fit:
        data = problem.data
        votes, rows = single_votes(data), pair_votes(data)
        require_votes(rows, self.smoothing, name="smoothing")
        scores = np.log(np.maximum(stationary(rows, self.smoothing), SMALLEST))
        scores -= scores[rows.compared].mean()
        at = Solution(scores, np.zeros(0), np.zeros((data.n_workers, 0)), (), 1, True)
        law = LogisticLaw(0.5)
        answers, _, clusters = uncertain_scores(law, votes, at, data, self.cluster)
        layer = fit_tie_layer(rows.gap(scores), rows.counts)
        accuracy = agreement(data, answers.scores)
        return fitted(answers, at, clusters, data, accuracy, {"tie_layer": layer})

    def _logit(self, data: CrowdPairs) -> Floats:
        return np.asarray(self.scores_[data.left] - self.scores_[data.right])


def stationary(votes: Votes, smoothing: float) -> Floats:
    """Return the stationary distribution (n_items,), with the mass of a part like its size."""
    from scipy import sparse

    n, wins = votes.n_items, votes.halved + smoothing
    used = votes.counts.sum(axis=1) > 0
    left, right, wins = votes.left[used], votes.right[used], wins[used]
    share = wins[:, 0] / wins.sum(axis=1)
    degree = np.bincount(left, minlength=n) + np.bincount(right, minlength=n)
    most = max(int(degree.max(initial=1)), 1)
    source, target = np.concatenate([right, left]), np.concatenate([left, right])
    chance = np.concatenate([share, 1 - share]) / most
    walk = sparse.csr_matrix((chance, (source, target)), shape=(n, n))
    walk += sparse.diags(1 - np.asarray(walk.sum(axis=1)).ravel())
    component = parts(left, right, n)
    found = np.full(n, 1 / n)
    for part in range(int(component.max()) + 1):
        items = np.flatnonzero(component == part)
        if len(items) > 1:
            inside = walk[items][:, items]
            found[items] = _of_part(inside) * len(items) / n
    return found


def _of_part(walk: Any) -> Floats:
    """Return the stationary distribution of a connected walk."""
    size = walk.shape[0]
    if size <= DENSE:
        # One of the balance equations follows from the others; the sum takes its place.
        system = walk.toarray().T - np.eye(size)
        system[-1] = 1
        found = np.linalg.solve(system, np.append(np.zeros(size - 1), 1.0))
        return np.maximum(found, SMALLEST)
    found, turned = np.full(size, 1 / size), walk.T.tocsr()
    for _ in range(MOST_STEPS):
        new = turned @ found
        moved = float(np.abs(new - found).max()) * size
        found = new / new.sum()
        if moved <= CLOSE:
            break
    return found
