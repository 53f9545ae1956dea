"""The kernels of :mod:`wisecrowd.kinds.classes.kernels.confusion`, compiled.

Three things make them fast. Tasks are processed in chunks, so that the gathers of one chunk overlap
and its exponentials form one long vector loop. The number of classes reaches the compiler as the
*length of a tuple* (``lanes``), so that loops over few classes unroll; many classes are passed as
an array and share one generic version. Arguments that are None are removed when compiling, because
a branch on the weight inside the inner loops would double their time.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.types import Floats, Ints
from wisecrowd.kernels.compiling import compiled, exp_below_zero, prefetch_row

__all__ = ["add_counts", "add_vote_counts", "confusion_step"]

Lanes = tuple[int, ...] | NDArray[np.int8]

CHUNK = 64  # tasks whose scores stay in the first-level cache
AHEAD = 8  # annotations between prefetching a row of a table and using it
LONG_ROW = 8  # least number of classes for which prefetching pays
MOST_LANES = 10  # largest K with its own unrolled code; beyond it, vector loops are faster


@compiled
def _chunk_scores(lanes: Lanes, indptr: Ints, cell: Ints, weight: Floats | None, table: Floats,
                  log_class: Floats, prior_rows: Floats, prior_index: Ints | None, first: int,
                  scores: Floats) -> float:  # fmt: skip
    """Fill the log scores of one chunk of tasks, minus their maximum; return the maxima's sum."""
    K = len(lanes)
    last = cell.shape[0] - 1
    total = 0.0
    for b in range(scores.shape[0]):
        i = first + b
        row = 0 if prior_index is None else prior_index[i]
        for k in range(K):
            scores[b, k] = log_class[k] + prior_rows[row, k]
        for e in range(indptr[i], indptr[i + 1]):
            c = cell[e]
            if K >= LONG_ROW:
                prefetch_row(table, cell[min(e + AHEAD, last)])
            if weight is None:
                for k in range(K):
                    scores[b, k] += table[c, k]
            else:
                for k in range(K):
                    scores[b, k] += weight[e] * table[c, k]
        top = scores[b, 0]
        for k in range(1, K):
            top = max(top, scores[b, k])
        for k in range(K):
            scores[b, k] -= top
        if indptr[i + 1] > indptr[i]:
            total += top
    return total


@compiled
def _add_rows(lanes: Lanes, indptr: Ints, cell: Ints, weight: Floats | None, first: int,
              probas: Floats, counts: Floats) -> None:  # fmt: skip
    """Add the posteriors of a chunk to the counts of its cells."""
    K = len(lanes)
    last = cell.shape[0] - 1
    for b in range(probas.shape[0]):
        for e in range(indptr[first + b], indptr[first + b + 1]):
            c = cell[e]
            if K >= LONG_ROW:
                prefetch_row(counts, cell[min(e + AHEAD, last)])
            if weight is None:
                for k in range(K):
                    counts[c, k] += probas[b, k]
            else:
                for k in range(K):
                    counts[c, k] += weight[e] * probas[b, k]


@compiled
def _harden(scores: Floats) -> None:
    """Replace log scores (maximum 0) by the argmax, shared among ties."""
    for b in range(scores.shape[0]):
        best = 0
        for k in range(scores.shape[1]):
            best += scores[b, k] >= -1e-9
        for k in range(scores.shape[1]):
            scores[b, k] = 1.0 / best if scores[b, k] >= -1e-9 else 0.0


@compiled
def _soften(lanes: Lanes, indptr: Ints, first: int, scores: Floats) -> float:
    """Convert log scores (maximum 0) to probabilities; return the sum of the log normalisers."""
    K = len(lanes)
    flat = scores.reshape(-1)
    for x in range(flat.shape[0]):
        flat[x] = exp_below_zero(flat[x])
    total = 0.0
    product = 1.0  # one logarithm for many normalisers, each between 1 and K
    for b in range(scores.shape[0]):
        s = 0.0
        for k in range(K):
            s += scores[b, k]
        inverse = 1.0 / s
        for k in range(K):
            scores[b, k] *= inverse
        if indptr[first + b + 1] > indptr[first + b]:
            product *= s
            if product > 1e200:
                total += np.log(product)
                product = 1.0
    return total + float(np.log(product))


@compiled
def _confusion_step(lanes: Lanes, indptr: Ints, cell: Ints, weight: Floats | None, table: Floats,
                    log_class: Floats, prior_rows: Floats, prior_index: Ints | None,
                    counts: Floats | None, mass: Floats | None, probas: Floats | None,
                    hard: bool) -> float:  # fmt: skip
    K = len(lanes)
    n = indptr.shape[0] - 1
    buffer = np.empty((CHUNK, K))
    log_likelihood = 0.0
    for first in range(0, n, CHUNK):
        q = buffer[: min(CHUNK, n - first)]
        log_likelihood += _chunk_scores(lanes, indptr, cell, weight, table, log_class, prior_rows,
                                        prior_index, first, q)  # fmt: skip
        if hard:
            _harden(q)
        else:
            log_likelihood += _soften(lanes, indptr, first, q)
        if counts is not None and mass is not None:
            _add_rows(lanes, indptr, cell, weight, first, q, counts)
            for b in range(q.shape[0]):
                if indptr[first + b + 1] > indptr[first + b]:
                    for k in range(K):
                        mass[k] += q[b, k]
        if probas is not None:
            probas[first : first + q.shape[0]] = q
    return log_likelihood


