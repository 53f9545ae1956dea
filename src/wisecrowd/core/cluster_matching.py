"""Scores of clusters against true ones, whatever their numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.integer[Any]]


def contingency(truth: Ints, found: Ints) -> NDArray[np.int64]:
    """Return (n_true, n_found) counts of items."""
    _, one = np.unique(truth, return_inverse=True)
    _, two = np.unique(found, return_inverse=True)
    shape = int(one.max(initial=-1)) + 1, int(two.max(initial=-1)) + 1
    return np.bincount(one * shape[1] + two, minlength=shape[0] * shape[1]).reshape(shape)


def matched_accuracy(truth: Ints, found: Ints) -> float:
    """Return the share of items in the right cluster, after the best one-to-one matching.

    Examples
    --------
    >>> matched_accuracy(np.array([0, 0, 1, 1]), np.array([5, 5, 5, 2]))
    0.75
    """
    from scipy.optimize import linear_sum_assignment

    table = contingency(truth, found)
    rows, columns = linear_sum_assignment(-table)
    return float(table[rows, columns].sum() / max(len(truth), 1))


def adjusted_rand_index(truth: Ints, found: Ints) -> float:
    """Return the agreement of two clusterings on pairs of items: 1 equal, 0 as by chance.

    Examples
    --------
    >>> adjusted_rand_index(np.array([0, 0, 1, 1]), np.array([5, 5, 2, 2]))
    1.0
    """
    table = contingency(truth, found)
    both, one, two = (_pairs(x) for x in (table, table.sum(axis=1), table.sum(axis=0)))
    total = _pairs(np.array([len(truth)]))
    expected = one * two / max(total, 1.0)
    largest = (one + two) / 2
    return float((both - expected) / (largest - expected)) if largest > expected else 1.0


def cluster_scores(truth: Ints, found: Ints) -> dict[str, float]:
    """Return the scores of clusters, for items with a truth of 0 or more."""
    known = truth >= 0
    return {
        "matched_accuracy": matched_accuracy(truth[known], found[known]),
        "adjusted_rand_index": adjusted_rand_index(truth[known], found[known]),
    }


def _pairs(count: NDArray[np.int64]) -> float:
    size = count.astype(np.float64)
    return float((size * (size - 1) / 2).sum())
