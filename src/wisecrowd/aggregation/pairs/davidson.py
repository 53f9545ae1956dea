r"""Davidson: Bradley-Terry with ties.

.. math:: p(\text{left}, \text{right}, \text{tie}) \propto (e^{d/2}, e^{-d/2}, e^\theta),
    \qquad d = s_l - s_r \;(+\, h)

Scores, :math:`\theta` and the side bias :math:`h` are estimated together by L-BFGS, from the
Bradley-Terry scores. The derivatives of a vote stand in ``families/tie_models.py``.
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
from wisecrowd.families.logistic import log_softmax_rows
from wisecrowd.families.tie_models import davidson_terms, first_level, shared_prior
from wisecrowd.families.vote_laws import VirtualItem, fitted, maximise, uncertain_scores

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class DavidsonLaw(VirtualItem):
    """Law of a vote; shared parameters are θ and, if there are two, the side bias."""

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


@dataclass(eq=False, repr=False, kw_only=True)
class Davidson(ComparisonMethod):
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

    prior: float = 0.5
    side: bool = False
    cluster: str = "auto"
    max_iter: int = 500
    tol: float = 1e-7

    saves: ClassVar[dict[str, Saved]] = {
        "tie_level_": NUMBER,
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
        law, own = DavidsonLaw(self.prior), np.zeros((data.n_workers, 0))
        shared = np.array([first_level(votes.counts), 0.0][: 1 + self.side])
        start = start_scores(data, self.prior), shared, own
        rows = votes if self.side else pair_votes(data)
        at = maximise(law, rows, start, self.max_iter, self.tol)
        answers, errors, clusters = uncertain_scores(law, votes, at, data, self.cluster)
        extra: dict[str, Any] = {"tie_level": float(at.shared[0])}
        if self.side:
            extra |= {"side_bias": float(at.shared[1]), "side_bias_error": float(errors[1])}
        return fitted(answers, at, clusters, data, agreement(data, answers.scores), extra)

    def _outcome_logs(self, data: CrowdPairs) -> Floats:
        x = self.scores_[data.left] - self.scores_[data.right]
        x = x + (self.side_bias_ if self.side else 0.0)
        return log_softmax_rows(x / 2, -x / 2, np.full(len(x), self.tie_level_))
