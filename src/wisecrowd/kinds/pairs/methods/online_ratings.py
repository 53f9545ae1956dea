"""Methods that update ratings vote by vote: order of time, other orders, and humble intervals."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from types import ModuleType
from typing import Any, ClassVar

import numpy as np

from wisecrowd.core.aggregator import Tags
from wisecrowd.core.exceptions import DataError
from wisecrowd.core.result import Fit
from wisecrowd.core.saved_attributes import Saved, SavedArray
from wisecrowd.core.types import Floats, Ints
from wisecrowd.kernels import kernels_for
from wisecrowd.kinds.pairs import kernels as reference
from wisecrowd.kinds.pairs.container import CrowdPairs
from wisecrowd.kinds.pairs.methods.base import TIE_LAYER, ComparisonMethod, fit_tie_layer
from wisecrowd.kinds.pairs.methods.comparisons import (
    Votes,
    agreement,
    centred,
    require_votes,
    single_votes,
)
from wisecrowd.kinds.pairs.methods.covariance import MOST_DENSE
from wisecrowd.kinds.pairs.methods.intervals import N_DRAWS, item_answers, item_findings

# A pass over votes in an order: scores in logits and their variances, (n_items,) each, and extras.
Pass = Callable[[ModuleType, reference.TimedVotes, Ints], tuple[Floats, Floats, dict[str, Any]]]

N_ORDERS = 20
RESULT = np.array([1.0, 0.0, 0.5])


class OnlineMethod(ComparisonMethod):
    """Base of the online methods; they refuse votes without timestamps.

    The spread of the scores over 20 random orders of the votes is published as ``order_spread_``
    and added to the intervals, because the order of time is as arbitrary as any other one unless
    items change.
    """

    promises: ClassVar[Tags] = Tags(inductive=False, likelihood=True, exact_replication=False)
    saves: ClassVar[dict[str, Saved]] = {**TIE_LAYER, "order_spread_": SavedArray("A", "amount")}
    needs_timestamps: ClassVar[bool] = True

    def _online_fit(self, data: CrowdPairs, run: Pass) -> Fit:
        votes = single_votes(data)
        require_votes(votes, 1.0)
        order = time_order(data, type(self).__name__)
        kernels = kernels_for("online_ratings", data.n_annotations * (N_ORDERS + 1))
        rows = reference.TimedVotes(
            data.left, data.right, data.worker, RESULT[data.outcome], data.weights
        )
        scores, variance, extra = run(kernels, rows, order)
        scores = centred(scores, votes.compared)
        rng, others = np.random.default_rng(0), []
        for _ in range(N_ORDERS):
            other = run(kernels, rows, order[rng.permutation(len(order))])[0]
            others.append(centred(other, votes.compared))
        spread = np.std(others, axis=0)
        answers = item_answers(scores, votes, **_errors(variance + spread**2))
        layer = fit_tie_layer(votes.gap(scores), votes.counts)
        accuracy, error = agreement(data, scores)
        return Fit(
            replace(answers, covariance=None),
            worker_accuracy=accuracy, worker_accuracy_error=error,
            findings=item_findings(answers, data.items),
            extra={"tie_layer": layer, "order_spread": spread, **extra},
        )  # fmt: skip

    def _logit(self, data: CrowdPairs) -> Floats:
        return np.asarray(self.scores_[data.left] - self.scores_[data.right])


def _errors(variance: Floats) -> dict[str, Any]:
    """Return independent errors, as a covariance or, with very many items, as draws."""
    if len(variance) <= MOST_DENSE:
        return {"covariance": np.diag(variance)}
    draws = np.random.default_rng(0).standard_normal((N_DRAWS // 10, len(variance)))
    return {"draws": draws * np.sqrt(variance)}


def time_order(data: CrowdPairs, method: str) -> Ints:
    """Return the order of time of the votes; votes without a time are refused.

    Votes at the same time are in the order of task, worker and outcome.
    """
    times = data.columns.get("timestamp")
    if times is None:
        raise DataError(
            f"{method} needs the time of each vote, because its result depends on their order; "
            "give a timestamp column, or choose crowd-bt or bradley-terry."
        )
    missing = np.isnat(times) if times.dtype.kind == "M" else np.isnan(times)
    if missing.any():
        raise DataError(
            f"{int(missing.sum())} votes have no timestamp, and {method} needs the order of all; "
            "fill them in or remove the rows."
        )
    return np.argsort(times, kind="stable")


def information(votes: Votes, scores: Floats) -> Floats:
    """Return the variance of each score if the others were known, with a weak prior, (n_items,)."""
    gap = votes.gap(scores)
    p = 1 / (1 + np.exp(-np.clip(gap, -30, 30)))
    weight = votes.counts.sum(axis=1) * p * (1 - p)
    n = votes.n_items
    found = np.bincount(votes.left, weight, n) + np.bincount(votes.right, weight, n)
    return np.asarray(1 / (0.25 + found))
