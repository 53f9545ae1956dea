r"""Elo: ratings that move by the surprise of each vote.

.. math:: s_l \leftarrow s_l + k\,(y - \sigma(s_l - s_r)), \qquad
    s_r \leftarrow s_r - k\,(y - \sigma(s_l - s_r))
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
from wisecrowd.kinds.pairs.answers import ELO_PER_LOGIT
from wisecrowd.kinds.pairs.container import CrowdPairs
from wisecrowd.kinds.pairs.kernels import TimedVotes
from wisecrowd.kinds.pairs.methods.comparisons import single_votes
from wisecrowd.kinds.pairs.methods.online_ratings import OnlineMethod, information


@dataclass(eq=False, repr=False, kw_only=True)
class Elo(OnlineMethod):
    r"""Ratings that move with every vote, in the order of time.

    .. math:: s_l \leftarrow s_l + k\,(y - \sigma(s_l - s_r)), \qquad y \in \{0, 1/2, 1\}

    Use it when ratings are monitored while votes arrive and items may change. The result depends
    on the order of the votes; for a ranking, choose Bradley-Terry or CrowdBT. Cost: O(votes).

    Parameters
    ----------
    step : float
        Points that a completely surprising vote moves, the K factor of chess; 400 points are a
        factor of ten in the odds. Chess has 10 to 40; votes on many items need less, because the
        noise grows with the step.

    Attributes
    ----------
    scores_, low_, high_ : (n_items,)
        Ratings in logits with mean 0 (``item_table`` has Elo points), and 95% intervals.
    rank_, rank_low_, rank_high_, p_best_, tied_with_best_, component_ : (n_items,)
    order_spread_ : (n_items,)
        Standard deviation of the ratings over 20 random orders of the same votes.
    worker_accuracy_, worker_accuracy_error_ : (n_workers,)
        Share of votes for the item with the higher score; ties count half.
    tie_layer_ : (2,)
        Scale and level of the probability of ties in ``predict_proba``.

    Notes
    -----
    Intervals add the spread over orders to the information in the votes of an item. Votes without
    timestamps are refused.

    A vote of weight w moves the scores by one step of w times the size, and not by w steps: a row
    twice at half the weight is not the same as the row.

    References
    ----------
    A. E. Elo (1978). The Rating of Chessplayers, Past and Present.

    Examples
    --------
    >>> from wisecrowd import CrowdPairs
    >>> votes = CrowdPairs.from_arrays(
    ...     None, None, ["x", "x", "y"], ["y", "z", "z"], ["left"] * 3, timestamp=[1, 2, 3])
    >>> Elo().fit(votes).rank_
    array([1, 2, 3])
    """

    step: float = 4.0

    limits: ClassVar[Limits] = {"step": Number(1e-06, 1000.0)}

    def _fit(self, problem: Problem[CrowdPairs, None]) -> Fit:
        votes = single_votes(problem.data)

        def run(
            kernels: ModuleType, rows: TimedVotes, order: Ints
        ) -> tuple[Floats, Floats, dict[str, Any]]:
            scores = np.zeros(votes.n_items)
            kernels.elo_pass(rows, order, self.step / ELO_PER_LOGIT, scores)
            return scores, information(votes, scores), {}

        return self._online_fit(problem.data, run)
