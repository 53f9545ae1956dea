r"""Rao-Kupper: Bradley-Terry with a threshold below which a difference is a tie.

.. math:: P(\text{left}) = \sigma(d - \epsilon), \quad P(\text{right}) = \sigma(-d - \epsilon),
    \quad P(\text{tie}) = (e^{2\epsilon} - 1)\, \sigma(d - \epsilon)\, \sigma(-d - \epsilon)

With :math:`a = d - \epsilon` and :math:`b = -d - \epsilon`, the derivative of a vote in the gap is
:math:`\sigma(-a)` for left, :math:`-\sigma(-b)` for right, and their sum for a tie; in
:math:`\epsilon` it is :math:`-\sigma(-a)`, :math:`-\sigma(-b)`, and their sum plus
:math:`2 / (1 - e^{-2\epsilon})`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.pairs import CrowdPairs
from wisecrowd.core.parameter_checks import check_flag, check_number
from wisecrowd.core.problem import Problem
from wisecrowd.core.result import Fit
from wisecrowd.core.saved_attributes import NUMBER, Saved
from wisecrowd.families.bradley_terry_newton import require_votes, start_scores
from wisecrowd.families.comparison_method import ComparisonMethod
from wisecrowd.families.comparisons import agreement, pair_votes, single_votes
from wisecrowd.families.item_intervals import check_clusters
from wisecrowd.families.logistic import log_sigmoid, sigmoid
from wisecrowd.families.vote_laws import VirtualItem, fitted, maximise, uncertain_scores

Floats = NDArray[np.float64]

PRECISION = np.array([1 / 25, 1.0])  # of the normal priors of log ε and of the side bias
SMALLEST, LARGEST = -30.0, 5.0  # limits of log ε


@dataclass(frozen=True, eq=False)
class RaoKupperLaw(VirtualItem):
    """Law of a vote; shared parameters are log ε and, if there are two, the side bias."""

    def terms(
        self, gap: Floats, shared: Floats, own: Floats, counts: Floats
    ) -> tuple[Floats, Floats]:
        """Return log-likelihood and gradient of each row; see VoteLaw."""
        x, threshold = gap + shared[1:].sum(), _threshold(shared[0])
        left, right, tie = counts.T
        value = (counts * outcome_logs(x, threshold)).sum(axis=1)
        a, b = sigmoid(threshold - x), sigmoid(threshold + x)
        to_x = (left + tie) * a - (right + tie) * b
        to_threshold = -(left + tie) * a - (right + tie) * b - 2 * tie / np.expm1(-2 * threshold)
        columns = [to_x, to_threshold * threshold, *[to_x] * (len(shared) - 1)]
        return value, np.stack(columns, axis=1)

    def log_prior(self, shared: Floats, own: Floats) -> tuple[float, Floats, Floats]:
        """Return the log prior of the shared parameters, normal, and its gradients."""
        precision = PRECISION[: len(shared)]
        value = -0.5 * float(precision @ shared**2)
        return value, -precision * shared, np.zeros(own.shape)


@dataclass(eq=False, repr=False, kw_only=True)
class RaoKupper(ComparisonMethod):
    r"""Bradley-Terry with a threshold: workers call differences below it a tie.

    .. math:: P(\text{left}) = \sigma(d - \epsilon), \quad
        P(\text{right}) = \sigma(-d - \epsilon), \qquad d = s_l - s_r

    Use it when a tie means that workers see no difference; it fits about as well as Davidson. Cost:
    O(pairs) per iteration, some tens of iterations.

    Parameters
    ----------
    prior : float
        Wins and losses of every item against a virtual item with score 0.
    side : bool
        Estimate a preference for the left side, ``side_bias_``.
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
    tie_threshold_level_ : float
        :math:`\epsilon`; 0 would be Bradley-Terry.
    side_bias_, side_bias_error_ : float
        Log-odds of the left side and their standard error, with ``side=True``.
    worker_accuracy_, worker_accuracy_error_ : (n_workers,)
        Share of votes for the item with the higher score; ties count half.

    Notes
    -----
    The paper has no prior. A weak normal prior of log ε keeps it finite without ties.

    References
    ----------
    P. V. Rao, L. L. Kupper (1967). Ties in paired-comparison experiments: a generalization of the
    Bradley-Terry model. JASA 62.

    Examples
    --------
    >>> votes = (["x", "x", "x", "y"], ["y", "y", "z", "z"], ["left", "tie", "left", "tie"])
    >>> RaoKupper().fit(votes).rank_
    array([1, 2, 3])
    """

    prior: float = 0.5
    side: bool = False
    cluster: str = "auto"
    max_iter: int = 500
    tol: float = 1e-7

    saves: ClassVar[dict[str, Saved]] = {
        "tie_threshold_level_": NUMBER,
        "side_bias_": replace(NUMBER, optional=lambda method: not method.side),
        "side_bias_error_": replace(NUMBER, optional=lambda method: not method.side),
    }

    def _validate_parameters(self) -> None:
        super()._validate_parameters()
        check_number("prior", self.prior, 0.0, 1e6)
        check_flag("side", self.side)
        check_clusters(self.cluster)

    def _fit(self, problem: Problem[CrowdPairs, None]) -> Fit:
        data = problem.data
        votes = single_votes(data)
        require_votes(votes, self.prior)
        law, own = RaoKupperLaw(self.prior), np.zeros((data.n_workers, 0))
        share = (votes.counts[:, 2].sum() + 0.5) / (votes.total + 1)
        # Equal items tie with probability tanh(ε / 2).
        shared = np.array([np.log(2 * np.arctanh(share)), 0.0][: 1 + self.side])
        start = start_scores(data, self.prior), shared, own
        rows = votes if self.side else pair_votes(data)
        at = maximise(law, rows, start, self.max_iter, self.tol)
        answers, errors, clusters = uncertain_scores(law, votes, at, data, self.cluster)
        extra: dict[str, Any] = {"tie_threshold_level": _threshold(at.shared[0])}
        if self.side:
            extra |= {"side_bias": float(at.shared[1]), "side_bias_error": float(errors[1])}
        return fitted(answers, at, clusters, data, agreement(data, answers.scores), extra)

    def _outcome_logs(self, data: CrowdPairs) -> Floats:
        x = self.scores_[data.left] - self.scores_[data.right]
        x = x + (self.side_bias_ if self.side else 0.0)
        return outcome_logs(x, self.tie_threshold_level_)


def _threshold(log_threshold: float) -> float:
    return float(np.exp(np.clip(log_threshold, SMALLEST, LARGEST)))


def outcome_logs(x: Floats, threshold: float) -> Floats:
    """Return the log-probabilities (n_rows, 3) of left, right and tie."""
    left, right = log_sigmoid(x - threshold), log_sigmoid(-x - threshold)
    # log(e^{2ε} - 1), without overflow
    grown = 2 * threshold + np.log(-np.expm1(-2 * threshold))
    return np.stack([left, right, grown + left + right], axis=1)
