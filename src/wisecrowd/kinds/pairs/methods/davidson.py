r"""Davidson: Bradley-Terry with ties.

.. math:: p(\text{left}, \text{right}, \text{tie}) \propto (e^{d/2}, e^{-d/2}, e^\theta),
    \qquad d = s_l - s_r \;(+\, h)

Scores, :math:`\theta` and the side bias :math:`h` are estimated together by L-BFGS, from the
Bradley-Terry scores. The derivatives of a vote stand in ``ties.py``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from wisecrowd.core.saved_attributes import NUMBER, Saved
from wisecrowd.core.statistics import log_softmax_rows
from wisecrowd.core.types import Floats
from wisecrowd.kinds.pairs.methods.comparisons import Votes
from wisecrowd.kinds.pairs.methods.ties import TieMethod, davidson_terms, first_level, shared_prior
from wisecrowd.kinds.pairs.methods.vote_laws import VirtualItem


@dataclass(frozen=True, eq=False)
class DavidsonLaw(VirtualItem):
    """Law of a vote; shared parameters are θ and, if there are two, the side bias."""

    published: ClassVar[str] = "tie_level"

    def terms(
        self, gap: Floats, shared: Floats, own: Floats, counts: Floats
    ) -> tuple[Floats, Floats]:
        """Return log-likelihood and gradient of each row; see VoteLaw."""
        x = gap + shared[1:].sum()
        found = davidson_terms(x, np.full(len(x), shared[0]), counts)
        columns = [found.to_x, found.to_level, *[found.to_x] * (len(shared) - 1)]
        return found.value, np.stack(columns, axis=1)

    def log_prior(self, shared: Floats, own: Floats) -> tuple[float, Floats, Floats]:
        """Return the log prior of the shared parameters and its gradients."""
        return *shared_prior(shared), np.zeros(own.shape)

    def first_tie(self, votes: Votes) -> float:
        """Return the parameter at which equal items tie as often as in these votes."""
        return first_level(votes.counts)

    def tie_value(self, parameter: float) -> float:
        """Return the published value of a parameter."""
        return float(parameter)

    def outcome_logs(self, x: Floats, value: float) -> Floats:
        """Return the log-probabilities (n_rows, 3) of left, right and tie at log-odds (n_rows,)."""
        return log_softmax_rows(x / 2, -x / 2, np.full(len(x), value))


@dataclass(eq=False, repr=False, kw_only=True)
class Davidson(TieMethod):
    r"""Bradley-Terry with ties: a tie is a result of its own, likelier between similar items.

    .. math:: p(\text{left}, \text{right}, \text{tie})
        \propto (e^{d/2}, e^{-d/2}, e^\theta), \qquad d = s_l - s_r

    Use it when votes include ties and their probability matters. The ranking hardly differs from
    that of half-won ties. Cost: O(pairs) per iteration, some tens of iterations.

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
        Scores, log-odds of a win in votes without ties, with mean 0; and their 95% intervals. A
        difference is larger than one of half-won ties.
    rank_, rank_low_, rank_high_, p_best_, tied_with_best_, component_ : (n_items,)
    covariance_ : (n_items, n_items)
        Covariance of the scores, up to 5000 items.
    tie_level_ : float
        :math:`\theta`; minus infinity would be Bradley-Terry.
    side_bias_, side_bias_error_ : float
        Log-odds of the left side and their standard error, with ``side=True``.
    worker_accuracy_, worker_accuracy_error_ : (n_workers,)
        Share of votes for the item with the higher score; ties count half.

    Notes
    -----
    The paper has no prior. A weak normal prior keeps :math:`\theta` finite without ties.

    References
    ----------
    R. R. Davidson (1970). On extending the Bradley-Terry model to accommodate ties in paired
    comparison experiments. JASA 65.

    Examples
    --------
    >>> votes = (["x", "x", "x", "y"], ["y", "y", "z", "z"], ["left", "tie", "left", "tie"])
    >>> Davidson().fit(votes).rank_
    array([1, 2, 3])
    """

    law = DavidsonLaw
    saves: ClassVar[dict[str, Saved]] = {"tie_level_": NUMBER}
