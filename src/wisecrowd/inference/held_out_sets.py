r"""Held-out sets: how well a fit predicts the sets that were hidden from it.

.. math::
    \log p(Y_{ij}) = \sum_k \log\left(q_{ik}\, \hat s_{jk}^{y} (1 - \hat s_{jk})^{1-y}
    + (1 - q_{ik})\, \hat f_{jk}^{y} (1 - \hat f_{jk})^{1-y}\right), \qquad y = [k \in Y_{ij}]

The rates come from the visible sets under :math:`q`, in one common way for all methods.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.exceptions import DataError
from wisecrowd.core.sets import CrowdSets
from wisecrowd.inference.held_out_labels import FLOOR, HeldOutScore, ScoringPlan
from wisecrowd.inference.set_rates import Ticks, pooled_rates, shrunk_rates

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]
WORKER, POOLED = 10.0, 30.0  # pseudo-labels of the rates of a class, and of all classes
BLOCK = 1 << 20  # pairs of annotation and class at once


def held_out_set_score(make_fit: Callable[[CrowdSets], Floats], plan: ScoringPlan) -> HeldOutScore:
    """Fit a method without each fold of a plan and score the sets that were hidden from it.

    Parameters
    ----------
    make_fit : function of CrowdSets to (n_tasks, n_classes) probabilities
        Fits the method to the visible sets, which keep all vocabularies.
    plan : ScoringPlan
        All methods that are compared need the same plan.

    Raises
    ------
    DataError
        If no set can be hidden, because every task has one at most.
    """
    data: CrowdSets = plan.labels
    if plan.n_hidden == 0:
        raise DataError(
            "Held-out scores need tasks with two labels or more, and there are none; collect a "
            "second label for some tasks."
        )
    found = np.empty(data.n_annotations)
    for fold in range(plan.n_folds_used):
        hidden = plan.folds == fold
        if hidden.any():
            visible = data.select_annotations(~hidden)
            probas = make_fit(visible)
            found[hidden] = score_hidden_sets(visible, data.select_annotations(hidden), probas)
    scored = (plan.folds >= 0) & (plan.folds < plan.n_folds_used)
    weight = None if data.weight is None else data.weight[scored]
    return HeldOutScore(found[scored], data.task[scored], weight)


def score_hidden_sets(visible: CrowdSets, hidden: CrowdSets, probas: Floats) -> Floats:
    """Return the log-probability of each hidden set, under probabilities of the classes."""
    counts = Ticks(visible).counts(probas)
    rates = shrunk_rates(counts, pooled_rates(counts, POOLED), WORKER)
    found = np.empty(hidden.n_annotations)
    size = max(1, BLOCK // hidden.n_classes)
    for first in range(0, hidden.n_annotations, size):
        rows = slice(first, first + size)
        task, worker = hidden.task[rows], hidden.worker[rows]
        q, own = probas[task], rates[:, worker]
        chance = q * own[0] + (1 - q) * own[1]
        begin, end = hidden.pointer[first], hidden.pointer[min(first + size, len(found))]
        row = hidden.annotation[begin:end] - first
        log = np.log((1 - FLOOR) * (1 - chance) + FLOOR / 2)
        ticked = chance[row, hidden.members[begin:end]]
        more = np.log((1 - FLOOR) * ticked + FLOOR / 2) - log[row, hidden.members[begin:end]]
        found[rows] = log.sum(axis=1) + np.bincount(row, more, len(task))
    return found
