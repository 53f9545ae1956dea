"""The kernels of :mod:`wisecrowd.kernels.reference`, compiled.

Three things make them fast. Tasks are taken in chunks, so that the gathers of one chunk overlap and
its exponentials form one long vector loop. The number of classes reaches the compiler as the
*length of a tuple* (``lanes``), so that loops over few classes unroll; many classes come as an
array and share one generic version. Arguments that are None are pruned when compiling: a branch on
the weight inside the inner loops would double their time.
"""

from __future__ import annotations

from typing import Any

import numba as nb
import numpy as np
from llvmlite import ir
from numba.extending import intrinsic
from numpy.typing import NDArray

from wisecrowd.kernels.reference import soft_votes

__all__ = ["add_counts", "confusion_step", "soft_votes"]

Floats = NDArray[np.float64]
Ints = NDArray[np.integer[Any]]

CHUNK = 64  # tasks whose scores stay in the first-level cache
MOST_LANES = 7  # up to here every K gets its own unrolled code; beyond, vector loops do better
_njit = nb.njit(cache=True, nogil=True, error_model="numpy", boundscheck=False)
_inline = nb.njit(inline="always", error_model="numpy")


@intrinsic
def _from_bits(typing_context: Any, value: Any) -> Any:
    """Reinterpret an int64 as the float64 with the same bits."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], ir.DoubleType())

    return nb.float64(nb.int64), generate


@_inline
def _exp(x: float) -> float:
    """exp(x) for x <= 0 to 4e-15, without a call, so that a loop of it becomes vector code.

    x = n log 2 + r with abs(r) <= log(2) / 2; a Taylor polynomial of degree 13 does the rest.
    Results below the smallest normal number are 0.
    """
    floor = -708.0
    y = x if x > floor else floor
    n = np.floor(y * 1.4426950408889634 + 0.5)
    r = y - n * 0.693147180369123816490 - n * 1.90821492927058770002e-10
    p = 1.6059043836821613e-10
    p = p * r + 2.08767569878681e-09
    p = p * r + 2.505210838544172e-08
    p = p * r + 2.755731922398589e-07
    p = p * r + 2.7557319223985893e-06
    p = p * r + 2.48015873015873e-05
    p = p * r + 0.0001984126984126984
    p = p * r + 0.001388888888888889
    p = p * r + 0.008333333333333333
    p = p * r + 0.041666666666666664
    p = p * r + 0.16666666666666666
    p = p * r + 0.5
    p = p * r + 1.0
    p = p * r + 1.0
    scaled = p * _from_bits((np.int64(n) + 1023) << 52)
    return scaled if x > floor else 0.0


@_njit
def _chunk_scores(lanes, indptr, cell, weight, table, log_class, prior_rows, prior_index, first,
                  scores):  # fmt: skip
    """Fill the log scores of one chunk of tasks, minus their maximum; return the maxima's sum."""
    K = len(lanes)
    total = 0.0
    for b in range(scores.shape[0]):
        i = first + b
        if prior_index is None:
            row = 0
        else:
            row = prior_index[i]
        for k in range(K):
            scores[b, k] = log_class[k] + prior_rows[row, k]
        for e in range(indptr[i], indptr[i + 1]):
            c = cell[e]
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


@_njit
def _add_rows(lanes, indptr, cell, weight, first, probas, counts):
    """Add the posteriors of a chunk to the counts of the cells it touches."""
    K = len(lanes)
    for b in range(probas.shape[0]):
        for e in range(indptr[first + b], indptr[first + b + 1]):
            c = cell[e]
            if weight is None:
                for k in range(K):
                    counts[c, k] += probas[b, k]
            else:
                for k in range(K):
                    counts[c, k] += weight[e] * probas[b, k]


@_njit
def _harden(scores):
    """Replace log scores (maximum 0) by the argmax, shared among ties."""
    for b in range(scores.shape[0]):
        best = 0
        for k in range(scores.shape[1]):
            best += scores[b, k] >= -1e-9
        for k in range(scores.shape[1]):
            scores[b, k] = 1.0 / best if scores[b, k] >= -1e-9 else 0.0


@_njit
def _soften(lanes, indptr, first, scores):
    """Turn log scores (maximum 0) into probabilities; return the sum of the log normalisers."""
    K = len(lanes)
    total = 0.0
    flat = scores.reshape(-1)
    for x in range(flat.shape[0]):
        flat[x] = _exp(flat[x])
    for b in range(scores.shape[0]):
        s = 0.0
        for k in range(K):
            s += scores[b, k]
        inverse = 1.0 / s
        for k in range(K):
            scores[b, k] *= inverse
        if indptr[first + b + 1] > indptr[first + b]:
            total += np.log(s)
    return total


@_njit
def _confusion_step(lanes, indptr, cell, weight, table, log_class, prior_rows, prior_index, counts,
                    mass, probas, hard):  # fmt: skip
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
        if counts is not None:
            _add_rows(lanes, indptr, cell, weight, first, q, counts)
            for b in range(q.shape[0]):
                if indptr[first + b + 1] > indptr[first + b]:
                    for k in range(K):
                        mass[k] += q[b, k]
        if probas is not None:
            probas[first : first + q.shape[0]] = q
    return log_likelihood


@_njit
def _add_counts(lanes, indptr, cell, weight, probas, counts):
    for first in range(0, probas.shape[0], CHUNK):
        last = min(first + CHUNK, probas.shape[0])
        _add_rows(lanes, indptr, cell, weight, first, probas[first:last], counts)


def _lanes(n_classes: int) -> tuple[int, ...] | NDArray[np.int8]:
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
    """See :func:`wisecrowd.kernels.reference.confusion_step`."""
    return float(
        _confusion_step(_lanes(table.shape[1]), indptr, cell, weight, table, log_class, prior_rows,
                        prior_index, counts, mass, probas, hard)
    )  # fmt: skip


def add_counts(
    indptr: Ints, cell: Ints, weight: Floats | None, probas: Floats, counts: Floats
) -> None:
    """See :func:`wisecrowd.kernels.reference.add_counts`."""
    _add_counts(_lanes(counts.shape[1]), indptr, cell, weight, probas, counts)
