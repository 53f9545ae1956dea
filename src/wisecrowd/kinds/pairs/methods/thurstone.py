r"""Thurstone, case V: an item is seen as its score plus a normal error, and the higher one wins.

.. math:: P(l \succ r) = \Phi(d / \sqrt 2), \qquad d = s_l - s_r

The virtual item has the same form: :math:`\lambda [\log \Phi(s_a / \sqrt 2) + \log \Phi(-s_a /
\sqrt 2)]`. With :math:`\rho(x) = \phi(x) / \Phi(x)`, the derivative of :math:`\log \Phi(x)` is
:math:`\rho` and minus the second one is :math:`\rho (\rho + x)`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from wisecrowd.core.parameter_checks import Limits, Number
from wisecrowd.core.problem import Problem
from wisecrowd.core.result import Fit
from wisecrowd.core.saved_attributes import Saved
from wisecrowd.core.types import Floats
from wisecrowd.kinds.pairs.container import CrowdPairs
from wisecrowd.kinds.pairs.methods.base import TIE_LAYER, ComparisonMethod, fit_tie_layer
from wisecrowd.kinds.pairs.methods.bradley_terry import start_scores
from wisecrowd.kinds.pairs.methods.comparisons import (
    agreement,
    pair_votes,
    require_votes,
    single_votes,
)
from wisecrowd.kinds.pairs.methods.covariance import check_clusters
from wisecrowd.kinds.pairs.methods.vote_laws import fitted, maximise, uncertain_scores

ROOT = float(np.sqrt(0.5))
LOGITS = 0.85  # a unit of Bradley-Terry in these units, about: only to start


def log_phi(x: Floats) -> tuple[Floats, Floats]:
    """Return the log of the normal distribution function and its derivative ρ, also far below 0."""
    from scipy.special import log_ndtr

    value = log_ndtr(x)
    return value, np.exp(-0.5 * x * x - 0.5 * np.log(2 * np.pi) - value)


@dataclass(frozen=True, eq=False)
class ThurstoneLaw:
    """Law of a vote; ties are half a vote for each side."""

    prior: float

    def terms(
        self, gap: Floats, shared: Floats, own: Floats, counts: Floats
    ) -> tuple[Floats, Floats]:
        """Return log-likelihood and gradient of each row; see VoteLaw."""
        (up, rise), (down, fall) = log_phi(ROOT * gap), log_phi(-ROOT * gap)
        left, right = (counts[:, k] + 0.5 * counts[:, 2] for k in (0, 1))
        return left * up + right * down, (ROOT * (left * rise - right * fall))[:, None]

    def log_prior(self, shared: Floats, own: Floats) -> tuple[float, Floats, Floats]:
        """Return nothing: only the scores have a prior."""
        return 0.0, np.zeros(len(shared)), np.zeros(own.shape)

    def item_prior(self, scores: Floats) -> tuple[float, Floats, Floats]:
        """Return the log prior of the scores, its gradient and minus its second derivative."""
        x = ROOT * scores
        (up, rise), (down, fall) = log_phi(x), log_phi(-x)
        curve = 0.5 * (rise * (rise + x) + fall * (fall - x))
        value = self.prior * float((up + down).sum())
        return value, self.prior * ROOT * (rise - fall), self.prior * curve


@dataclass(eq=False, repr=False, kw_only=True)
class Thurstone(ComparisonMethod):
    r"""One score per item, seen with normal errors; the item that looks better wins.

    .. math:: P(l \succ r) = \Phi\bigl((s_l - s_r) / \sqrt 2\bigr)

    Use it when scores should be in units of the error of one look at an item, as in psychophysics;
    its ranking is nearly that of Bradley-Terry. Cost: O(pairs) per iteration, tens of iterations.

    Parameters
    ----------
    prior : float
        Wins and losses of every item against a virtual item with score 0.
    cluster : {"auto", "workers", "tasks", "votes"}
        Votes that may depend on each other, for intervals. "auto" takes workers if there are two
        or more. Fewer than 10 only widen the intervals by votes.
    max_iter, tol : int, float
        Maximum number of iterations; largest derivative, per vote of an item, that counts as
        converged.

    Attributes
    ----------
    scores_, low_, high_ : (n_items,)
        Scores with mean 0, in units of the error, and not in logits; and their 95% intervals.
    rank_, rank_low_, rank_high_, p_best_, tied_with_best_, component_ : (n_items,)
    covariance_ : (n_items, n_items)
        Covariance of the scores, up to 5000 items.
    worker_accuracy_, worker_accuracy_error_ : (n_workers,)
        Share of votes for the item with the higher score; ties count half.
    tie_layer_ : (2,)
        Scale and level of the probability of ties in ``predict_proba``.

    Notes
    -----
    The paper averages normal quantiles of win rates. This is the maximum of the likelihood.

    References
    ----------
    L. L. Thurstone (1927). A law of comparative judgment. Psychological Review 34.

    Examples
    --------
    >>> votes = (["x", "x", "x", "y"], ["y", "y", "z", "z"], ["left", "right", "left", "left"])
    >>> Thurstone().fit(votes).rank_
    array([1, 1, 3])
    """

    prior: float = 0.5
    cluster: str = "auto"
    max_iter: int = 500
    tol: float = 1e-7

    saves: ClassVar[dict[str, Saved]] = TIE_LAYER

    limits: ClassVar[Limits] = {"prior": Number(0.0, 1000000.0), "cluster": check_clusters}

    def _fit(self, problem: Problem[CrowdPairs, None]) -> Fit:
        data = problem.data
        votes, rows = single_votes(data), pair_votes(data)
        require_votes(rows, self.prior)
        law, own = ThurstoneLaw(self.prior), np.zeros((data.n_workers, 0))
        start = LOGITS * start_scores(data, self.prior), np.zeros(0), own
        at = maximise(law, rows, start, self.max_iter, self.tol)
        answers, _, clusters = uncertain_scores(law, votes, at, data, self.cluster)
        layer = fit_tie_layer(_logit(rows.gap(at.scores)), rows.counts)
        accuracy = agreement(data, answers.scores)
        return fitted(answers, at, clusters, data, accuracy, {"tie_layer": layer})

    def _logit(self, data: CrowdPairs) -> Floats:
        return _logit(self.scores_[data.left] - self.scores_[data.right])


def _logit(gap: Floats) -> Floats:
    """Return the log-odds of a vote for left."""
    return np.asarray(log_phi(ROOT * gap)[0] - log_phi(-ROOT * gap)[0])
