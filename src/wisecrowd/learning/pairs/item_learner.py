"""ItemLearner: the learner of a reward from features of items and votes on pairs of them.

Nothing here needs torch.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.exceptions import DataError
from wisecrowd.core.findings import Finding
from wisecrowd.core.ids.encoding import lookup
from wisecrowd.core.saved_attributes import NUMBER, Saved, SavedArray
from wisecrowd.core.types import Floats
from wisecrowd.kinds.pairs.answers import kendall_tau
from wisecrowd.kinds.pairs.container import CrowdPairs
from wisecrowd.kinds.pairs.outcomes import LEFT, RIGHT
from wisecrowd.learning.base import Learner, Outcome, TrainingSet
from wisecrowd.learning.training.rows_of_features import (
    ITEM_ROWS,
    RowWords,
    require_given,
    row_of_ids,
)


@dataclass(frozen=True, eq=False)
class PairTraining(TrainingSet):
    """Validated input of a fit to votes; rewards have neither gold nor a validation set."""

    labels: CrowdPairs


@dataclass(frozen=True, eq=False)
class LearnedReward(Outcome):
    """Results of a fit to votes.

    Attributes
    ----------
    scores : (A,)
        The reward of each item, on any level.
    reliability : (J,), optional
        Probability that a vote of each worker is not turned around.
    """

    scores: Floats
    reliability: Floats | None = None


@dataclass(eq=False, repr=False, kw_only=True)
class ItemLearner(Learner):
    """Base class of methods that learn the reward of items, with ``fit`` and ``predict``.

    A method is a dataclass whose fields are its parameters, with ``_fit(training) ->
    LearnedReward`` and ``_rewards(X)``, the reward of new items on any level.

    Attributes
    ----------
    items_, tasks_, workers_ : arrays of ids
    scores_ : (A,)
        Rewards in logits, mean 0 over the compared items.
    rank_ : (A,)
        1 for the best item.
    reliability_, worker_accuracy_ : (J,), where the model has them
        Probability that a vote is not turned around; mean probability that a vote agrees with the
        order of the scores.
    """

    takes: ClassVar[str] = "pairs"
    rows_are: ClassVar[str] = "items"
    words: ClassVar[RowWords] = ITEM_ROWS
    without_labels: ClassVar[str] = "scores them by their features alone."
    saves: ClassVar[dict[str, Saved]] = {
        "scores_": SavedArray("A"),
        "rank_": SavedArray("A", "count"),
        "center_": NUMBER,
        "reliability_": SavedArray("J", "probability", optional=True),
        "worker_accuracy_": SavedArray("J", "probability", optional=True),
    }
    _fit_call = "fit(X, pairs)"

    def _saved_attributes(self) -> dict[str, Saved]:
        # A reward has no intervals, so the answers of the kind are not all there.
        found: dict[str, Saved] = dict(self._kind().container.saves)
        for base in reversed(type(self).__mro__):
            found |= vars(base).get("saves", {})
        return found

    # -------------------------------------------------------------------------------------- fit

    def fit(self, X: Any, y: Any = None, *, items: Any = None, resume: bool | None = False) -> Self:
        """Fit to features of items and votes on pairs of them.

        Parameters
        ----------
        X : (A, d) or (A, ...) array, frame of numbers, or torch Dataset
            One row per item.
        y : CrowdPairs, frame, or tuple of columns
            Votes; a tuple is (left, right, outcome), (worker, left, right, outcome) or
            (task, worker, left, right, outcome).
        items : (A,) ids, optional
            Item of each row of ``X``. Without it, items must be row numbers.
        resume : bool, optional
            Resume from the checkpoint of an interrupted fit. None refuses to overwrite one.
        """
        return self._learn(X, y, items, resume=resume)

    def _training(
        self, X: Any, y: Any, ids: Any, gold: Any, valid: Any, resume: Any
    ) -> PairTraining:
        votes = as_pair_targets(y, len(X), ids)
        if votes.n_annotations == 0:
            raise DataError("There are no votes to fit; give votes on some rows of X.")
        if votes.relation != "prefers":
            raise DataError(
                f"The votes say which items are {votes.relation!r}, and a reward needs "
                "preferences; give votes with relation 'prefers'."
            )
        return PairTraining(X, votes, resume=resume)

    def _answer(self, training: PairTraining, result: LearnedReward) -> tuple[Finding, ...]:
        votes = training.labels
        compared = votes.comparisons_per_item > 0
        self.center_ = float(result.scores[compared].mean())
        self.scores_ = result.scores - self.center_
        self.rank_ = ranks(self.scores_)
        if result.reliability is not None:
            self.reliability_ = result.reliability
            self.worker_accuracy_ = agreement(self.scores_, votes, result.reliability)
        return ()

    # ---------------------------------------------------------------------------------- predict

    def _rewards(self, X: Any) -> Floats:
        raise TypeError(f"{type(self).__name__} must define _rewards.")

    def predict(self, X: Any) -> Floats:
        """Return the (n,) scores of items, in logits, on the level of ``scores_``."""
        return np.asarray(self._rewards(self._checked(X)) - self.center_)

    def predict_pairs(self, left: Any, right: Any) -> Floats:
        """Return the (n,) probabilities that the items in the rows of ``left`` are better.

        Parameters
        ----------
        left, right : (n, d) features
            One pair of items per row.
        """
        one, two = self.predict(left), self.predict(right)
        if len(one) != len(two):
            raise DataError(
                f"There are {len(one)} left and {len(two)} right items; give one pair per row."
            )
        return sigmoid(one - two)

    def score(self, X: Any, y: Any, *, items: Any = None) -> float:
        """Return Kendall's τ with true scores or, on votes, their mean log-likelihood.

        Parameters
        ----------
        X : features of items
        y : (n,) true scores, or votes as in ``fit``
            With votes, a scikit-learn search selects by their likelihood.
        items : (n,) ids, optional
        """
        features = self._checked(X)
        frame = hasattr(y, "columns") or hasattr(y, "column_names")
        if not isinstance(y, CrowdPairs | tuple) and not frame:
            truth = np.asarray(y, dtype=np.float64)
            if truth.shape != (len(features),):
                raise DataError(
                    f"X has {len(features)} rows and y has shape {truth.shape}; give votes, or one "
                    "true score per row."
                )
            return kendall_tau(self.predict(X), truth)
        votes = as_pair_targets(y, len(features), items)
        return float(np.average(self._vote_log_probas(features, votes), weights=votes.weights))

    def _vote_log_probas(self, X: Any, votes: CrowdPairs) -> Floats:
        """Return (E,) log-probabilities of votes; workers who were not in the fit are typical."""
        rewards = self._rewards(X)
        margin, share = rewards[votes.left] - rewards[votes.right], left_share(votes)
        if "reliability_" in vars(self):
            known = lookup(votes.workers, self.workers_)
            typical = float(np.average(self.reliability_, weights=self.labels_per_worker_))
            eta = np.where(known >= 0, self.reliability_[known], typical)[votes.worker]
        else:
            eta = np.ones(len(margin))
        p = eta * sigmoid(margin) + (1 - eta) * sigmoid(-margin)
        won, lost = np.log(np.maximum(p, 1e-300)), np.log(np.maximum(1 - p, 1e-300))
        return np.asarray(share * won + (1 - share) * lost)

    # ----------------------------------------------------------------------------- tables, files

    def main_columns(self) -> dict[str, NDArray[Any]]:
        """Return one row per item: score, rank and number of comparisons."""
        self._require_fitted()
        return {
            "item": self.items_, "score": self.scores_, "rank": self.rank_,
            "n_comparisons": self.comparisons_per_item_,
        }  # fmt: skip

    def task_columns(self) -> dict[str, NDArray[Any]]:
        """Return the table of items: the answers are about these."""
        return self.main_columns()

    def worker_columns(self) -> dict[str, NDArray[Any]]:
        """Return agreement and reliability of each worker, if the model has them."""
        self._require_fitted()
        names = {"agreement_with_result": "worker_accuracy_", "reliability": "reliability_"}
        own = {column: vars(self)[name] for column, name in names.items() if name in vars(self)}
        return {"worker": self.workers_, "n_labels": self.labels_per_worker_, **own}

    def prediction_columns(self, X: Any, ids: Any = None) -> dict[str, NDArray[Any]]:
        """Return the table of ``wisecrowd predict``: item and score."""
        scores = self.predict(X)
        return {"item": np.arange(len(scores)) if ids is None else ids, "score": scores}


def sigmoid(margin: Floats) -> Floats:
    """Return 1 / (1 + exp(-margin)), without overflow."""
    return np.asarray(np.exp(-np.logaddexp(0, -margin)))


def left_share(votes: CrowdPairs) -> Floats:
    """Return (E,): 1 where the left item won, 0 where the right one did, 0.5 for ties."""
    return np.where(votes.outcome == LEFT, 1.0, np.where(votes.outcome == RIGHT, 0.0, 0.5))


def ranks(scores: Floats) -> NDArray[np.int64]:
    """Return the rank of each score, 1 for the largest; equal scores share the best rank.

    Examples
    --------
    >>> ranks(np.array([0.5, 2.0, 0.5])).tolist()
    [2, 1, 2]
    """
    return np.searchsorted(np.sort(-scores), -scores).astype(np.int64) + 1


def agreement(scores: Floats, votes: CrowdPairs, reliability: Floats) -> Floats:
    r"""Return (J,) mean probabilities that a vote agrees with the order of the scores.

    A worker without votes gets the mean over all votes.
    """
    gap = np.abs(scores[votes.left] - scores[votes.right])

    def expected(eta: Floats) -> Floats:
        return np.asarray(eta * sigmoid(gap) + (1 - eta) * sigmoid(-gap))

    n_workers, weight = votes.n_workers, votes.weights
    total = np.bincount(votes.worker, weight, n_workers)
    own = np.bincount(votes.worker, weight * expected(reliability[votes.worker]), n_workers)
    typical = float(np.average(sigmoid(gap), weights=weight))
    anybody = reliability * typical + (1 - reliability) * (1 - typical)
    return np.where(total > 0, own / np.where(total > 0, total, 1.0), anybody)


def as_pair_targets(y: Any, n_rows: int, items: Any = None) -> CrowdPairs:
    """Return comparisons whose item ``a`` is row ``a`` of the features.

    Parameters
    ----------
    y : CrowdPairs, frame, or tuple of columns
    n_rows : int
        Number of rows of the features.
    items : (n_rows,) ids, optional
        The item of each row. Without it the items must be the row numbers.

    Examples
    --------
    >>> as_pair_targets((["x", "y"], ["y", "z"], ["left", "tie"]), 3, ["z", "y", "x"]).left.tolist()
    [2, 1]
    """
    require_given(y)
    pairs = CrowdPairs.coerce(y)
    used = pairs.comparisons_per_item > 0
    row, ids = row_of_ids(pairs.items, used, n_rows, items, ITEM_ROWS)
    left, right = (row[code].astype(np.int32) for code in (pairs.left, pairs.right))
    return replace(pairs, left=left, right=right, items=ids)
