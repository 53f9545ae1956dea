"""Held-out texts: how well the text of a fit agrees with answers that were hidden from it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.exceptions import DataError
from wisecrowd.core.text_words import TextRules
from wisecrowd.core.texts import CrowdTexts
from wisecrowd.inference.held_out_labels import HeldOutScore, ScoringPlan
from wisecrowd.metrics.texts import edit_counts

Floats = NDArray[np.float64]


def held_out_text_score(
    make_fit: Callable[[CrowdTexts], NDArray[Any]], plan: ScoringPlan
) -> HeldOutScore:
    """Fit a method without each fold of a plan and compare its texts with the hidden answers.

    The score of a hidden answer is 1 less its edits to the text of the fit, over the words of the
    longer of both. Case and punctuation do not count, for all methods alike.

    Parameters
    ----------
    make_fit : function of CrowdTexts to (n_tasks,) texts
        Fits the method to the visible answers, which keep all vocabularies.
    plan : ScoringPlan
        All methods that are compared need the same plan.

    Raises
    ------
    DataError
        If no answer can be hidden, because every task has one at most.
    """
    data: Any = plan.labels
    if plan.n_hidden == 0:
        raise DataError(
            "Held-out scores need tasks with two answers or more, and there are none; collect a "
            "second answer for some tasks."
        )
    found = np.empty(data.n_annotations)
    for fold in range(plan.n_folds_used):
        hidden = np.flatnonzero(plan.folds == fold)
        if len(hidden):
            texts = make_fit(data.select_annotations(plan.folds != fold))
            given = texts[data.task[hidden]]
            edits, *lengths = edit_counts(data.text[hidden], given, TextRules())
            found[hidden] = 1 - edits / np.maximum(np.maximum(*lengths), 1)
    scored = (plan.folds >= 0) & (plan.folds < plan.n_folds_used)
    weight = None if data.weight is None else data.weight[scored]
    return HeldOutScore(found[scored], data.task[scored], weight)
