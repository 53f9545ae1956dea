"""Sums over votes, in NumPy: the specification of the compiled kernels."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.integer[Any]]


class Comparisons(NamedTuple):
    """Votes: codes of items and workers (n_rows,), and weights of the wins of left and right."""

    left: Ints
    right: Ints
    worker: Ints
    left_wins: Floats
    right_wins: Floats


def chances(logit: Floats) -> Floats:
    """Return the probabilities of logits, without overflow."""
    small = np.exp(-np.abs(logit))
    return np.asarray(np.where(logit >= 0, 1.0, small) / (1 + small))


def crowd_bt_sums(
    votes: Comparisons, scores: Floats, logit: Floats
) -> tuple[float, Floats, Floats]:
    """Return the log-likelihood of CrowdBT and its gradients in scores and logits of η.

    Parameters
    ----------
    votes : Comparisons
    scores : (n_items,)
    logit : (n_workers,) logit of the probability of a vote that follows the scores
    """
    gap = scores[votes.left] - scores[votes.right]
    small = np.exp(-np.abs(gap))
    high, low = 1 / (1 + small), small / (1 + small)
    p, q = np.where(gap >= 0, high, low), np.where(gap >= 0, low, high)
    sure = chances(logit)
    eta, rest = sure[votes.worker], 1 - sure[votes.worker]
    first, second = eta * p + rest * q, eta * q + rest * p
    value = float(votes.left_wins @ np.log(first) + votes.right_wins @ np.log(second))
    pull = votes.left_wins / first - votes.right_wins / second
    to_gap = pull * (eta - rest) * p * q
    to_logit = pull * (p - q) * eta * rest
    n = len(scores)
    to_items = np.bincount(votes.left, to_gap, n) - np.bincount(votes.right, to_gap, n)
    to_own = np.bincount(votes.worker, to_logit, len(logit))
    return value, to_items.astype(np.float64), to_own.astype(np.float64)
