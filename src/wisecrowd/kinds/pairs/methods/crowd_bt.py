r"""CrowdBT: Bradley-Terry scores, with a probability per worker of voting against them.

.. math:: P_j(l \succ r) = \eta_j \sigma(d) + (1 - \eta_j) \sigma(-d)

The reliability is integrated over Beta(a, b), which is learnt
(:mod:`wisecrowd.kinds.pairs.methods.integrated_reliability`). With ``prior="wide"`` scores and the
logits of :math:`\eta \sim \text{Beta}(1 + \alpha, 1 + \beta)` are estimated together by L-BFGS.
With :math:`P = P_j(l \succ r)` and :math:`u = w_l / P - w_r / (1 - P)`, the derivatives of a vote
are then :math:`u (2 \eta - 1) \sigma(d) \sigma(-d)` in the gap and
:math:`u (2 \sigma(d) - 1) \eta (1 - \eta)` in the logit.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from wisecrowd.core.findings import Finding
from wisecrowd.core.parameter_checks import Limits, check_choice, check_number
from wisecrowd.core.problem import Problem
from wisecrowd.core.result import Fit
from wisecrowd.core.saved_attributes import Saved, SavedArray
from wisecrowd.core.statistics import log_sigmoid, sigmoid
from wisecrowd.core.types import Floats
from wisecrowd.kernels import kernels_for
from wisecrowd.kinds.pairs.answers import ItemAnswers
from wisecrowd.kinds.pairs.container import CrowdPairs
from wisecrowd.kinds.pairs.kernels import Comparisons
from wisecrowd.kinds.pairs.methods.base import TIE_LAYER, ComparisonMethod, fit_tie_layer
from wisecrowd.kinds.pairs.methods.bradley_terry import start_scores
from wisecrowd.kinds.pairs.methods.comparisons import Votes, require_votes, single_votes
from wisecrowd.kinds.pairs.methods.covariance import Clusters, check_clusters
from wisecrowd.kinds.pairs.methods.integrated_reliability import ReliabilityMixture
from wisecrowd.kinds.pairs.methods.vote_laws import (
    Objective,
    Solution,
    Values,
    VirtualItem,
    fitted,
    maximise,
    uncertain_scores,
)

WIDE = "wide"
WIDE_PRIOR = 0.5  # wins and losses against the virtual item with prior="wide"
START = float(np.log(9.0))  # logit of η = .9


@dataclass(frozen=True, eq=False)
class CrowdBTLaw(VirtualItem):
    """Law of a vote; ``own`` is the logit of η, and ties are half a vote for each side."""

    alpha: float
    beta: float

    def terms(
        self, gap: Floats, shared: Floats, own: Floats, counts: Floats
    ) -> tuple[Floats, Floats]:
        """Return log-likelihood and gradient of each row; see VoteLaw."""
        p, q = sigmoid(gap), sigmoid(-gap)
        eta, rest = sigmoid(own[:, 0]), sigmoid(-own[:, 0])
        first, second = eta * p + rest * q, eta * q + rest * p
        left, right = (counts[:, k] + 0.5 * counts[:, 2] for k in (0, 1))
        value = left * np.log(first) + right * np.log(second)
        pull = left / first - right / second
        slope = np.empty((len(gap), 2))
        slope[:, 0] = pull * (eta - rest) * p * q
        slope[:, 1] = pull * (p - q) * eta * rest
        return value, slope

    def log_prior(self, shared: Floats, own: Floats) -> tuple[float, Floats, Floats]:
        """Return the log density of η, a Beta, and its gradients."""
        value = self.alpha * log_sigmoid(own) + self.beta * log_sigmoid(-own)
        slope = self.alpha * sigmoid(-own) - self.beta * sigmoid(own)
        return float(value.sum()), np.zeros(len(shared)), slope


@dataclass(eq=False, repr=False, kw_only=True)
class CrowdBT(ComparisonMethod):
    r"""Bradley-Terry with a reliability per worker: careless and adversarial workers are found.

    .. math:: P_j(l \succ r) = \eta_j \sigma(s_l - s_r) + (1 - \eta_j) \sigma(s_r - s_l)

    A worker with :math:`\eta_j = 1/2` votes at random and does not count; one with
    :math:`\eta_j < 1/2` votes against the others, and counts reversed.

    How reliable workers are is integrated out, and how reliabilities are distributed is learnt.
    Workers with few votes therefore neither spread the scores nor narrow their intervals.

    Use it when votes come from several workers who may be careless or worse, and gaps between
    scores matter. Cost: O(27 votes) per iteration, some tens of iterations.

    Parameters
    ----------
    prior : float or "wide"
        Wins and losses of every item against a virtual item with score 0. With "wide" they are one
        half, and reliabilities are estimated with the scores instead of integrated. Only the order
        of the items matters then: their scores are too wide.
    alpha, beta : float
        With ``prior="wide"``, the prior of the reliability is Beta(1 + alpha, 1 + beta). A large
        beta keeps reliabilities away from 1.
    cluster : {"auto", "workers", "tasks", "votes"}
        Votes that may depend on each other, for intervals. "auto" relies on the reliabilities; with
        ``prior="wide"`` it takes workers if there are two or more. Fewer than 10 clusters only
        widen the intervals by votes.
    max_iter, tol : int, float
        Maximum number of iterations; largest derivative, per vote of an item, that counts as
        converged.

    Attributes
    ----------
    scores_, low_, high_ : (n_items,)
        Scores in logits with mean 0, and their 95% intervals.
    rank_, rank_low_, rank_high_, p_best_, tied_with_best_, component_ : (n_items,)
    covariance_ : (n_items, n_items)
        Covariance of the scores, up to 5000 items.
    reliability_ : (n_workers,)
        :math:`\eta_j`, its posterior mean, averaged over a and b.
    mean_reliability_ : (1,)
        That of a worker without votes.
    reliability_prior_ : (2,)
        a and b of the Beta distribution of reliabilities; not with ``prior="wide"``.
    worker_accuracy_, worker_accuracy_error_ : (n_workers,)
        Mean probability that the worker votes for the item with the higher score, on the pairs of
        this worker, and its standard error.
    tie_layer_ : (2,)
        Scale and level of the probability of ties in ``predict_proba``.

    Notes
    -----
    The paper estimates scores and reliabilities in turn, which ``prior="wide"`` does at once. In
    simulations of honest workers with few votes its scores are too wide, by a factor of 1.2 to 2.7.
    Integrated scores keep their scale.

    Scale and reliability are hardly distinguished where all workers turn around some of their
    votes: scores then shrink, and intervals cover too little. Ties, which the paper does not have,
    are half a vote for each side. With ``prior="wide"`` all signs are turned if most votes would
    come from workers below 1/2.

    References
    ----------
    X. Chen, P. N. Bennett, K. Collins-Thompson, E. Horvitz (2013). Pairwise ranking aggregation in
    a crowdsourced setting. WSDM.

    Examples
    --------
    >>> workers = np.repeat(["ann", "bob", "cho", "eve"], 9)
    >>> left, right = ["x", "x", "y"] * 12, ["y", "z", "z"] * 12
    >>> votes = ["left"] * 27 + ["right"] * 9
    >>> fit = CrowdBT().fit((workers, left, right, votes))
    >>> fit.rank_, fit.reliability_.round(1)
    (array([1, 2, 3]), array([1. , 1. , 1. , 0.1]))
    """

    prior: Any = 0.5
    alpha: float = 0.5
    beta: float = 0.1
    cluster: str = "auto"
    max_iter: int = 500
    tol: float = 1e-6

    saves: ClassVar[dict[str, Saved]] = {
        **TIE_LAYER,
        "reliability_": SavedArray("J", "probability"),
        "mean_reliability_": SavedArray("1", "probability"),
        "reliability_prior_": SavedArray(
            "2", "amount", optional=lambda method: method.prior == WIDE
        ),
    }

    limits: ClassVar[Limits] = {"cluster": check_clusters}

    def _validate_parameters(self) -> None:
        super()._validate_parameters()
        if isinstance(self.prior, str):
            check_choice("prior", self.prior, (WIDE,))
        else:
            check_number("prior", self.prior, 1e-6, 1e6)
        for name in ("alpha", "beta"):
            check_number(name, getattr(self, name), 0.0, 1e6)

    def _fit(self, problem: Problem[CrowdPairs, None]) -> Fit:
        data = problem.data
        votes = single_votes(data)
        if self.prior == WIDE:
            return self._fit_wide(data, votes)
        require_votes(votes, self.prior)
        law = ReliabilityMixture.of(votes, self.prior)
        found = law.maximise(start_scores(data, self.prior), self.max_iter, self.tol)
        answers, clusters = law.answers(found, data, votes, self.cluster)
        at = Solution(
            found.scores, found.shape, np.zeros((data.n_workers, 0)), found.history, found.n_iter,
            found.converged,
        )  # fmt: skip
        eta, mean = law.reliabilities(found.scores)
        extra = {"reliability_prior": np.exp(found.shape)}
        return _published(data, votes, (answers, at, clusters), eta, np.array([mean]), extra)

    def _fit_wide(self, data: CrowdPairs, votes: Votes) -> Fit:
        """Return the fit whose reliabilities are estimated with the scores."""
        require_votes(votes, WIDE_PRIOR)
        law = CrowdBTLaw(WIDE_PRIOR, self.alpha, self.beta)
        own = np.full((data.n_workers, 1), START)
        if self.alpha > 0 and self.beta > 0:  # others have nothing but the mode of the prior
            own[data.labels_per_worker == 0] = np.log(self.alpha / self.beta)
        start = start_scores(data, WIDE_PRIOR), np.zeros(0), own
        at = maximise(law, votes, start, self.max_iter, self.tol, compiled_objective(law, votes))
        at, findings = _oriented(at, votes)
        answers, _, clusters = uncertain_scores(law, votes, at, data, self.cluster)
        eta = sigmoid(at.own[:, 0])
        weight = np.bincount(data.worker, data.weights, data.n_workers)
        mean = np.array([float(weight @ eta / weight.sum())])
        return _published(data, votes, (answers, at, clusters), eta, mean, {}, findings)

    def _logit(self, data: CrowdPairs) -> Floats:
        eta = np.append(self.reliability_, self.mean_reliability_)[data.worker]
        return _logit(self.scores_[data.left] - self.scores_[data.right], eta)


def _published(
    data: CrowdPairs,
    votes: Votes,
    found: tuple[ItemAnswers, Solution, Clusters],
    eta: Floats,
    mean: Floats,
    extra: dict[str, Any],
    findings: tuple[Finding, ...] = (),
) -> Fit:
    """Return the fit with reliabilities (J,), their mean (1,), the tie layer and accuracies."""
    answers, at, clusters = found
    gap = votes.gap(at.scores)
    weight = np.bincount(data.worker, data.weights, data.n_workers).astype(np.float64)
    layer = fit_tie_layer(_logit(gap, eta[data.worker]), votes.counts)
    extra = {"reliability": eta, "mean_reliability": mean, "tie_layer": layer, **extra}
    return fitted(answers, at, clusters, data, _accuracy(data, gap, eta, weight), extra, findings)


def compiled_objective(law: CrowdBTLaw, votes: Votes) -> Objective:
    """Return the penalised log-likelihood with its gradients, by one pass over the votes."""
    kernels = kernels_for("comparisons", len(votes.left))
    left_wins, right_wins = np.ascontiguousarray(votes.halved.T)
    assert votes.worker is not None
    rows = Comparisons(votes.left, votes.right, votes.worker, left_wins, right_wins)

    def evaluate(scores: Floats, shared: Floats, own: Floats) -> Values:
        value, to_items, to_own = kernels.crowd_bt_sums(rows, scores, own[:, 0])
        item_value, item_slope, _ = law.item_prior(scores)
        own_value, to_shared, own_slope = law.log_prior(shared, own)
        total = value + item_value + own_value
        return total, to_items + item_slope, to_shared, to_own[:, None] + own_slope

    return evaluate


def _oriented(at: Solution, votes: Votes) -> tuple[Solution, tuple[Finding, ...]]:
    """Turn all signs if most votes come from workers below one half, and say so."""
    assert votes.worker is not None
    weight = np.bincount(votes.worker, votes.counts.sum(axis=1), votes.n_workers)
    share = float(weight @ sigmoid(at.own[:, 0]) / weight.sum())
    if share >= 0.5:
        return at, ()
    finding = Finding(
        "reversed-scores", "low", share, (),
        "Most votes would come from workers who vote against the scores, so scores and "
        "reliabilities were reversed.",
        "Check that the outcomes name the preferred item.",
    )  # fmt: skip
    return at._replace(scores=-at.scores, own=-at.own), (finding,)


def _logit(gap: Floats, eta: Floats) -> Floats:
    """Return the log-odds of a vote for left."""
    p, q = sigmoid(gap), sigmoid(-gap)
    found = np.log(eta * p + (1 - eta) * q) - np.log(eta * q + (1 - eta) * p)
    return np.asarray(found)


def _accuracy(data: CrowdPairs, gap: Floats, eta: Floats, weight: Floats) -> tuple[Floats, Floats]:
    """Return each worker's mean probability of a vote for the better item, and its error."""
    high, own = sigmoid(np.abs(gap)), eta[data.worker]
    agree = data.weights * (own * high + (1 - own) * (1 - high))
    sums = np.bincount(data.worker, agree, data.n_workers)
    # One vote at random is added, so that workers without votes have an accuracy of one half.
    share = (sums + 0.5) / (weight + 1)
    return share, np.sqrt(share * (1 - share) / (weight + 3))
