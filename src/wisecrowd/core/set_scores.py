"""Scores of sets of classes against the truth."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.set_truth import KnownSets

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]
SET_SCORES = ("micro_f1", "macro_f1", "exact_sets", "hamming_loss")
LEAST = 1e-6  # smallest probability in a log loss


def set_scores(truth: KnownSets, chosen: Mask, probas: Floats | None = None) -> dict[str, float]:
    """Return the scores of sets, on the tasks with a truth.

    ``micro_f1`` counts all pairs of task and class together. ``macro_f1`` is the mean of F1 over
    the classes that occur in the truth or in the answers. ``exact_sets`` is the share of tasks
    without any error, and ``hamming_loss`` the share of wrong decisions about single classes.
    ``log_loss`` is that of single classes, if probabilities are given.

    Parameters
    ----------
    truth : KnownSets
        Its further classes, which the answers do not have, count as missed.
    chosen : (n_tasks, n_classes) bool
    probas : (n_tasks, n_classes), optional

    Examples
    --------
    >>> truth = KnownSets(np.array([True, True]), np.array([[True, True], [False, True]]))
    >>> found = set_scores(truth, np.array([[True, False], [False, True]]))
    >>> {name: round(value, 3) for name, value in found.items()}
    {'micro_f1': 0.8, 'macro_f1': 0.833, 'exact_sets': 0.5, 'hamming_loss': 0.25}
    """
    wanted = truth.members[truth.known]
    found = _widened(chosen[truth.known], wanted.shape[1])
    both, either = (wanted & found).sum(axis=0), wanted.sum(axis=0) + found.sum(axis=0)
    occurs = either > 0
    scores = {
        "micro_f1": 2 * float(both.sum()) / float(either.sum()) if occurs.any() else 1.0,
        "macro_f1": float(np.mean(2 * both[occurs] / either[occurs])) if occurs.any() else 1.0,
        "exact_sets": float((wanted == found).all(axis=1).mean()),
        "hamming_loss": float((wanted != found).mean()) if wanted.size else 0.0,
    }
    if probas is None:
        return scores
    p = np.clip(_widened(probas[truth.known], wanted.shape[1]), LEAST, 1 - LEAST)
    return scores | {"log_loss": float(-np.mean(np.log(np.where(wanted, p, 1 - p))))}


def _widened(table: NDArray[Any], n_classes: int) -> NDArray[Any]:
    """Return a table with columns of zeros for the classes that only the truth has."""
    missing = n_classes - table.shape[1]
    return np.pad(table, ((0, 0), (0, missing))) if missing else table
