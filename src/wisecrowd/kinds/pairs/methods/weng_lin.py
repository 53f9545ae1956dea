r"""WengLin: online Bayesian ratings with a variance per item (Bradley-Terry, full pairs).

With :math:`c^2 = v_l + v_r + 2 \beta^2` and :math:`p = \sigma((\mu_l - \mu_r) / c)`, a vote moves

.. math:: \mu_l \leftarrow \mu_l + \frac{v_l}{c} (y - p), \qquad
    v_l \leftarrow v_l \max\Bigl(1 - \frac{\sqrt{v_l}}{c} \frac{v_l}{c^2} p (1 - p), \kappa\Bigr)

and the right item in the same way, with the opposite sign.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import ModuleType
from typing import Any, ClassVar

import numpy as np

from wisecrowd.core.parameter_checks import Limits, Number
from wisecrowd.core.problem import Problem
from wisecrowd.core.result import Fit
from wisecrowd.core.types import Floats, Ints
from wisecrowd.kinds.pairs.container import CrowdPairs
from wisecrowd.kinds.pairs.kernels import TimedVotes
from wisecrowd.kinds.pairs.methods.online_ratings import OnlineMethod

MEAN, LEAST = 25.0, 1e-4


@dataclass(eq=False, repr=False, kw_only=True)
class WengLin(OnlineMethod):
    r"""Online Bayesian ratings: a mean and a variance per item, updated by every vote.

    .. math:: P(l \succ r) = \sigma\Bigl(\frac{\mu_l - \mu_r}{\sqrt{v_l + v_r + 2\beta^2}}\Bigr)

    Use it when ratings are monitored while votes arrive and new items should move faster than old
    ones. The result depends on the order of the votes; for a ranking, choose Bradley-Terry or
    CrowdBT. Cost: O(votes).

    Parameters
    ----------
    spread : float
        Standard deviation of the skill of a new item.
    noise : float
        β, the standard deviation of a performance around the skill, in the same units.

    Attributes
    ----------
    scores_, low_, high_ : (n_items,)
        Means in logits, :math:`\mu / (\sqrt 2 \beta)`, with mean 0, and 95% intervals.
    rank_, rank_low_, rank_high_, p_best_, tied_with_best_, component_ : (n_items,)
    order_spread_ : (n_items,)
        Standard deviation of the scores over 20 random orders of the same votes.
    worker_accuracy_, worker_accuracy_error_ : (n_workers,)
        Share of votes for the item with the higher score; ties count half.
    tie_layer_ : (2,)
        Scale and level of the probability of ties in ``predict_proba``.

    Notes
    -----
    Intervals add the spread over orders to the variance of the model. Votes without timestamps are
    refused.

    A vote of weight w moves the scores by one step of w times the size, and not by w steps: a row
    twice at half the weight is not the same as the row.

    References
    ----------
    R. C. Weng, C.-J. Lin (2011). A Bayesian approximation method for online ranking. JMLR 12.

    Examples
    --------
    >>> from wisecrowd import CrowdPairs
    >>> votes = CrowdPairs.from_arrays(
    ...     None, None, ["x", "x", "y"], ["y", "z", "z"], ["left"] * 3, timestamp=[1, 2, 3])
    >>> WengLin().fit(votes).rank_
    array([1, 2, 3])
    """

    spread: float = 25 / 3
    noise: float = 25 / 6

    limits: ClassVar[Limits] = {
        "spread": Number(1e-06, 1000000.0),
        "noise": Number(1e-06, 1000000.0),
    }

    def _fit(self, problem: Problem[CrowdPairs, None]) -> Fit:
        n, unit = problem.data.n_items, np.sqrt(2) * self.noise

        def run(
            kernels: ModuleType, rows: TimedVotes, order: Ints
        ) -> tuple[Floats, Floats, dict[str, Any]]:
            mean, variance = np.full(n, MEAN), np.full(n, self.spread**2)
            kernels.weng_lin_pass(rows, order, 2 * self.noise**2, LEAST, mean, variance)
            return mean / unit, variance / unit**2, {}

        return self._online_fit(problem.data, run)
