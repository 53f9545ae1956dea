"""RewardMixture: groups of workers with different rewards, from features and votes on pairs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.exceptions import ParameterError
from wisecrowd.core.ids.encoding import lookup
from wisecrowd.core.parameter_checks import (
    MOST_STARTS,
    Limits,
    Number,
    as_generator,
    check_integer,
    is_auto,
)
from wisecrowd.core.saved_attributes import Saved, SavedArray
from wisecrowd.core.types import Floats
from wisecrowd.inference.monitor import Progress, report
from wisecrowd.kinds.pairs.container import CrowdPairs
from wisecrowd.learning.base import FlatLearner
from wisecrowd.learning.pairs.item_learner import (
    ItemLearner,
    LearnedReward,
    PairTraining,
    left_share,
    sigmoid,
)

FOLDS = 5  # parts of the votes that are held out to choose the number of groups
MOST_GROUPS = 4  # candidates of "auto"
SAME_OBJECTIVE = 1e-9  # relative difference of objectives that counts as none


@dataclass(eq=False, repr=False, kw_only=True)
class RewardMixture(FlatLearner, ItemLearner):
    r"""Several linear rewards and the group of each worker, by EM; needs no torch.

    .. math::
        \sum_j \log \sum_g \pi_g \prod_{e \in j} \sigma(\pm h_{ge})
        - \frac{\lambda}{2} \sum_g \|w_g\|^2, \qquad h_{ge} = w_g^\top (x_{l_e} - x_{r_e})

    The E-step gives the membership of each worker, the M-step is a weighted logistic regression
    per group. The objective never decreases. Ties count half for each side. Features are
    standardised; rows of ``X`` that are not vectors are flattened.

    Use it when groups of workers want different things, so that one reward would be that of the
    majority. Cost per iteration: O(groups × (votes + items × features)) per step of L-BFGS.

    Parameters
    ----------
    n_groups : int or "auto"
        Number of groups :math:`G`. "auto" tries 1, 2, 3 and 4 and stops as soon as another group
        does not raise the likelihood of held-out votes by more than its standard error.
    l2 : float
        :math:`\lambda`, for weights of standardised features.
    n_init : int
        Number of random starts; that with the largest objective is kept.
    max_iter, tol : int, float
        Maximum number of iterations; relative gain that counts as converged.
    random_state : int

    Attributes
    ----------
    coef_ : (n_groups, n_features)
        Weights for the features as given; the largest group comes first.
    group_scores_ : (n_items, n_groups)
        The reward of each group in logits, mean 0 over the compared items.
    scores_ : (n_items,)
        The egalitarian reward, :math:`\min_g` of the rewards, each divided by its standard
        deviation over the compared items; mean 0.
    group_share_ : (n_groups,)
        :math:`\pi_g`.
    membership_ : (n_workers, n_groups)
        Probability of each group, given the votes of the worker.
    history_ : tuple of dict
        The objective after every iteration of the best start.

    Notes
    -----
    The paper fine-tunes language models and optimises the smallest utility. Here rewards are linear
    in given features, such as embeddings, and the smallest standardised reward is reported.

    References
    ----------
    Chakraborty et al. (2024). MaxMin-RLHF: alignment with diverse human preferences. ICML.

    Examples
    --------
    >>> X = np.arange(6.0).reshape(6, 1)
    >>> left, right = np.tile([0, 1, 2, 3, 4], 8), np.tile([1, 2, 3, 4, 5], 8)
    >>> worker = np.repeat(np.arange(8), 5)
    >>> votes = (worker, left, right, np.where(worker < 6, "right", "left"))
    >>> fit = RewardMixture(n_groups=2).fit(X, votes)
    >>> np.sign(fit.coef_[:, 0]), fit.membership_[:, 0].round()
    (array([ 1., -1.]), array([1., 1., 1., 1., 1., 1., 0., 0.]))
    """

    n_groups: Any = "auto"
    l2: float = 1.0
    n_init: int = 4
    max_iter: int = 100
    tol: float = 1e-6

    saves: ClassVar[dict[str, Saved]] = {
        "coef_": SavedArray("G inputs"),
        "group_scores_": SavedArray("A G"),
        "group_center_": SavedArray("G"),
        "group_scale_": SavedArray("G", "positive"),
        "group_share_": SavedArray("G", "distribution"),
        "membership_": SavedArray("J G", "distribution"),
    }

    limits: ClassVar[Limits] = {
        "l2": Number(1e-12),
    }

    def _axis_sizes(self, sizes: Mapping[str, int]) -> dict[str, int]:
        return {**super()._axis_sizes(sizes), "G": len(np.atleast_1d(self.group_share_))}

    def _validate_parameters(self) -> None:
        super()._validate_parameters()
        if not is_auto(self.n_groups):
            if isinstance(self.n_groups, str):
                raise ParameterError(
                    f"n_groups is {self.n_groups!r}; give an integer from 1 up, or 'auto'."
                )
            check_integer("n_groups", self.n_groups, 1, MOST_STARTS)

    # ---------------------------------------------------------------------------------------- fit

    def _fit(self, training: PairTraining) -> LearnedReward:
        self._refuse_to_resume(training, "writes no checkpoints")
        X, votes = self._as_matrix(training.X), training.labels
        mean, scale = X.mean(axis=0), X.std(axis=0)
        scale = np.where(scale > 1e-12 * (1 + np.abs(mean)), scale, np.inf)  # constant: no weight
        standard, rng = (X - mean) / scale, as_generator(self.random_state)
        n_groups = self.n_groups
        if is_auto(n_groups):
            n_groups = self._best_number(standard, votes, rng)
        mixture = self._best_start(standard, votes, int(n_groups), rng)
        coef = mixture.weights / scale
        rewards = X @ coef.T
        compared = rewards[votes.comparisons_per_item > 0]
        center, spread = compared.mean(axis=0), compared.std(axis=0)
        spread = np.where(spread > 0, spread, 1.0)
        extra = {
            "coef": coef, "group_scores": rewards - center, "group_center": center,
            "group_scale": spread, "group_share": mixture.share,
            "membership": mixture.membership,
        }  # fmt: skip
        return LearnedReward(
            egalitarian(rewards, center, spread),
            n_iter=len(mixture.history),
            converged=mixture.converged,
            history=tuple(
                {"iteration": float(i + 1), "objective": x} for i, x in enumerate(mixture.history)
            ),
            extra=extra,
        )

    def _best_start(
        self, X: Floats, votes: CrowdPairs, n_groups: int, rng: np.random.Generator
    ) -> Mixture:
        """Return the fit with the largest objective; equal ones go by the order of the starts."""
        best: Mixture | None = None
        for start in range(self.n_init if n_groups > 1 else 1):
            found = _EM(X, votes, self.l2).run(n_groups, self.max_iter, self.tol, rng)
            report(Progress(start + 1, self.n_init, found.history[-1]))
            if best is None or found.history[-1] > best.history[-1] + SAME_OBJECTIVE * abs(
                best.history[-1]
            ):
                best = found
        assert best is not None
        return best

    def _best_number(self, X: Floats, votes: CrowdPairs, rng: np.random.Generator) -> int:
        """Return the number of groups, by the likelihood of held-out votes."""
        fold = folds_by_worker(votes, rng)
        chosen, best = 1, self._held_out(X, votes, fold, 1, rng)
        for n_groups in range(2, min(MOST_GROUPS, votes.n_workers) + 1):
            values = self._held_out(X, votes, fold, n_groups, rng)
            gain = (values - best) * votes.weights
            error = np.sqrt(len(gain)) * gain.std()
            if not gain.sum() > error:
                break
            chosen, best = n_groups, values
        return chosen

    def _held_out(
        self, X: Floats, votes: CrowdPairs, fold: NDArray[Any], n_groups: int,
        rng: np.random.Generator,
    ) -> Floats:  # fmt: skip
        """Return (E,) log-probabilities of votes under fits to the other folds."""
        values = np.zeros(votes.n_annotations)
        for k in range(FOLDS):
            hidden = fold == k
            if hidden.all() or not hidden.any():
                continue
            found = self._best_start(X, votes.select_annotations(~hidden), n_groups, rng)
            unseen = votes.select_annotations(hidden)
            values[hidden] = vote_log_probas(
                X @ found.weights.T, unseen, found.membership[unseen.worker]
            )
        return values

    # --------------------------------------------------------------------------------- afterwards

    def predict_groups(self, X: Any) -> Floats:
        """Return the (n, n_groups) rewards of items, in logits, on the level of the fit."""
        rewards = self._group_rewards(self._checked(X))
        return np.asarray(rewards - self.group_center_)

    def _group_rewards(self, X: Any) -> Floats:
        flat = self._new_matrix(X)
        return np.asarray(flat @ self.coef_.T)

    def _rewards(self, X: Any) -> Floats:
        return egalitarian(self._group_rewards(X), self.group_center_, self.group_scale_)

    def _vote_log_probas(self, X: Any, votes: CrowdPairs) -> Floats:
        known = lookup(votes.workers, self.workers_)
        own = np.where((known >= 0)[:, None], self.membership_[known], self.group_share_)
        return vote_log_probas(self._group_rewards(X), votes, own[votes.worker])

    def worker_columns(self) -> dict[str, NDArray[Any]]:
        """Return the most probable group of each worker, counted from 0, and its probability."""
        self._require_fitted()
        return {
            **super().worker_columns(),
            "group": self.membership_.argmax(axis=1),
            "confidence": self.membership_.max(axis=1),
        }

    def main_columns(self) -> dict[str, NDArray[Any]]:
        """Return one row per item: egalitarian score, rank, comparisons, rewards of the groups."""
        columns = super().main_columns()
        each = enumerate(self.group_scores_.T)
        return {**columns, **{f"score_group_{g}": scores for g, scores in each}}


class Mixture(NamedTuple):
    """Result of EM: (G, d) weights, (G,) shares, (J, G) membership, objectives by iteration."""

    weights: Floats
    share: Floats
    membership: Floats
    history: list[float]
    converged: bool


class _EM:
    """EM from one random start; it holds what its steps need of the data."""

    def __init__(self, X: Floats, votes: CrowdPairs, l2: float) -> None:
        self.X, self.votes, self.l2 = X, votes, l2
        self.won, self.weight = left_share(votes), votes.weights
        self.active = np.bincount(votes.worker, self.weight, votes.n_workers) > 0

    def run(self, n_groups: int, max_iter: int, tol: float, rng: np.random.Generator) -> Mixture:
        """Iterate from random groups until the objective gains less than ``tol`` of its size."""
        group = rng.permutation(np.arange(self.votes.n_workers) % n_groups)
        # Soft groups: a worker who starts in the wrong one can leave it.
        membership = 0.8 * np.eye(n_groups)[group] + 0.2 / n_groups
        weights = np.zeros((n_groups, self.X.shape[1]))
        history: list[float] = []
        converged = False
        while len(history) < max_iter and not converged:
            weights = np.stack([self.solve(membership[:, g], weights[g]) for g in range(n_groups)])
            share = (membership[self.active].sum(axis=0) + 1) / (self.active.sum() + n_groups)
            membership, objective = self.memberships(weights, share)
            gain = objective - history[-1] if history else np.inf
            converged = bool(gain <= tol * max(1.0, abs(objective)))
            history.append(objective)
        order = np.argsort(-share, kind="stable")
        return Mixture(weights[order], share[order], membership[:, order], history, converged)

    def memberships(self, weights: Floats, share: Floats) -> tuple[Floats, float]:
        """E-step: return the (J, G) memberships and the objective, with its priors."""
        values = group_log_probas(self.X @ weights.T, self.votes) * self.weight[:, None]
        rows = np.tile(np.log(share), (self.votes.n_workers, 1))
        for g in range(len(share)):
            rows[:, g] += np.bincount(self.votes.worker, values[:, g], self.votes.n_workers)
        total = np.logaddexp.reduce(rows, axis=1, keepdims=True)
        prior = float(np.log(share).sum()) - 0.5 * self.l2 * float((weights**2).sum())
        return np.exp(rows - total), float(total[self.active].sum()) + prior

    def solve(self, membership: Floats, start: Floats) -> Floats:
        """M-step: return the (d,) weights of a logistic regression on votes, each weighted."""
        from scipy.optimize import minimize

        votes, each = self.votes, self.weight * membership[self.votes.worker]
        size = max(float(each.sum()), 1e-12)

        def loss(w: Floats) -> tuple[float, Floats]:
            reward = self.X @ w
            margin = reward[votes.left] - reward[votes.right]
            values = self.won * np.logaddexp(0, -margin) + (1 - self.won) * np.logaddexp(0, margin)
            slope = each * (sigmoid(margin) - self.won)
            per_item = np.bincount(votes.left, slope, votes.n_items)
            per_item -= np.bincount(votes.right, slope, votes.n_items)
            value = float(each @ values) + 0.5 * self.l2 * float(w @ w)
            return value / size, (self.X.T @ per_item + self.l2 * w) / size

        options = {"maxiter": 200, "ftol": 0.0, "gtol": 1e-7, "maxcor": 20}
        found = minimize(loss, start, jac=True, method="L-BFGS-B", options=options)
        better = np.isfinite(found.fun) and found.fun <= loss(start)[0]
        return np.asarray(found.x if better else start)


def egalitarian(rewards: Floats, center: Floats, scale: Floats) -> Floats:
    """Return (n,): the smallest of each item's rewards (n, G) after standardising them.

    Examples
    --------
    >>> rewards = np.array([[1.0, 20.0], [2.0, 10.0]])
    >>> egalitarian(rewards, np.array([1.5, 15.0]), np.array([0.5, 5.0]))
    array([-1., -1.])
    """
    return np.asarray(((rewards - center) / scale).min(axis=1))


def group_log_probas(rewards: Floats, votes: CrowdPairs) -> Floats:
    """Return (E, G) log-probabilities of votes under (A, G) rewards; ties are half each."""
    margin = rewards[votes.left] - rewards[votes.right]
    won = left_share(votes)[:, None]
    return np.asarray(-won * np.logaddexp(0, -margin) - (1 - won) * np.logaddexp(0, margin))


def vote_log_probas(rewards: Floats, votes: CrowdPairs, membership: Floats) -> Floats:
    """Return (E,) log-probabilities of votes by workers with (E, G) memberships."""
    rows = group_log_probas(rewards, votes) + np.log(np.maximum(membership, 1e-300))
    return np.asarray(np.logaddexp.reduce(rows, axis=1))


def folds_by_worker(votes: CrowdPairs, rng: np.random.Generator) -> NDArray[np.int64]:
    """Return (E,) folds, spread evenly over the votes of each worker."""
    order = np.lexsort((rng.permutation(votes.n_annotations), votes.worker))
    fold = np.empty(votes.n_annotations, dtype=np.int64)
    fold[order] = np.arange(votes.n_annotations) % FOLDS
    return fold
