"""How methods for rankings are compared: against true scores, and by hidden rankings."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.exceptions import DataError
from wisecrowd.inference.held_out import HeldOutScore
from wisecrowd.inference.scorers import NEAR_BEST, MakeFit
from wisecrowd.kinds.pairs.scorer import N_FOLDS, PairScorer, VotePlan, vote_folds
from wisecrowd.kinds.rankings.container import CrowdRankings
from wisecrowd.kinds.rankings.methods.plackett_luce import log_probas


class RankingScorer(PairScorer):
    """Scores of methods that take rankings; their truth and agreement are those of pairs."""

    explanations: ClassVar[tuple[str, ...]] = (
        "held-out score: mean log-probability, by Plackett-Luce, of rankings that were hidden from "
        "the fit; higher is better; ± SE is its standard error over workers",
        NEAR_BEST,
        "agreement: Kendall's τ with the rankings of the other methods, on average",
    )

    def score_held_out(self, fit: MakeFit, plan: VotePlan) -> HeldOutScore:
        """Return the log-probabilities of hidden rankings, with their workers as groups."""
        data: Any = plan.data
        return held_out_ranking_score(lambda visible: fit(visible).scores_, data)


def held_out_ranking_score(
    make_fit: Callable[[CrowdRankings], NDArray[np.float64]], data: CrowdRankings
) -> HeldOutScore:
    """Fit a method without each fifth of the rankings and score those that were hidden from it.

    A ranking is hidden as a whole. The Plackett-Luce law of the fitted scores predicts it, and
    items that no visible ranking holds have the mean score 0.

    Parameters
    ----------
    make_fit : function of CrowdRankings to (n_items,) scores in logits
        Fits the method to the visible rankings, which keep all vocabularies.
    data : CrowdRankings

    Returns
    -------
    HeldOutScore
        Its groups are workers, whose rankings are dependent; with one worker, they are rankings.

    Raises
    ------
    DataError
        If there are fewer rankings than folds.
    """
    folds = vote_folds(data)
    scored = folds >= 0
    if int(scored.sum()) < N_FOLDS:
        raise DataError(
            f"Held-out scores need at least {N_FOLDS} rankings, and there are "
            f"{int(scored.sum())}; collect more."
        )
    found = np.zeros(data.n_annotations)
    for fold in range(N_FOLDS):
        hidden = folds == fold
        scores = make_fit(data.select_annotations(~hidden))
        found[hidden] = log_probas(scores, data.select_annotations(hidden))
    worker = data.worker[scored]
    alone = len(np.unique(worker)) == 1
    groups = np.arange(len(worker)) if alone else worker.astype(np.int64)
    return HeldOutScore(found[scored], groups, data.weights[scored])


SCORER = RankingScorer
