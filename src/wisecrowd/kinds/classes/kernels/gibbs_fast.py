"""The sweep of :mod:`wisecrowd.kinds.classes.kernels.gibbs`, compiled.

The loops over chains are innermost and contiguous, so that they become vector code.
"""

from __future__ import annotations

import math

import numpy as np

from wisecrowd.core.types import Floats, Ints
from wisecrowd.kernels.arguments import TaskLabels
from wisecrowd.kernels.compiling import compiled
from wisecrowd.kinds.classes.kernels.gibbs import (
    LONG_PRODUCT,
    ChainCounts,
    EarlierLabels,
    TaskWeights,
)

__all__ = ["gibbs_sweep"]


@compiled
def _cell(j: int, given: int, k: int, n_classes: int, coin: bool) -> int:
    if coin:
        return 2 * j + (1 if given != k else 0)
    return (j * n_classes + given) * n_classes + k


@compiled
def _move(i: int, labels: TaskLabels, weight: Floats | None, coin: bool, sign: float,
          learn_class: bool, chains: ChainCounts) -> None:  # fmt: skip
    """Add a task's annotations to its classes' cells, or subtract them."""
    indptr, worker, label, _ = labels
    class_counts, counts, totals, state = chains
    n_classes, n_chains = class_counts.shape
    for e in range(indptr[i], indptr[i + 1]):
        w = sign if weight is None else sign * weight[e]
        j = worker[e]
        for c in range(n_chains):
            k = state[i, c]
            counts[_cell(j, label[e], k, n_classes, coin), c] += w
            totals[j if coin else j * n_classes + k, c] += w
    if learn_class:
        for c in range(n_chains):
            class_counts[state[i, c], c] += sign


@compiled
def _rescale(scores: Floats) -> None:
    """Divide each chain's scores by their maximum, if it is positive."""
    for c in range(scores.shape[1]):
        top = 0.0
        for k in range(scores.shape[0]):
            top = max(top, scores[k, c])
        if top > 0:
            for k in range(scores.shape[0]):
                scores[k, c] /= top


@compiled
def _multiply(i: int, labels: TaskLabels, coin: bool, chains: ChainCounts,
              scores: Floats) -> None:  # fmt: skip
    """Multiply scores (K, C) by the probabilities of a task's labels."""
    indptr, worker, label, _ = labels
    _, counts, totals, _ = chains
    n_classes, n_chains = scores.shape
    for e in range(indptr[i], indptr[i + 1]):
        j = worker[e]
        for k in range(n_classes):
            at = _cell(j, label[e], k, n_classes, coin)
            row = j if coin else j * n_classes + k
            share = 1.0 if not coin or label[e] == k else 1.0 / max(n_classes - 1, 1)
            for c in range(n_chains):
                scores[k, c] *= share * counts[at, c] / totals[row, c]
        if (e - indptr[i]) % LONG_PRODUCT == LONG_PRODUCT - 1:
            _rescale(scores)


@compiled
def _multiply_rising(i: int, labels: TaskLabels, weight: Floats | None, earlier: EarlierLabels,
                     coin: bool, chains: ChainCounts, scores: Floats) -> None:  # fmt: skip
    """Multiply scores (K, C) by ratios of gamma functions, relative to the best class."""
    indptr, worker, label, _ = labels
    _, counts, totals, _ = chains
    n_classes, n_chains = scores.shape
    for c in range(n_chains):
        logs = np.zeros(n_classes)
        for e in range(indptr[i], indptr[i + 1]):
            j = worker[e]
            w = 1.0 if weight is None else weight[e]
            for k in range(n_classes):
                n = counts[_cell(j, label[e], k, n_classes, coin), c] + earlier.cell[e, k]
                total = totals[j if coin else j * n_classes + k, c] + earlier.row[e]
                logs[k] += math.lgamma(n + w) - math.lgamma(n)
                logs[k] -= math.lgamma(total + w) - math.lgamma(total)
                if coin and label[e] != k:
                    logs[k] -= w * math.log(max(n_classes - 1, 1))
        top = logs.max()
        for k in range(n_classes):
            scores[k, c] *= math.exp(logs[k] - top)


@compiled
def _draw(i: int, h: Floats, scores: Floats, uniform: Floats, state: Ints,
          probas: Floats | None) -> None:  # fmt: skip
    """Draw a class in every chain and sum the conditional probabilities."""
    n_classes, n_chains = scores.shape
    for c in range(n_chains):
        total = 0.0
        for k in range(n_classes):
            total += scores[k, c]
        if not total > 0:  # everything underflowed: use the prior of the task
            for k in range(n_classes):
                scores[k, c] = h[k]
                total += h[k]
        goal = uniform[i, c] * total
        reached = 0.0
        chosen = -1
        for k in range(n_classes):
            if scores[k, c] > 0 and not (chosen >= 0 and reached > goal):
                chosen = k
            reached += scores[k, c]
            if probas is not None:
                probas[i, k] += scores[k, c] / total / n_chains
        state[i, c] = chosen


@compiled
def _row_of(row_of: Ints | None, i: int) -> int:
    return 0 if row_of is None else row_of[i]


@compiled
def gibbs_sweep(labels: TaskLabels, earlier: EarlierLabels | None, prior: TaskWeights,
                chains: ChainCounts, uniform: Floats, probas: Floats | None, coin: bool,
                learn_class: bool) -> None:  # fmt: skip
    """See :func:`wisecrowd.kinds.classes.kernels.gibbs.gibbs_sweep`."""
    indptr, weight = labels.indptr, labels.weight
    rows, row_of = prior
    class_counts, state = chains.class_counts, chains.state
    n_classes, n_chains = class_counts.shape
    scores = np.empty((n_classes, n_chains))
    for i in range(indptr.shape[0] - 1):
        if indptr[i] == indptr[i + 1]:
            continue
        _move(i, labels, weight, coin, -1.0, learn_class, chains)
        h = rows[_row_of(row_of, i)]
        for k in range(n_classes):
            for c in range(n_chains):
                scores[k, c] = h[k] * class_counts[k, c]
        if earlier is None:
            _multiply(i, labels, coin, chains, scores)
        else:
            _multiply_rising(i, labels, weight, earlier, coin, chains, scores)
        _draw(i, h, scores, uniform, state, probas)
        _move(i, labels, weight, coin, 1.0, learn_class, chains)
