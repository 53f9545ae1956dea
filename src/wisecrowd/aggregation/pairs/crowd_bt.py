r"""CrowdBT: Bradley-Terry scores, with a probability per worker of voting against them.

.. math:: P_j(l \succ r) = \eta_j \sigma(d) + (1 - \eta_j) \sigma(-d), \qquad
    \eta_j \sim \text{Beta}(1 + \alpha, 1 + \beta)

Scores and the logits of :math:`\eta` are estimated together by L-BFGS. With
:math:`P = P_j(l \succ r)` and :math:`u = w_l / P - w_r / (1 - P)`, the derivatives of a vote are
:math:`u (2 \eta - 1) \sigma(d) \sigma(-d)` in the gap and
:math:`u (2 \sigma(d) - 1) \eta (1 - \eta)` in the logit.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.findings import Finding
from wisecrowd.core.pairs import CrowdPairs
from wisecrowd.core.parameter_checks import check_number
from wisecrowd.core.problem import Problem
from wisecrowd.core.result import Fit
from wisecrowd.core.saved_attributes import Saved, SavedArray
from wisecrowd.families.bradley_terry_newton import require_votes, start_scores
from wisecrowd.families.comparison_method import TIE_LAYER, ComparisonMethod
from wisecrowd.families.comparisons import Votes, single_votes
from wisecrowd.families.item_intervals import check_clusters
from wisecrowd.families.logistic import log_sigmoid, sigmoid
from wisecrowd.families.tie_layer import fit_tie_layer
from wisecrowd.families.vote_laws import (
    Objective,
    Solution,
    Values,
    VirtualItem,
    fitted,
    maximise,
    uncertain_scores,
)
from wisecrowd.kernels import kernels_for
from wisecrowd.kernels.comparisons.reference import Comparisons

Floats = NDArray[np.float64]

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

    Use it when votes come from several workers who may be careless or worse: it is the default for
    pairs. Cost: O(votes) per iteration, some tens of iterations.

    Parameters
    ----------
    prior : float
        Wins and losses of every item against a virtual item with score 0.
    alpha, beta : float
        The prior of the reliability is Beta(1 + alpha, 1 + beta). The default slightly prefers
        honest workers, because with equal numbers a worker's only vote says nothing. A large beta
        keeps reliabilities away from 1, and the scores of honest workers become too wide. Strong
        beliefs in honest workers cost most of the gain.
    cluster : {"auto", "workers", "tasks", "votes"}
        Votes that may depend on each other, for intervals. "auto" takes workers if there are two
        or more. Fewer than 10 only widen the intervals by votes.
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
        :math:`\eta_j`.
    worker_accuracy_, worker_accuracy_error_ : (n_workers,)
        Mean probability that the worker votes for the item with the higher score, on the pairs of
        this worker, and its standard error.
    tie_layer_ : (2,)
        Scale and level of the probability of ties in ``predict_proba``.

    Notes
    -----
    The paper alternates between scores and reliabilities; the joint optimisation reaches the same
    optimum in a tenth of the time. Ties, which the paper does not have, are half a vote for each
    side. All signs are turned if most votes would come from workers below 1/2.

    Reliabilities cannot exceed 1, so that their errors make scores too wide: in simulations of 15
    honest workers with 40 to 130 votes each by a factor of 1.2, and of 150 workers with 8 votes
    each by 2.7. The order of items does not suffer. Where gaps matter, take ``BradleyTerry``.

    References
    ----------
    X. Chen, P. N. Bennett, K. Collins-Thompson, E. Horvitz (2013). Pairwise ranking aggregation in
    a crowdsourced setting. WSDM.

    Examples
    --------
    >>> workers = ["ann", "ann", "ann", "bob", "bob", "bob", "eve", "eve", "eve"]
    >>> left, right = ["x", "x", "y"] * 3, ["y", "z", "z"] * 3
    >>> votes = ["left"] * 6 + ["right"] * 3
    >>> fit = CrowdBT().fit((workers, left, right, votes))
    >>> fit.rank_, fit.reliability_.round(1)
    (array([1, 2, 3]), array([1. , 1. , 0.2]))
    """

    prior: float = 0.5
    alpha: float = 0.5
    beta: float = 0.1
    cluster: str = "auto"
    max_iter: int = 500
    tol: float = 1e-6

    saves: ClassVar[dict[str, Saved]] = {
        **TIE_LAYER,
        "reliability_": SavedArray("J", "probability"),
        "mean_reliability_": SavedArray("1", "probability"),
    }

    def _validate_parameters(self) -> None:
        super()._validate_parameters()
        for name, lowest in (("prior", 1e-6), ("alpha", 0.0), ("beta", 0.0)):
            check_number(name, getattr(self, name), lowest, 1e6)
        check_clusters(self.cluster)

    def _fit(self, problem: Problem[CrowdPairs, None]) -> Fit:
        data = problem.data
        votes = single_votes(data)
        require_votes(votes, self.prior)
        law = CrowdBTLaw(self.prior, self.alpha, self.beta)
        own = np.full((data.n_workers, 1), START)
        if self.alpha > 0 and self.beta > 0:  # others have nothing but the mode of the prior
            own[data.labels_per_worker == 0] = np.log(self.alpha / self.beta)
        start = start_scores(data, self.prior), np.zeros(0), own
        at = maximise(law, votes, start, self.max_iter, self.tol, compiled_objective(law, votes))
        at, findings = _oriented(at, votes)
        answers, _, clusters = uncertain_scores(law, votes, at, data, self.cluster)
        eta = sigmoid(at.own[:, 0])
        weight = np.bincount(data.worker, data.weights, data.n_workers).astype(np.float64)
        mean = np.array([float(weight @ eta / weight.sum())])
        layer = fit_tie_layer(_logit(votes.gap(at.scores), eta[data.worker]), votes.counts)
        accuracy = _accuracy(data, votes.gap(at.scores), eta, weight)
        extra = {"reliability": eta, "mean_reliability": mean, "tie_layer": layer}
        return fitted(answers, at, clusters, data, accuracy, extra, findings)

    def _logit(self, data: CrowdPairs) -> Floats:
        eta = np.append(self.reliability_, self.mean_reliability_)[data.worker]
        return _logit(self.scores_[data.left] - self.scores_[data.right], eta)


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
