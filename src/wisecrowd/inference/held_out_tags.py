"""Held-out tags: how well a fit predicts the tags of sequences that were hidden from it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.exceptions import DataError
from wisecrowd.core.sequences import CrowdSequences
from wisecrowd.inference.held_out_labels import HeldOutScore, ScoringPlan, score_hidden_labels

Floats = NDArray[np.float64]


def held_out_tag_score(
    make_fit: Callable[[CrowdSequences], Any], plan: ScoringPlan
) -> HeldOutScore:
    """Fit a method without each fold of a plan and score the tags that were hidden from it.

    Whole sequences of a worker are hidden. The workers of all methods have one common model, in
    which tags depend on the true tag only.

    Parameters
    ----------
    make_fit : function of CrowdSequences to (n_tokens, n_classes) probabilities
        Fits the method to the visible sequences, which keep all vocabularies and tokens.
    plan : ScoringPlan
        All methods that are compared need the same plan.

    Raises
    ------
    DataError
        If no sequence can be hidden, because every task has one at most.
    """
    data: Any = plan.labels
    if plan.n_hidden == 0:
        raise DataError(
            "Held-out scores need tasks with two labels or more, and there are none; collect a "
            "second label for some tasks."
        )
    tokens = data.to_labels()
    order = np.argsort(data.token, kind="stable")
    sequence = np.repeat(np.arange(data.n_annotations), np.diff(data.pointer))[order]
    folds, found = plan.folds[sequence], np.empty(len(sequence))
    for fold in range(plan.n_folds_used):
        hidden = folds == fold
        if hidden.any():
            probas = make_fit(data.select_annotations(plan.folds != fold))
            found[hidden] = score_hidden_labels(tokens, hidden, probas)
    scored = (folds >= 0) & (folds < plan.n_folds_used)
    weight = None if tokens.weight is None else tokens.weight[scored]
    return HeldOutScore(found[scored], data.task[sequence[scored]], weight)
