r"""OnlineCrowdBT: CrowdBT by Bayesian updates, one vote after the other.

Scores are :math:`N(\mu_a, v_a)` and reliabilities :math:`\text{Beta}(\alpha_j, \beta_j)`. If worker
j prefers a to b, then with :math:`p = \sigma(\mu_a - \mu_b)` and
:math:`q = \alpha p / (\alpha p + \beta (1 - p))`,

.. math:: \mu_a \leftarrow \mu_a + v_a (q - p), \quad
    v_a \leftarrow v_a \max(1 + v_a [q (1 - q) - p (1 - p)], \kappa),

b moves the other way, and :math:`\alpha, \beta` match the first two moments of the posterior of
:math:`\eta_j`, a mixture of two Betas.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import ModuleType
from typing import Any, ClassVar

import numpy as np

from wisecrowd.core.parameter_checks import check_number
from wisecrowd.core.problem import Problem
from wisecrowd.core.result import Fit
from wisecrowd.core.saved_attributes import Saved, SavedArray
from wisecrowd.core.types import Floats, Ints
from wisecrowd.kinds.pairs.container import CrowdPairs
from wisecrowd.kinds.pairs.kernels import TimedVotes
from wisecrowd.kinds.pairs.methods.online_ratings import OnlineMethod

LEAST = 1e-4


@dataclass(eq=False, repr=False, kw_only=True)
class OnlineCrowdBT(OnlineMethod):
    r"""CrowdBT by Bayesian updates: scores with variances, and the reliability of workers.

    .. math:: P_j(l \succ r) = \eta_j \sigma(s_l - s_r) + (1 - \eta_j) \sigma(s_r - s_l)

    Use it when votes of workers of different reliability are monitored while they arrive. The
    result depends on the order of the votes; for a ranking, choose CrowdBT. Cost: O(votes).

    Parameters
    ----------
    spread : float
        Standard deviation of the score of a new item.
    alpha, beta : float
        Beta distribution of the reliability of a new worker.

    Attributes
    ----------
    scores_, low_, high_ : (n_items,)
        Means in logits with mean 0, and 95% intervals.
    rank_, rank_low_, rank_high_, p_best_, tied_with_best_, component_ : (n_items,)
    reliability_ : (n_workers,)
        Posterior mean of :math:`\eta_j`.
    order_spread_ : (n_items,)
        Standard deviation of the scores over 20 random orders of the same votes.
    worker_accuracy_, worker_accuracy_error_ : (n_workers,)
        Share of votes for the item with the higher score; ties count half.
    tie_layer_ : (2,)
        Scale and level of the probability of ties in ``predict_proba``.

    Notes
    -----
    The paper has no ties; a tie is the mean of both updates of the scores and leaves the worker
    alone. ``predict_proba`` is that of an average worker. Intervals add the spread over orders to
    the variance of the model. Votes without timestamps are refused.

    A vote of weight w moves the scores by one step of w times the size, and not by w steps: a row
    twice at half the weight is not the same as the row.

    References
    ----------
    X. Chen, P. N. Bennett, K. Collins-Thompson, E. Horvitz (2013). Pairwise ranking aggregation in
    a crowdsourced setting. WSDM.

    Examples
    --------
    >>> from wisecrowd import CrowdPairs
    >>> votes = CrowdPairs.from_arrays(
    ...     None, None, ["x", "x", "y"], ["y", "z", "z"], ["left"] * 3, timestamp=[1, 2, 3])
    >>> OnlineCrowdBT().fit(votes).rank_
    array([1, 2, 3])
    """

    spread: float = 1.0
    alpha: float = 10.0
    beta: float = 1.0

    saves: ClassVar[dict[str, Saved]] = {"reliability_": SavedArray("J", "probability")}

    def _validate_parameters(self) -> None:
        super()._validate_parameters()
        for name in ("spread", "alpha", "beta"):
            check_number(name, getattr(self, name), 1e-3, 1e6)

    def _fit(self, problem: Problem[CrowdPairs, None]) -> Fit:
        n, J = problem.data.n_items, problem.data.n_workers

        def run(
            kernels: ModuleType, rows: TimedVotes, order: Ints
        ) -> tuple[Floats, Floats, dict[str, Any]]:
            mean, variance = np.zeros(n), np.full(n, self.spread**2)
            alpha, beta = np.full(J, float(self.alpha)), np.full(J, float(self.beta))
            kernels.crowd_pass(rows, order, LEAST, mean, variance, alpha, beta)
            return mean, variance, {"reliability": alpha / (alpha + beta)}

        return self._online_fit(problem.data, run)