@compiled
def _two_class_step(indptr: Ints, cell: Ints, weight: Floats | None, table: Floats,
                    log_class: Floats, prior_rows: Floats, prior_index: Ints | None,
                    counts: Floats | None, mass: Floats | None,
                    probas: Floats | None) -> float:  # fmt: skip
    """Run the step for two classes, where one exponential of the log-odds gives the posterior."""
    n = indptr.shape[0] - 1
    gap = np.empty(CHUNK)  # log-odds of class 1
    small = np.empty(CHUNK)  # exp(-abs(gap))
    q = np.empty((CHUNK, 2))
    total = mass_zero = mass_one = 0.0
    for first in range(0, n, CHUNK):
        size = min(CHUNK, n - first)
        for b in range(size):
            i = first + b
            row = 0 if prior_index is None else prior_index[i]
            zero = log_class[0] + prior_rows[row, 0]
            one = log_class[1] + prior_rows[row, 1]
            for e in range(indptr[i], indptr[i + 1]):
                c = cell[e]
                if weight is None:
                    zero += table[c, 0]
                    one += table[c, 1]
                else:
                    zero += weight[e] * table[c, 0]
                    one += weight[e] * table[c, 1]
            gap[b] = one - zero
            total += max(zero, one) if indptr[i + 1] > indptr[i] else 0.0
        for b in range(size):
            small[b] = exp_below_zero(-abs(gap[b]))
        for b in range(size):
            larger = 1.0 / (1.0 + small[b])
            smaller = small[b] * larger
            q[b, 0] = larger if gap[b] < 0 else smaller
            q[b, 1] = smaller if gap[b] < 0 else larger
        product = 1.0  # one logarithm for the chunk: at most 2 to the power CHUNK
        for b in range(size):
            if indptr[first + b + 1] > indptr[first + b]:
                product *= 1.0 + small[b]
                mass_zero += q[b, 0]
                mass_one += q[b, 1]
        total += np.log(product)
        if counts is not None:
            _add_rows((0, 0), indptr, cell, weight, first, q[:size], counts)
        if probas is not None:
            probas[first : first + size] = q[:size]
    if mass is not None:
        mass[0] += mass_zero
        mass[1] += mass_one
    return total


@compiled
def _add_counts(lanes: Lanes, indptr: Ints, cell: Ints, weight: Floats | None, probas: Floats,
                counts: Floats) -> None:  # fmt: skip
    for first in range(0, probas.shape[0], CHUNK):
        last = min(first + CHUNK, probas.shape[0])
        _add_rows(lanes, indptr, cell, weight, first, probas[first:last], counts)


@compiled
def _add_vote_counts(indptr: Ints, label: Ints, cell: Ints, weight: Floats | None, counts: Floats,
                     mass: Floats) -> None:  # fmt: skip
    votes = np.zeros(mass.shape[0])
    for i in range(indptr.shape[0] - 1):
        total = 0.0
        for e in range(indptr[i], indptr[i + 1]):
            w = 1.0 if weight is None else weight[e]
            votes[label[e]] += w
            total += w
        # Each distinct label of the task is handled once: by its first annotation.
        for e in range(indptr[i], indptr[i + 1]):
            share = votes[label[e]] / total if total > 0 else 0.0
            if share > 0:
                votes[label[e]] = 0.0
                mass[label[e]] += share
                for f in range(indptr[i], indptr[i + 1]):
                    w = 1.0 if weight is None else weight[f]
                    counts[cell[f], label[e]] += w * share


def _lanes(n_classes: int) -> Lanes:
    return (0,) * n_classes if n_classes <= MOST_LANES else np.empty(n_classes, np.int8)


def confusion_step(
    indptr: Ints,
    cell: Ints,
    weight: Floats | None,
    table: Floats,
    log_class: Floats,
    prior_rows: Floats,
    prior_index: Ints | None,
    counts: Floats | None,
    mass: Floats | None,
    probas: Floats | None,
    hard: bool,
) -> float:
    """See :func:`wisecrowd.kinds.classes.kernels.confusion.confusion_step`."""
    arrays = (indptr, cell, weight, table, log_class, prior_rows, prior_index, counts, mass, probas)
    if table.shape[1] == 2 and not hard:
        return float(_two_class_step(*arrays))
    return float(_confusion_step(_lanes(table.shape[1]), *arrays, hard))


def add_counts(
    indptr: Ints, cell: Ints, weight: Floats | None, probas: Floats, counts: Floats
) -> None:
    """See :func:`wisecrowd.kinds.classes.kernels.confusion.add_counts`."""
    _add_counts(_lanes(counts.shape[1]), indptr, cell, weight, probas, counts)


def add_vote_counts(
    indptr: Ints,
    label: Ints,
    cell: Ints,
    weight: Floats | None,
    counts: Floats,
    mass: Floats,
) -> None:
    """See :func:`wisecrowd.kinds.classes.kernels.confusion.add_vote_counts`."""
    _add_vote_counts(indptr, label, cell, weight, counts, mass)
