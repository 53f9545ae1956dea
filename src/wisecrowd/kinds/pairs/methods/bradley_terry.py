r"""Bradley-Terry: one score per item, the log-odds of a win are the difference of scores.

.. math:: L(s) = \sum_e w_e \log \sigma(\pm d_e)
    + \lambda \sum_a [\log \sigma(s_a) + \log \sigma(-s_a)], \qquad d_e = s_l - s_r

The penalised log-likelihood is strictly concave. Newton's method uses the Hessian
:math:`H = \sum w p (1 - p) (e_l - e_r)(e_l - e_r)^\top + \Lambda`, a weighted Laplacian of the
graph of comparisons; votes on the same pair are counted together first.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np

from wisecrowd.core.aggregator import Tags
from wisecrowd.core.exceptions import ParameterError
from wisecrowd.core.messages.option_spelling import parameter
from wisecrowd.core.parameter_checks import Choice, Flag, Limits, Number
from wisecrowd.core.problem import Problem
from wisecrowd.core.result import Fit
from wisecrowd.core.saved_attributes import NUMBER, Saved, SavedArray
from wisecrowd.core.statistics import log_sigmoid, sigmoid
from wisecrowd.core.types import Floats
from wisecrowd.kinds.pairs.answers import ItemAnswers
from wisecrowd.kinds.pairs.container import CrowdPairs
from wisecrowd.kinds.pairs.methods.base import TIE_LAYER, ComparisonMethod, fit_tie_layer
from wisecrowd.kinds.pairs.methods.comparisons import (
    Votes,
    agreement,
    centred,
    pair_votes,
    require_votes,
    single_votes,
    virtual_item,
)
from wisecrowd.kinds.pairs.methods.covariance import (
    MOST_DENSE,
    Clusters,
    check_clusters,
    choose_clusters,
    cluster_meat,
    conjugate_gradients,
    humble,
    inverse,
    laplacian,
    sandwich,
    sparse_laplacian,
)
from wisecrowd.kinds.pairs.methods.intervals import item_answers
from wisecrowd.kinds.pairs.methods.vote_laws import (
    Solution,
    VirtualItem,
    fitted,
    maximise,
    uncertain_scores,
)

TIES = ("half", "drop")
DENSE_STEP = 1500  # items up to which a Newton step factorises the dense Hessian
HALVINGS = 30
SLOW = 0.1  # ratio of the lengths of two steps above which the Hessian is factorised again


@dataclass(frozen=True, eq=False)
class BradleyTerryLaw(VirtualItem):
    """Law of a vote with covariates: the log-odds are d + X b, X is (n_rows, g)."""

    design: Floats

    def terms(
        self, gap: Floats, shared: Floats, own: Floats, counts: Floats
    ) -> tuple[Floats, Floats]:
        """Return log-likelihood and gradient of each row; see VoteLaw."""
        x = gap + self.design @ shared
        left, right = (counts[:, k] + 0.5 * counts[:, 2] for k in (0, 1))
        value = left * log_sigmoid(x) + right * log_sigmoid(-x)
        slope = left - (left + right) * sigmoid(x)
        return value, slope[:, None] * np.column_stack([np.ones(len(x)), self.design])

    def log_prior(self, shared: Floats, own: Floats) -> tuple[float, Floats, Floats]:
        """Return the log prior of covariates, N(0, 10²), and its gradients."""
        return -0.005 * float(shared @ shared), -0.01 * shared, np.zeros(own.shape)


class _Point(NamedTuple):
    """Scores, objective, win probabilities of left (n_rows,), gradient and prior curvature."""

    scores: Floats
    value: float
    p: Floats
    gradient: Floats
    curve: Floats


def newton(votes: Votes, prior: float, max_iter: int, tol: float) -> Solution:
    """Return the maximum by Newton's method with step halving; the objective never decreases.

    The Hessian is factorised again only while steps shrink slowly, which is enough near the
    maximum. ``tol`` bounds the error of a score.
    """
    wins = votes.halved
    left, total = wins[:, 0], wins.sum(axis=1)

    def at(scores: Floats) -> _Point:
        gap = votes.gap(scores)
        small = np.exp(-np.abs(gap))
        high = 1 / (1 + small)
        p = np.where(gap >= 0, high, small * high)
        prior_value, slope, curve = virtual_item(scores, prior)
        # log σ(-d) = -max(d, 0) - log(1 + exp(-|d|))
        value = float(left @ gap - total @ (np.maximum(gap, 0) + np.log1p(small)))
        gradient = votes.item_sums(left - total * p) + slope
        return _Point(scores, value + prior_value, p, gradient, np.maximum(curve, 1e-9))

    zero, guess = at(np.zeros(votes.n_items)), at(_first_guess(votes, prior))
    point = guess if guess.value > zero.value else zero
    history: list[float] = []
    solve, before, converged = None, 0.0, False
    for _ in range(max_iter):
        if solve is None:
            solve = _solver(votes, total * point.p * (1 - point.p), point.curve)
        step = solve(point.gradient)
        size = float(np.abs(step).max())
        for _ in range(HALVINGS):
            new = at(point.scores + step)
            if new.value >= point.value - 1e-12 * abs(point.value):
                break
            step, solve = step / 2, None
        point = new._replace(value=max(new.value, point.value))
        history.append(point.value)
        rate = size / before if before else 0.0
        if size * (min(1.0, rate) if before else 1.0) <= tol:
            converged = True
            break
        if rate > SLOW:
            solve = None
        before = size
    own = np.zeros((votes.n_workers, 0))
    return Solution(point.scores, np.zeros(0), own, tuple(history), len(history), converged)


def _first_guess(votes: Votes, prior: float) -> Floats:
    """Return the log-odds of the share of wins of each item, stretched.

    Against random opponents with variance v, the log-odds shrink by about 1 / √(1 + π v / 8).
    """
    n, wins = votes.n_items, votes.halved
    won = np.bincount(votes.left, wins[:, 0], n) + np.bincount(votes.right, wins[:, 1], n)
    lost = np.bincount(votes.left, wins[:, 1], n) + np.bincount(votes.right, wins[:, 0], n)
    guess = np.log((won + prior + 0.1) / (lost + prior + 0.1))
    return np.asarray(guess / np.sqrt(max(0.25, 1 - np.pi / 8 * float(guess.var()))))


def _solver(votes: Votes, weight: Floats, curve: Floats) -> Callable[[Floats], Floats]:
    """Return a function that solves with the Hessian: factorised, or by conjugate gradients."""
    from scipy import sparse
    from scipy.linalg import cho_factor, cho_solve

    n = votes.n_items
    if n <= DENSE_STEP:
        hessian = laplacian(votes, weight)
        hessian[np.diag_indices(n)] += curve
        factor = cho_factor(hessian.T, lower=True, overwrite_a=True, check_finite=False)
        return lambda side: np.asarray(cho_solve(factor, side, check_finite=False))
    full = (sparse_laplacian(votes, weight) + sparse.diags(curve)).tocsr()
    return lambda side: conjugate_gradients(full, side[:, None])[:, 0]


def start_scores(data: CrowdPairs, prior: float) -> Floats:
    """Return Bradley-Terry scores (n_items,) to start other models from; ties are half wins."""
    return newton(pair_votes(data), max(prior, 0.01), 50, 1e-6).scores


@dataclass(eq=False, repr=False, kw_only=True)
class BradleyTerry(ComparisonMethod):
    r"""One score per item; the difference of scores is the log-odds of winning.

    .. math:: P(l \succ r) = \sigma(s_l - s_r)

    Use it when workers are about equally good, as a baseline, and for very many votes. Cost: a few
    Newton steps, each O(pairs + items³) up to 1500 items and O(pairs) per step of a solver above.

    Parameters
    ----------
    prior : float
        Wins and losses of every item against a virtual item with score 0. With 0, scores are the
        maximum of the likelihood, which exists only if every item beats every other one through
        a chain of wins.
    ties : {"half", "drop"}
        "half" counts a tie as half a win of each item. "drop" ignores ties, which exaggerates
        differences.
    side : bool
        Estimate a preference for the left side, ``side_bias_``.
    style : bool
        Estimate the effect of the covariates of the votes (``style`` of ``CrowdPairs``), such as
        the difference in length, and control for them.
    cluster : {"auto", "workers", "tasks", "votes"}
        Votes that may depend on each other, for intervals. "auto" takes workers if there are two
        or more. Fewer than 10 only widen the intervals by votes.
    max_iter, tol : int, float
        Maximum number of iterations; largest change of a score that counts as converged.

    Attributes
    ----------
    scores_, low_, high_ : (n_items,)
        Scores in logits with mean 0, and their 95% intervals.
    rank_, rank_low_, rank_high_ : (n_items,)
        Ranks and their 95% ranges.
    p_best_, tied_with_best_, component_ : (n_items,)
    covariance_ : (n_items, n_items)
        Covariance of the scores, up to 5000 items.
    worker_accuracy_, worker_accuracy_error_ : (n_workers,)
        Share of votes for the item with the higher score.
    side_bias_, side_bias_error_ : float
        Log-odds of the left side and their standard error, with ``side=True``.
    style_, style_error_ : (n_covariates,)
        Effects of the covariates per unit, with ``style=True``.
    tie_layer_ : (2,)
        Scale and level of the probability of ties in ``predict_proba``.

    Notes
    -----
    The original estimate is the maximum likelihood without a prior, by fixed-point iteration. A
    vote in ``score`` has three outcomes: ties come from a layer on top of the model.

    References
    ----------
    R. A. Bradley, M. E. Terry (1952). Rank analysis of incomplete block designs: I. The method of
    paired comparisons. Biometrika 39.

    Examples
    --------
    >>> votes = (["x", "x", "x", "y"], ["y", "y", "z", "z"], ["left", "right", "left", "tie"])
    >>> BradleyTerry().fit(votes).scores_.round(2)
    array([ 0.43,  0.09, -0.52])
    """

    prior: float = 0.5
    ties: str = "half"
    side: bool = False
    style: bool = False
    cluster: str = "auto"
    max_iter: int = 100
    tol: float = 1e-9

    promises: ClassVar[Tags] = replace(ComparisonMethod.promises, shardable=True)
    saves: ClassVar[dict[str, Saved]] = {
        **TIE_LAYER,
        "side_bias_": replace(NUMBER, optional=lambda method: not method.side),
        "side_bias_error_": replace(NUMBER, optional=lambda method: not method.side),
        "style_": SavedArray("*", optional=lambda method: not method.style),
        "style_error_": SavedArray("*", "amount", optional=lambda method: not method.style),
    }

    limits: ClassVar[Limits] = {
        "prior": Number(0.0, 1000000.0),
        "ties": Choice(TIES),
        "side": Flag(),
        "style": Flag(),
        "cluster": check_clusters,
    }

    def _fit(self, problem: Problem[CrowdPairs, None]) -> Fit:
        data = problem.data
        plain = not (self.side or self.style)
        votes = (pair_votes if plain else single_votes)(data, ties=self.ties)
        require_votes(votes, self.prior)
        if plain:
            answers, clusters, solution = self._plain(data, votes)
            extra: dict[str, Any] = {}
            layer = fit_tie_layer(votes.gap(solution.scores), votes.counts)
        else:
            answers, clusters, solution, extra = self._with_covariates(data, votes)
            logit = votes.gap(solution.scores) + self._design(data) @ solution.shared
            layer = fit_tie_layer(logit, votes.counts)
        accuracy = agreement(data, answers.scores)
        return fitted(answers, solution, clusters, data, accuracy, {"tie_layer": layer, **extra})

    def _fit_pack(self, problem: Problem[Any, None]) -> Fit:
        """Return the fit to the votes of a pack, which are counted by shards."""
        data = problem.data
        if self.side or self.style:
            raise ParameterError(
                f"{parameter('side', True)} and {parameter('style', True)} need all votes in "
                "memory; leave them out, or read the pack into memory."
            )
        source = data.count_votes(problem.cut(3 * data.n_items**2), self.ties)
        votes, clusters = source.votes, source.clusters(self.cluster)
        require_votes(votes, self.prior)
        answers, clusters, at = self._dense(
            votes, clusters, lambda scores: source.meat(scores, clusters)
        )
        extra = {
            "tie_layer": fit_tie_layer(votes.gap(at.scores), votes.counts),
            "comparisons_per_item": source.comparisons_per_item,
        }
        return fitted(answers, at, clusters, data, source.agreement(answers.scores), extra)

    # ------------------------------------------------------------------------- scores alone

    def _plain(self, data: CrowdPairs, votes: Votes) -> tuple[ItemAnswers, Clusters, Solution]:
        clusters = choose_clusters(data, self.cluster)
        if votes.n_items > MOST_DENSE:
            law = BradleyTerryLaw(self.prior, np.zeros((len(votes.left), 0)))
            empty = np.zeros(0), np.zeros((1, 0))
            at = maximise(law, votes, (np.zeros(votes.n_items), *empty), self.max_iter, self.tol)
            rows = votes if clusters.code is None else single_votes(data, ties=self.ties)
            law = BradleyTerryLaw(self.prior, np.zeros((len(rows.left), 0)))
            at = at._replace(own=np.zeros((votes.n_workers, 0)))
            answers, _, clusters = uncertain_scores(law, rows, at, data, self.cluster)
            return answers, clusters, at

        def meat(scores: Floats) -> Floats:
            single = single_votes(data, ties=self.ties)
            pull = single.halved[:, 0] - single.halved.sum(axis=1) * sigmoid(single.gap(scores))
            none, code = np.zeros((len(pull), 0)), clusters.code
            assert code is not None
            return cluster_meat(data.left, data.right, pull, code, none, votes.n_items)

        return self._dense(votes, clusters, meat)

    def _dense(
        self, votes: Votes, clusters: Clusters, cluster_sums: Callable[[Floats], Floats]
    ) -> tuple[ItemAnswers, Clusters, Solution]:
        """Return scores with intervals; ``cluster_sums`` is the meat of the clusters at scores."""
        at = newton(votes, self.prior, self.max_iter, self.tol)
        wins = votes.halved
        p = sigmoid(votes.gap(at.scores))
        curve = virtual_item(at.scores, self.prior)[2]
        hessian = laplacian(votes, wins.sum(axis=1) * p * (1 - p))
        hessian[np.diag_indices(votes.n_items)] += np.maximum(curve, 1e-12)
        bread = inverse(hessian)
        left, right, tie = votes.counts.T
        meat = laplacian(votes, left * (1 - p) ** 2 + right * p**2 + tie * (0.5 - p) ** 2)
        meat[np.diag_indices(votes.n_items)] += curve
        covariance = sandwich(bread, meat, votes.compared)
        if clusters.by != "votes":
            meat = cluster_sums(at.scores)
            meat[np.diag_indices(votes.n_items)] += curve
            by_clusters = sandwich(bread, meat, votes.compared)
            covariance = humble(covariance, by_clusters, clusters.number)
        scores = centred(at.scores, votes.compared)
        answers = item_answers(scores, votes, covariance=covariance, clusters=clusters)
        return answers, clusters, at

    # ------------------------------------------------------------------- with side and style

    def _design(self, data: CrowdPairs) -> Floats:
        """Return the covariates of each vote, (n_annotations, g): the side, then the style."""
        columns = [np.ones((data.n_annotations, 1))] if self.side else []
        if self.style:
            columns.append(data.style_table())
        return np.hstack(columns)

    def _with_covariates(
        self, data: CrowdPairs, votes: Votes
    ) -> tuple[ItemAnswers, Clusters, Solution, dict[str, Any]]:
        law = BradleyTerryLaw(self.prior, self._design(data))
        start = (
            np.zeros(votes.n_items),
            np.zeros(law.design.shape[1]),
            np.zeros((data.n_workers, 0)),
        )
        at = maximise(law, votes, start, self.max_iter, self.tol)
        answers, errors, clusters = uncertain_scores(law, votes, at, data, self.cluster)
        extra: dict[str, Any] = {}
        first = int(self.side)
        if self.side:
            extra = {"side_bias": float(at.shared[0]), "side_bias_error": float(errors[0])}
        if self.style:
            extra |= {"style": at.shared[first:], "style_error": errors[first:]}
        return answers, clusters, at, extra

    def _logit(self, data: CrowdPairs) -> Floats:
        logit = self.scores_[data.left] - self.scores_[data.right]
        if self.side:
            logit = logit + self.side_bias_
        if self.style:
            logit = logit + data.style_table(len(self.style_)) @ self.style_
        return np.asarray(logit)
