r"""WorkerDiscrimination: Bradley-Terry scores, with a sharpness per worker.

.. math:: P_j(l \succ r) = \sigma(\gamma_j d), \qquad \gamma_j \sim N(1, \kappa^2)

Scores and :math:`\gamma` are estimated together by L-BFGS. With :math:`u = w_l - w \sigma(\gamma_j
d)`, the derivatives of a vote are :math:`\gamma_j u` in the gap and :math:`d u` in
:math:`\gamma_j`. Scale: the mean of :math:`\gamma`, weighted by votes, is 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from wisecrowd.core.parameter_checks import Limits, Number
from wisecrowd.core.problem import Problem
from wisecrowd.core.result import Fit
from wisecrowd.core.saved_attributes import Saved, SavedArray
from wisecrowd.core.statistics import log_sigmoid, sigmoid
from wisecrowd.core.types import Floats
from wisecrowd.kinds.pairs.container import CrowdPairs
from wisecrowd.kinds.pairs.methods.base import TIE_LAYER, ComparisonMethod, fit_tie_layer
from wisecrowd.kinds.pairs.methods.bradley_terry import start_scores
from wisecrowd.kinds.pairs.methods.comparisons import agreement, require_votes, single_votes
from wisecrowd.kinds.pairs.methods.covariance import check_clusters
from wisecrowd.kinds.pairs.methods.intervals import scaled
from wisecrowd.kinds.pairs.methods.vote_laws import VirtualItem, fitted, maximise, uncertain_scores

LEAST_MEAN = 0.05  # mean γ below which the scale is left alone


@dataclass(frozen=True, eq=False)
class DiscriminationLaw(VirtualItem):
    """Law of a vote; ``own`` is γ, and ties are half a vote for each side."""

    spread: float

    def terms(
        self, gap: Floats, shared: Floats, own: Floats, counts: Floats
    ) -> tuple[Floats, Floats]:
        """Return log-likelihood and gradient of each row; see VoteLaw."""
        x = own[:, 0] * gap
        left, right = (counts[:, k] + 0.5 * counts[:, 2] for k in (0, 1))
        value = left * log_sigmoid(x) + right * log_sigmoid(-x)
        pull = left - (left + right) * sigmoid(x)
        return value, np.stack([own[:, 0] * pull, gap * pull], axis=1)

    def log_prior(self, shared: Floats, own: Floats) -> tuple[float, Floats, Floats]:
        """Return the log density of γ, normal around 1, and its gradients."""
        off, precision = own - 1, self.spread**-2.0
        return -0.5 * precision * float((off**2).sum()), np.zeros(len(shared)), -precision * off


@dataclass(eq=False, repr=False, kw_only=True)
class WorkerDiscrimination(ComparisonMethod):
    r"""Bradley-Terry with a discrimination per worker: sloppy workers see differences less.

    .. math:: P_j(l \succ r) = \sigma(\gamma_j (s_l - s_r)), \qquad \gamma_j \sim N(1, \kappa^2)

    A worker with :math:`\gamma_j = 0` votes at random; a negative one votes against the others.

    Use it when workers differ in care more than they flip votes; with adversaries CrowdBT is
    better. Cost: O(votes) per iteration, some tens of iterations.

    Parameters
    ----------
    prior : float
        Wins and losses of every item against a virtual item with score 0.
    spread : float
        Standard deviation κ of the discrimination between workers.
    cluster : {"auto", "workers", "tasks", "votes"}
        Votes that may depend on each other, for intervals. "auto" takes workers if there are two
        or more. Fewer than 10 only widen the intervals by votes.
    max_iter, tol : int, float
        Maximum number of iterations; largest derivative, per vote of an item, that counts as
        converged.

    Attributes
    ----------
    scores_, low_, high_ : (n_items,)
        Scores with mean 0, log-odds of a win by the average worker; and their 95% intervals.
    rank_, rank_low_, rank_high_, p_best_, tied_with_best_, component_ : (n_items,)
    covariance_ : (n_items, n_items)
        Covariance of the scores, up to 5000 items.
    discrimination_ : (n_workers,)
        :math:`\gamma_j`, with mean 1 over votes.
    worker_accuracy_, worker_accuracy_error_ : (n_workers,)
        Share of votes for the item with the higher score; ties count half.
    tie_layer_ : (2,)
        Scale and level of the probability of ties in ``predict_proba``.

    Notes
    -----
    The scale of the scores is fixed after the fit. Ties are half a vote for each side.

    References
    ----------
    A. Birnbaum (1968). Some latent trait models and their use in inferring an examinee's ability.
    In Statistical Theories of Mental Test Scores.

    Examples
    --------
    >>> workers = ["ann"] * 4 + ["bob"] * 4
    >>> left, right = ["x", "x", "y", "x"] * 2, ["y", "z", "z", "z"] * 2
    >>> votes = ["left"] * 4 + ["left", "right", "left", "right"]
    >>> fit = WorkerDiscrimination().fit((workers, left, right, votes))
    >>> bool(fit.discrimination_[0] > fit.discrimination_[1])
    True
    """

    prior: float = 0.5
    spread: float = 1.0
    cluster: str = "auto"
    max_iter: int = 500
    tol: float = 1e-7

    saves: ClassVar[dict[str, Saved]] = {**TIE_LAYER, "discrimination_": SavedArray("J")}

    limits: ClassVar[Limits] = {
        "prior": Number(1e-06, 1000000.0),
        "spread": Number(1e-06, 100.0),
        "cluster": check_clusters,
    }

    def _fit(self, problem: Problem[CrowdPairs, None]) -> Fit:
        data = problem.data
        votes = single_votes(data)
        require_votes(votes, self.prior)
        law = DiscriminationLaw(self.prior, self.spread)
        start = start_scores(data, self.prior), np.zeros(0), np.ones((data.n_workers, 1))
        at = maximise(law, votes, start, self.max_iter, self.tol)
        weight = np.bincount(data.worker, data.weights, data.n_workers)
        mean = float(weight @ at.own[:, 0] / weight.sum())
        if mean < 0:
            at, mean = at._replace(scores=-at.scores, own=-at.own), -mean
        answers, _, clusters = uncertain_scores(law, votes, at, data, self.cluster)
        own = at.own[:, 0]
        if mean > LEAST_MEAN:
            answers, own = scaled(answers, mean), own / mean
        layer = fit_tie_layer(at.own[data.worker, 0] * votes.gap(at.scores), votes.counts)
        accuracy = agreement(data, answers.scores)
        extra = {"discrimination": own, "tie_layer": layer}
        return fitted(answers, at, clusters, data, accuracy, extra)

    def _logit(self, data: CrowdPairs) -> Floats:
        sharp = np.append(self.discrimination_, 1.0)[data.worker]
        return np.asarray(sharp * (self.scores_[data.left] - self.scores_[data.right]))
