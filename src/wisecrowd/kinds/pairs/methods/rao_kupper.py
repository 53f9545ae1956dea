r"""Rao-Kupper: Bradley-Terry with a threshold below which a difference is a tie.

.. math:: P(\text{left}) = \sigma(d - \epsilon), \quad P(\text{right}) = \sigma(-d - \epsilon),
    \quad P(\text{tie}) = (e^{2\epsilon} - 1)\, \sigma(d - \epsilon)\, \sigma(-d - \epsilon)

With :math:`a = d - \epsilon` and :math:`b = -d - \epsilon`, the derivative of a vote in the gap is
:math:`\sigma(-a)` for left, :math:`-\sigma(-b)` for right, and their sum for a tie; in
:math:`\epsilon` it is :math:`-\sigma(-a)`, :math:`-\sigma(-b)`, and their sum plus
:math:`2 / (1 - e^{-2\epsilon})`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from wisecrowd.core.saved_attributes import NUMBER, Saved
from wisecrowd.core.statistics import log_sigmoid, sigmoid
from wisecrowd.core.types import Floats
from wisecrowd.kinds.pairs.methods.comparisons import Votes
from wisecrowd.kinds.pairs.methods.ties import TieMethod, shared_prior
from wisecrowd.kinds.pairs.methods.vote_laws import VirtualItem

SMALLEST, LARGEST = -30.0, 5.0  # limits of log ε


@dataclass(frozen=True, eq=False)
class RaoKupperLaw(VirtualItem):
    """Law of a vote; shared parameters are log ε and, if there are two, the side bias."""

    published: ClassVar[str] = "tie_threshold_level"

    def terms(
        self, gap: Floats, shared: Floats, own: Floats, counts: Floats
    ) -> tuple[Floats, Floats]:
        """Return log-likelihood and gradient of each row; see VoteLaw."""
        x, threshold = gap + shared[1:].sum(), self.tie_value(shared[0])
        left, right, tie = counts.T
        value = (counts * self.outcome_logs(x, threshold)).sum(axis=1)
        a, b = sigmoid(threshold - x), sigmoid(threshold + x)
        to_x = (left + tie) * a - (right + tie) * b
        to_threshold = -(left + tie) * a - (right + tie) * b - 2 * tie / np.expm1(-2 * threshold)
        columns = [to_x, to_threshold * threshold, *[to_x] * (len(shared) - 1)]
        return value, np.stack(columns, axis=1)

    def log_prior(self, shared: Floats, own: Floats) -> tuple[float, Floats, Floats]:
        """Return the log prior of the shared parameters, normal, and its gradients."""
        return *shared_prior(shared), np.zeros(own.shape)

    def first_tie(self, votes: Votes) -> float:
        """Return the parameter at which equal items, with tanh(ε / 2), tie as often as here."""
        share = (votes.counts[:, 2].sum() + 0.5) / (votes.total + 1)
        return float(np.log(2 * np.arctanh(share)))

    def tie_value(self, parameter: float) -> float:
        """Return ε, the published value of a parameter."""
        return float(np.exp(np.clip(parameter, SMALLEST, LARGEST)))

    def outcome_logs(self, x: Floats, value: float) -> Floats:
        """Return the log-probabilities (n_rows, 3) of left, right and tie at log-odds (n_rows,)."""
        left, right = log_sigmoid(x - value), log_sigmoid(-x - value)
        # log(e^{2ε} - 1), without overflow
        grown = 2 * value + np.log(-np.expm1(-2 * value))
        return np.stack([left, right, grown + left + right], axis=1)


@dataclass(eq=False, repr=False, kw_only=True)
class RaoKupper(TieMethod):
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

    law = RaoKupperLaw
    saves: ClassVar[dict[str, Saved]] = {"tie_threshold_level_": NUMBER}
