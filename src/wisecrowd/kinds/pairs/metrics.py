"""Metrics of rankings and of predicted votes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.exceptions import DataError
from wisecrowd.core.types import Floats
from wisecrowd.kinds.pairs.answers import kendall_tau as _tau_b

SMALLEST = 1e-15  # probabilities below count as this much
BLOCK = 1 << 22  # pairs that are compared at once


def kendall_tau(truth: Any, scores: Any) -> float:
    """Return Kendall's τ-b of two orders: 1 if they agree, -1 if one is the reverse.

    Parameters
    ----------
    truth, scores : (n_items,) numbers; items without a truth (NaN) do not count

    Examples
    --------
    >>> kendall_tau([1, 2, 3, 4], [0.1, 0.5, 0.4, 0.9])
    0.666...
    """
    known, found = _two_columns(truth, scores)
    return _tau_b(found, known)


def pair_accuracy(truth: Any, scores: Any) -> float:
    """Return the share of the pairs of items with different truths that scores put in order.

    Equal scores count half.

    Examples
    --------
    >>> pair_accuracy([1, 2, 3], [0.1, 0.5, 0.5])
    0.833...
    """
    known, found = _two_columns(truth, scores)
    right = total = 0.0
    step = max(1, BLOCK // len(known))
    for start in range(0, len(known), step):
        rows = slice(start, start + step)
        true = np.sign(known[rows, None] - known[None, :])
        seen = np.sign(found[rows, None] - found[None, :])
        differ = true != 0
        right += float(((true == seen) & differ).sum() + 0.5 * ((seen == 0) & differ).sum())
        total += float(differ.sum())
    if total == 0:
        raise DataError("All items have the same truth; there is no pair to put in order.")
    return right / total


def vote_log_loss(outcome: Any, probas: Any, weight: Any = None) -> float:
    """Return minus the mean log-probability of the outcomes of votes; lower is better.

    Parameters
    ----------
    outcome : (n_votes,) codes, 0 for left, 1 for right and 2 for a tie
    probas : (n_votes, 3) predicted probabilities
    weight : (n_votes,), optional

    Examples
    --------
    >>> vote_log_loss([0, 2], [[0.5, 0.25, 0.25], [0.25, 0.25, 0.5]])
    0.693...
    """
    codes, table = _votes(outcome, probas)
    chosen = table[np.arange(len(codes)), codes]
    return -float(np.average(np.log(np.maximum(chosen, SMALLEST)), weights=weight))


def vote_accuracy(outcome: Any, probas: Any, weight: Any = None) -> float:
    """Return the share of votes whose most probable outcome was the actual one.

    Examples
    --------
    >>> vote_accuracy([0, 2], [[0.5, 0.25, 0.25], [0.6, 0.2, 0.2]])
    0.5
    """
    codes, table = _votes(outcome, probas)
    return float(np.average(table.argmax(axis=1) == codes, weights=weight))


def _two_columns(truth: Any, scores: Any) -> tuple[Floats, Floats]:
    known, found = np.asarray(truth, dtype=np.float64), np.asarray(scores, dtype=np.float64)
    if known.ndim != 1 or known.shape != found.shape:
        raise DataError(
            f"The truth has shape {known.shape} and the scores {found.shape}; give one number per "
            "item in both."
        )
    used = ~np.isnan(known)
    if used.sum() < 2:
        raise DataError("Fewer than two items have a truth; there is no order to compare.")
    return known[used], found[used]


def _votes(outcome: Any, probas: Any) -> tuple[NDArray[np.int64], Floats]:
    codes, table = np.asarray(outcome), np.asarray(probas, dtype=np.float64)
    if table.shape != (len(codes), 3):
        raise DataError(
            f"The probabilities have shape {table.shape}; give (left, right, tie) for each of the "
            f"{len(codes)} votes."
        )
    if len(codes) == 0 or not np.isin(codes, (0, 1, 2)).all():
        raise DataError("Outcomes are 0 (left), 1 (right) or 2 (tie); give at least one vote.")
    return codes.astype(np.int64), table
