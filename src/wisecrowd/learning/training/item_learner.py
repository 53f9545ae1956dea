"""ItemLearner: the interface of methods that learn a reward from features of items and votes.

Nothing here needs torch.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.concurrency import exclusive_fit
from wisecrowd.core.estimator import Estimator
from wisecrowd.core.exceptions import DataError
from wisecrowd.core.features import as_features, as_pair_targets, is_dataset
from wisecrowd.core.findings import Finding, warn_of
from wisecrowd.core.ids.encoding import lookup
from wisecrowd.core.item_answers import kendall_tau
from wisecrowd.core.outcomes import LEFT, RIGHT
from wisecrowd.core.pairs import CrowdPairs
from wisecrowd.core.parameter_checks import as_generator
from wisecrowd.core.saved_attributes import (
    NUMBER,
    RECORDS,
    Saved,
    SavedArray,
    SavedValue,
    is_count,
)

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class PairTraining:
    """Validated input of a fit.

    Attributes
    ----------
    X : (A, ...) array or dataset
    votes : CrowdPairs
        Item ``a`` is row ``a`` of ``X``.
    """

    X: Any
    votes: CrowdPairs
    resume: bool | None = False
    valid: None = None  # rewards have no validation set


@dataclass(frozen=True, eq=False)
class LearnedReward:
    """Results of a fit.

    Attributes
    ----------
    scores : (A,)
        The reward of each item, on any level.
    reliability : (J,), optional
        Probability that a vote of each worker is not turned around.
    extra, private : dict
        Further results, published with a trailing underscore, and parts that predictions need,
        such as the network, published with a leading one.
    """

    scores: Floats
    reliability: Floats | None = None
    n_iter: int = 1
    converged: bool = True
    history: tuple[dict[str, float], ...] = ()
    findings: tuple[Finding, ...] = ()
    extra: dict[str, Any] = field(default_factory=dict)
    private: dict[str, Any] = field(default_factory=dict)


@dataclass(eq=False, repr=False, kw_only=True)
class ItemLearner(Estimator):
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
    n_iter_, converged_, history_
    findings_ : tuple of Finding, what casts doubt on the result
    warnings_ : tuple of str, the texts of the findings
    """

    random_state: int | None = 0

    takes: ClassVar[str] = "pairs"
    rows_are: ClassVar[str] = "items"
    streams: ClassVar[bool] = False
    saves: ClassVar[dict[str, Saved]] = {
        "scores_": SavedArray("A"),
        "rank_": SavedArray("A", "count"),
        "center_": NUMBER,
        "reliability_": SavedArray("J", "probability", optional=True),
        "worker_accuracy_": SavedArray("J", "probability", optional=True),
        "history_": RECORDS,
        "n_features_in_": SavedValue(is_count, "a count", optional=True),
        "feature_names_in_": SavedArray("features", "id", optional=True),
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
        self._validate_parameters()
        features = as_features(X, mapped=self.streams)
        votes = as_pair_targets(y, len(features), items)
        if votes.n_annotations == 0:
            raise DataError("There are no votes to fit; give votes on some rows of X.")
        if votes.relation != "prefers":
            raise DataError(
                f"The votes say which items are {votes.relation!r}, and a reward needs "
                "preferences; give votes with relation 'prefers'."
            )
        training = PairTraining(features, votes, resume)
        with exclusive_fit(self):
            # A new object sees nothing of an earlier fit, and after an error self is unchanged.
            fresh = type(self)(**self.get_params(deep=False))
            fresh._publish(X, training, fresh._fit(training))
            self._forget()
            vars(self).update(vars(fresh))
        return self

    def _validate_parameters(self) -> None:
        """Check the shared parameters; subclasses check their own and call super."""
        as_generator(self.random_state)

    def _fit(self, training: PairTraining) -> LearnedReward:
        raise TypeError(f"{type(self).__name__} must define _fit.")

    def _publish(self, X: Any, training: PairTraining, result: LearnedReward) -> None:
        votes = training.votes
        for name, value in votes.attributes().items():
            setattr(self, name, value)
        for name, value in result.extra.items():
            setattr(self, name + "_", value)
        for name, value in result.private.items():
            setattr(self, "_" + name, value)
        compared = votes.comparisons_per_item > 0
        self.center_ = float(result.scores[compared].mean())
        self.scores_ = result.scores - self.center_
        self.rank_ = ranks(self.scores_)
        if result.reliability is not None:
            self.reliability_ = result.reliability
            self.worker_accuracy_ = agreement(self.scores_, votes, result.reliability)
        self._frame_library = votes.frame_library
        self.n_iter_, self.converged_ = result.n_iter, result.converged
        self.history_ = result.history
        self.findings_ = (*_unseen_items(self, votes), *result.findings)
        self.warnings_ = tuple(map(str, self.findings_))
        if not is_dataset(X):
            self.n_features_in_ = int(training.X.shape[1])
            if hasattr(X, "columns") and all(isinstance(name, str) for name in X.columns):
                self.feature_names_in_ = np.asarray(list(X.columns), dtype=object)
        warn_of(self.findings_, stacklevel=3)

    # ---------------------------------------------------------------------------------- predict

    def _rewards(self, X: Any) -> Floats:
        raise TypeError(f"{type(self).__name__} must define _rewards.")

    def _checked(self, X: Any) -> Any:
        self._require_fitted()
        n_features = vars(self).get("n_features_in_")
        return as_features(X, n_features=n_features, owner=type(self).__name__, mapped=self.streams)

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

    def save(self, path: Any) -> None:
        """Save the fitted method to a folder; ``wisecrowd.load`` reads it."""
        self._require_fitted()
        importlib.import_module("wisecrowd.storage.saved_methods").save(self, path)

    def __sklearn_tags__(self) -> Any:
        """Return the estimator tags, for scikit-learn."""
        tags = importlib.import_module("sklearn.utils")
        return tags.Tags(
            estimator_type=None,
            target_tags=tags.TargetTags(required=True),
            input_tags=tags.InputTags(sparse=True),
        )


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


def _unseen_items(method: ItemLearner, votes: CrowdPairs) -> list[Finding]:
    bare = votes.comparisons_per_item == 0
    if not bare.any():
        return []
    text = (
        f"{int(bare.sum())} of {votes.n_items} rows of X have no votes; {type(method).__name__} "
        "scores them by their features alone."
    )
    ids = tuple(votes.items[bare].tolist())
    return [Finding("items-without-votes", "medium", float(bare.mean()), ids, text, "")]
