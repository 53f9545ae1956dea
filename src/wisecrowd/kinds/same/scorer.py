"""Scores of clusters, whatever their numbers, and how methods for sameness are compared."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.exceptions import DataError
from wisecrowd.core.ids.encoding import encode
from wisecrowd.core.types import Ints
from wisecrowd.inference.held_out import HeldOutScore
from wisecrowd.inference.scorers import NEAR_BEST, Evaluation, MakeFit, ResultFile
from wisecrowd.kinds.pairs.scorer import VotePlan, held_out_votes
from wisecrowd.kinds.same.answers import known_clusters
from wisecrowd.kinds.same.container import CrowdSame


def contingency(truth: Ints, found: Ints) -> NDArray[np.int64]:
    """Return (n_true, n_found) counts of items."""
    _, one = np.unique(truth, return_inverse=True)
    _, two = np.unique(found, return_inverse=True)
    shape = int(one.max(initial=-1)) + 1, int(two.max(initial=-1)) + 1
    return np.bincount(one * shape[1] + two, minlength=shape[0] * shape[1]).reshape(shape)


def matched_accuracy(truth: Ints, found: Ints) -> float:
    """Return the share of items in the right cluster, after the best one-to-one matching.

    Examples
    --------
    >>> matched_accuracy(np.array([0, 0, 1, 1]), np.array([5, 5, 5, 2]))
    0.75
    """
    from scipy.optimize import linear_sum_assignment

    table = contingency(truth, found)
    rows, columns = linear_sum_assignment(-table)
    return float(table[rows, columns].sum() / max(len(truth), 1))


def adjusted_rand_index(truth: Ints, found: Ints) -> float:
    """Return the agreement of two clusterings on pairs of items: 1 equal, 0 as by chance.

    Examples
    --------
    >>> adjusted_rand_index(np.array([0, 0, 1, 1]), np.array([5, 5, 2, 2]))
    1.0
    """
    table = contingency(truth, found)
    both, one, two = (_pairs(x) for x in (table, table.sum(axis=1), table.sum(axis=0)))
    total = _pairs(np.array([len(truth)]))
    expected = one * two / max(total, 1.0)
    largest = (one + two) / 2
    return float((both - expected) / (largest - expected)) if largest > expected else 1.0


def cluster_scores(truth: Ints, found: Ints) -> dict[str, float]:
    """Return the scores of clusters, for items with a truth of 0 or more."""
    known = truth >= 0
    return {
        "matched_accuracy": matched_accuracy(truth[known], found[known]),
        "adjusted_rand_index": adjusted_rand_index(truth[known], found[known]),
    }


def _pairs(count: NDArray[np.int64]) -> float:
    size = count.astype(np.float64)
    return float((size * (size - 1) / 2).sum())


class SameScorer:
    """Scores of methods that take votes on sameness."""

    with_truth: ClassVar[tuple[str, ...]] = ("matched_accuracy", "adjusted_rand_index")
    claims: ClassVar[tuple[str, ...]] = ("mean_confidence",)
    explanations: ClassVar[tuple[str, ...]] = (
        "held-out score: mean log-probability of votes that were hidden from the fit; higher is "
        "better; ± SE is its standard error over workers",
        NEAR_BEST,
        "mean confidence: mean probability of the clusters, the method's own claim, which is "
        "about the clusters that workers see",
    )

    def match(self, truth: Any, data: CrowdSame) -> Any:
        """Return the true clusters of items, -1 where unknown."""
        return None if truth is None else known_clusters(truth, data.items)

    def score(self, model: Any, truth: Any) -> dict[str, float]:
        """Return the scores of the clusters, whatever their numbers."""
        return cluster_scores(truth, model.cluster_)

    def plan(self, data: CrowdSame) -> VotePlan:
        """Return the votes to hide, in folds."""
        return VotePlan(data)

    def score_held_out(self, fit: MakeFit, plan: VotePlan) -> HeldOutScore:
        """Return the log-probabilities of hidden votes, with their workers as groups."""
        found = held_out_votes(fit, plan.data, nameless=False)
        return HeldOutScore(found.per_vote, found.worker, found.weight)

    def claim(self, model: Any, data: CrowdSame) -> dict[str, float]:
        """Return the mean probability of the clusters of items with votes."""
        voted = data.comparisons_per_item > 0
        return {"mean_confidence": float(np.mean(model.probability_[voted]))}

    def agreement(self, one: Any, other: Any) -> float:
        """Return the adjusted Rand index of the clusters."""
        return adjusted_rand_index(one.cluster_, other.cluster_)


def evaluate(found: ResultFile, truth: Any, notes: Any) -> Evaluation:
    """Score a file of clusters, item and cluster, whatever the names of the clusters."""
    if not {"item", "cluster"} <= set(found.names):
        raise found.refuse_columns("clusters need item and cluster")
    items = found.column("item")
    ids = np.empty(len(items), dtype=object)
    ids[:] = items
    found.require_once(items, "Item")
    codes = encode(found.column("cluster"), "cluster").codes
    if (codes < 0).any():
        raise DataError(
            f"Item {ids[int(np.argmax(codes < 0))]!r} has no cluster in {found.path}; fill it in."
        )
    wanted = known_clusters(dict(zip(*truth.pairs(notes), strict=True)), ids)
    n_scored = int(np.count_nonzero(wanted >= 0))
    return Evaluation(cluster_scores(wanted, codes), n_scored, len(ids), "items")


SCORER = SameScorer
