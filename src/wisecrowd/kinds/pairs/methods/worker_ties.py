r"""WorkerTies: Davidson's model in which every worker has a tie threshold, a sharpness and a side.

.. math:: p_j(\text{left}, \text{right}, \text{tie}) \propto (e^{x/2}, e^{-x/2}, e^{\theta_j}),
    \qquad x = \gamma_j (s_l - s_r) + h_j

    \theta_j \sim N(\theta, \tau^2), \quad \log \gamma_j \sim N(0, \kappa^2), \quad
    h_j \sim N(h, \omega^2)

All parameters are estimated together by L-BFGS, from the Bradley-Terry scores. With the derivatives
of Davidson's model in x and θ, those of a vote are :math:`\gamma_j \partial_x` in the gap,
:math:`\gamma_j d\, \partial_x` in :math:`\log \gamma_j`, and :math:`\partial_x` in :math:`h_j`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from wisecrowd.core.parameter_checks import Limits, Number, check_number
from wisecrowd.core.problem import Problem
from wisecrowd.core.result import Fit
from wisecrowd.core.saved_attributes import NUMBER, Saved, SavedArray
from wisecrowd.core.statistics import log_softmax_rows
from wisecrowd.core.types import Floats
from wisecrowd.kinds.pairs.container import CrowdPairs
from wisecrowd.kinds.pairs.methods.base import ComparisonMethod
from wisecrowd.kinds.pairs.methods.bradley_terry import start_scores
from wisecrowd.kinds.pairs.methods.comparisons import agreement, require_votes, single_votes
from wisecrowd.kinds.pairs.methods.covariance import check_clusters
from wisecrowd.kinds.pairs.methods.ties import davidson_terms, first_level, shared_prior
from wisecrowd.kinds.pairs.methods.vote_laws import VirtualItem, fitted, maximise, uncertain_scores

FARTHEST = 10.0  # limit of |log γ|, far outside of the prior


@dataclass(frozen=True, eq=False)
class WorkerTiesLaw(VirtualItem):
    """Law of a vote: shared (θ, h), own (θ_j - θ, log γ_j, h_j - h); a spread of 0 fixes a part."""

    spread: Floats  # (3,) standard deviations τ, κ, ω

    def terms(
        self, gap: Floats, shared: Floats, own: Floats, counts: Floats
    ) -> tuple[Floats, Floats]:
        """Return log-likelihood and gradient of each row; see VoteLaw."""
        free = self.spread > 0
        own = own * free
        sharp = np.exp(np.clip(own[:, 1], -FARTHEST, FARTHEST))
        x = sharp * gap + free[2] * shared[1] + own[:, 2]
        found = davidson_terms(x, shared[0] + own[:, 0], counts)
        to_x, to_level = found.to_x, found.to_level
        columns = [
            sharp * to_x, to_level, free[2] * to_x,
            free[0] * to_level, free[1] * sharp * gap * to_x, free[2] * to_x,
        ]  # fmt: skip
        return found.value, np.stack(columns, axis=1)

    def log_prior(self, shared: Floats, own: Floats) -> tuple[float, Floats, Floats]:
        """Return the log prior of all but the scores, and its gradients."""
        precision = np.where(self.spread > 0, self.spread, 1.0) ** -2.0
        value, slope = shared_prior(shared)
        return value - 0.5 * float((precision * own**2).sum()), slope, -precision * own


@dataclass(eq=False, repr=False, kw_only=True)
class WorkerTies(ComparisonMethod):
    r"""Davidson's model with a tie threshold, a discrimination and a side bias per worker.

    .. math:: p_j(\text{left}, \text{right}, \text{tie})
        \propto (e^{x/2}, e^{-x/2}, e^{\theta_j}), \qquad x = \gamma_j (s_l - s_r) + h_j

    Use it when votes include ties and each worker has at least some ten votes, as on arenas for
    language models: how easily workers call ties, and which side they favour, predicts votes better
    than the items do. Cost: O(votes) per iteration, about a hundred iterations.

    Parameters
    ----------
    prior : float
        Wins and losses of every item against a virtual item with score 0.
    tie_spread, discrimination_spread, side_spread : float
        Standard deviations between workers of the tie threshold, of the logarithm of the
        discrimination, and of the side bias. With 0 all workers have the same: the threshold of
        the crowd, a discrimination of 1, and no side bias.
    cluster : {"auto", "workers", "tasks", "votes"}
        Votes that may depend on each other, for intervals. "auto" takes workers if there are two
        or more. Fewer than 10 only widen the intervals by votes.
    max_iter, tol : int, float
        Maximum number of iterations; largest derivative, per vote of an item, that counts as
        converged.

    Attributes
    ----------
    scores_, low_, high_ : (n_items,)
        Scores with mean 0, log-odds of a win in votes without ties by a worker with discrimination
        1; and their 95% intervals.
    rank_, rank_low_, rank_high_, p_best_, tied_with_best_, component_ : (n_items,)
    covariance_ : (n_items, n_items)
        Covariance of the scores, up to 5000 items.
    tie_threshold_, discrimination_, side_ : (n_workers,)
        :math:`\theta_j`, :math:`\gamma_j` and :math:`h_j`; a positive side is the left one.
    tie_level_, side_bias_ : float
        Their means :math:`\theta` and :math:`h` in the crowd, also for workers without votes.
    side_bias_error_ : float
    worker_accuracy_, worker_accuracy_error_ : (n_workers,)
        Share of votes for the item with the higher score; ties count half.

    Notes
    -----
    The worker parameters are estimated by their mode, which a hierarchical model would integrate
    out. Spreads are fixed, not estimated.

    References
    ----------
    R. R. Davidson (1970). On extending the Bradley-Terry model to accommodate ties in paired
    comparison experiments. JASA 65.

    R. R. Davidson, R. J. Beaver (1977). On extending the Bradley-Terry model to incorporate
    within-pair order effects. Biometrics 33.

    Examples
    --------
    >>> workers = ["ann"] * 3 + ["bob"] * 3
    >>> left, right = ["x", "x", "y"] * 2, ["y", "z", "z"] * 2
    >>> fit = WorkerTies().fit((workers, left, right, ["left"] * 3 + ["tie"] * 3))
    >>> bool(fit.tie_threshold_[1] > fit.tie_threshold_[0])
    True
    """

    prior: float = 0.5
    tie_spread: float = 1.0
    discrimination_spread: float = 0.5
    side_spread: float = 0.5
    cluster: str = "auto"
    max_iter: int = 500
    tol: float = 1e-7

    saves: ClassVar[dict[str, Saved]] = {
        "tie_threshold_": SavedArray("J"),
        "discrimination_": SavedArray("J"),
        "side_": SavedArray("J"),
        "tie_level_": NUMBER,
        "side_bias_": NUMBER,
        "side_bias_error_": NUMBER,
    }

    limits: ClassVar[Limits] = {"prior": Number(1e-06, 1000000.0), "cluster": check_clusters}

    def _validate_parameters(self) -> None:
        super()._validate_parameters()
        for name in ("tie_spread", "discrimination_spread", "side_spread"):
            check_number(name, getattr(self, name), 0.0, 5.0)

    def _fit(self, problem: Problem[CrowdPairs, None]) -> Fit:
        data = problem.data
        votes = single_votes(data)
        require_votes(votes, self.prior)
        spread = np.array([self.tie_spread, self.discrimination_spread, self.side_spread])
        law = WorkerTiesLaw(self.prior, spread)
        shared = np.array([first_level(votes.counts), 0.0])
        start = start_scores(data, self.prior), shared, np.zeros((data.n_workers, 3))
        at = maximise(law, votes, start, self.max_iter, self.tol)
        answers, errors, clusters = uncertain_scores(law, votes, at, data, self.cluster)
        level, bias = at.shared
        extra = {
            "tie_threshold": level + at.own[:, 0],
            "discrimination": np.exp(np.clip(at.own[:, 1], -FARTHEST, FARTHEST)),
            "side": bias + at.own[:, 2],
            "tie_level": float(level), "side_bias": float(bias),
            "side_bias_error": float(errors[1]),
        }  # fmt: skip
        return fitted(answers, at, clusters, data, agreement(data, answers.scores), extra)

    def _outcome_logs(self, data: CrowdPairs) -> Floats:
        level = np.append(self.tie_threshold_, self.tie_level_)[data.worker]
        sharp = np.append(self.discrimination_, 1.0)[data.worker]
        side = np.append(self.side_, self.side_bias_)[data.worker]
        x = sharp * (self.scores_[data.left] - self.scores_[data.right]) + side
        return log_softmax_rows(x / 2, -x / 2, level)
