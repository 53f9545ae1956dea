"""The kernel of :mod:`wisecrowd.kinds.classes.kernels.hierarchical`, compiled.

Tasks are processed in chunks whose arrays stay in cache. The annotations or tasks of a chunk are
the last axis, so that loops over them run in vector registers whatever the number of classes.
Levels come in groups of four, which share one division. The likelihoods of a few labels are
multiplied, so that most tasks need no logarithm.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.types import Floats, Ints
from wisecrowd.kernels.arguments import TaskLabels, TaskPriors
from wisecrowd.kernels.compiling import compiled, prefetch_row
from wisecrowd.kinds.classes.kernels import hierarchical
from wisecrowd.kinds.classes.kernels.hierarchical import (
    CountSums,
    RatePrior,
    TaskBlock,
    TaskLevels,
    WorkerCounts,
)

__all__ = ["hierarchical_step"]

Singles = NDArray[np.float32]
Lanes = tuple[int, ...] | NDArray[np.int8]

CHUNK = 128  # tasks of a chunk; and annotations, unless a single task has more
SHORT = 8  # labels whose likelihoods are multiplied before a logarithm is taken
ROOM = 8  # unused columns of the buffers: rows a power of two apart evict each other from cache
MOST_LANES = 10  # largest K with its own unrolled code
AHEAD = 8  # annotations between prefetching a row of a table and using it
LONG_ROW = 8  # least number of classes for which prefetching pays
LARGE = 1e100  # a product of normalisers above this is replaced by its logarithm


class _Buffers(NamedTuple):
    """Arrays of a chunk, over its annotations (..., B) or tasks (..., T)."""

    theta: Floats  # (K, B) rates of the labels
    part: Floats  # (K, B) contributions of the labels
    chance: Floats  # (B,) share of the label in the crowd
    ratio: Floats  # (B,) sum of posterior over likelihood
    line: Floats  # (4, B)
    task: Ints  # (B,) task of each annotation within the chunk
    prior: Floats  # (K, T) class prior of each task, at most 1
    log_prior: Floats  # (K, T) its logarithm
    q: Floats  # (D * K, T) posterior
    log_q: Floats  # (D * K, T) its logarithm, with weights
    total: Floats  # (K + 3, T): class probabilities, sum, difficulty, 1 if labelled
    mass: Floats  # (K + D, T): sums of the posteriors of classes and of levels, over chunks


@compiled
def _fill_rates(lanes: Lanes, first: int, size: int, worker: Ints, label: Ints,
                counts: WorkerCounts, population: RatePrior, own: Singles,
                buffers: _Buffers) -> None:  # fmt: skip
    """Fill p(label | worker, class) (K, B), from counts without the annotation's own share."""
    theta, chance = buffers.theta, buffers.chance
    cells, totals, weights, right, everything = counts
    wrong, shares, odds, coin, strength, c = population
    K, end = len(lanes), worker.shape[0] - 1
    for b in range(size):
        e = first + b
        if K >= LONG_ROW:
            ahead = min(e + AHEAD, end)
            prefetch_row(cells, worker[ahead] * K + label[ahead])
        j, y = worker[e], label[e]
        row, rest = j * K + y, everything[j]
        for k in range(K):
            rest -= weights[j, k] * own[e, k]
        correct = max(right[j] - weights[j, y] * own[e, y], 0.0)
        favour = odds * (correct + strength * coin)
        against = max(rest - correct, 0.0) + strength * (1.0 - coin)
        accuracy = favour / (favour + against)
        missed = c * (1.0 - accuracy)
        for k in range(K):
            above = max(cells[row, k] - own[e, k], 0.0) + missed * wrong[y, k]
            theta[k, b] = above / (c + max(totals[j, k] - own[e, k], 0.0))
        theta[y, b] += c * accuracy / (c + max(totals[j, y] - own[e, y], 0.0))
        chance[b] = shares[y]


@compiled
def _fill_priors(start: int, n: int, log_class: Floats, prior_rows: Floats, row_of: Ints | None,
                 buffers: _Buffers) -> None:  # fmt: skip
    """Fill the class priors (K, T) of a chunk, divided by their maximum."""
    prior, log_prior = buffers.prior, buffers.log_prior
    for t in range(n):
        row = 0 if row_of is None else row_of[start + t]
        top = -np.inf
        for k in range(prior.shape[0]):
            log_prior[k, t] = log_class[k] + prior_rows[row, k]
            top = max(top, log_prior[k, t])
        for k in range(prior.shape[0]):
            log_prior[k, t] -= top
            prior[k, t] = np.exp(log_prior[k, t])


@compiled
def _fill_products(start: int, n: int, indptr: Ints, levels: TaskLevels,
                   buffers: _Buffers) -> None:  # fmt: skip
    """Fill prior times likelihood (D * K, T) of tasks with few labels; others get logarithms."""
    theta, chance, q = buffers.theta, buffers.chance, buffers.q
    prior, log_prior = buffers.prior, buffers.log_prior
    first, K = indptr[start], theta.shape[0]
    for d in range(0, levels.value.shape[0], 4):
        a0, a1 = levels.value[d], levels.value[d + 1]
        a2, a3 = levels.value[d + 2], levels.value[d + 3]
        g0, g1 = levels.log_prior[d], levels.log_prior[d + 1]
        g2, g3 = levels.log_prior[d + 2], levels.log_prior[d + 3]
        r0, r1, r2, r3 = np.exp(g0), np.exp(g1), np.exp(g2), np.exp(g3)
        for k in range(K):
            x = d * K + k
            for t in range(n):
                one, last = indptr[start + t] - first, indptr[start + t + 1] - first
                p0 = p1 = p2 = p3 = 1.0
                if last - one <= SHORT:
                    for b in range(one, last):
                        lik, gap = theta[k, b], chance[b] - theta[k, b]
                        p0 *= lik + a0 * gap
                        p1 *= lik + a1 * gap
                        p2 *= lik + a2 * gap
                        p3 *= lik + a3 * gap
                    q[x, t] = p0 * (r0 * prior[k, t])
                    q[x + K, t] = p1 * (r1 * prior[k, t])
                    q[x + 2 * K, t] = p2 * (r2 * prior[k, t])
                    q[x + 3 * K, t] = p3 * (r3 * prior[k, t])
                    continue
                s0 = s1 = s2 = s3 = log_prior[k, t]
                for b in range(one, last):
                    lik, gap = theta[k, b], chance[b] - theta[k, b]
                    p0 *= lik + a0 * gap
                    p1 *= lik + a1 * gap
                    p2 *= lik + a2 * gap
                    p3 *= lik + a3 * gap
                    if (b - one) % SHORT == SHORT - 1 or b == last - 1:
                        s0 += np.log(p0)
                        s1 += np.log(p1)
                        s2 += np.log(p2)
                        s3 += np.log(p3)
                        p0 = p1 = p2 = p3 = 1.0
                q[x, t] = s0 + g0
                q[x + K, t] = s1 + g1
                q[x + 2 * K, t] = s2 + g2
                q[x + 3 * K, t] = s3 + g3


@compiled
def _fill_logarithms(start: int, n: int, indptr: Ints, weight: Floats, levels: TaskLevels,
                     buffers: _Buffers) -> None:  # fmt: skip
    """Fill the logarithm of prior times likelihood (D * K, T) of labels with weights."""
    theta, chance, q = buffers.theta, buffers.chance, buffers.q
    first, K = indptr[start], theta.shape[0]
    for x in range(q.shape[0]):
        d, k = x // K, x % K
        for t in range(n):
            score = buffers.log_prior[k, t] + levels.log_prior[d]
            for e in range(indptr[start + t], indptr[start + t + 1]):
                lik = theta[k, e - first]
                score += weight[e] * np.log(lik + levels.value[d] * (chance[e - first] - lik))
            q[x, t] = score


@compiled
def _normalise(start: int, n: int, indptr: Ints, weight: Floats | None,
               buffers: _Buffers) -> None:  # fmt: skip
    """Convert the joint probabilities (D * K, T), or their logarithms, to posteriors."""
    q, log_q, total = buffers.q, buffers.log_q, buffers.total[0]
    for t in range(n):
        total[t] = 0.0
        if weight is not None or indptr[start + t + 1] - indptr[start + t] > SHORT:
            top = -np.inf
            for x in range(q.shape[0]):
                top = max(top, q[x, t])
            for x in range(q.shape[0]):
                log_q[x, t] = q[x, t] - top
                q[x, t] = np.exp(log_q[x, t])
    for x in range(q.shape[0]):
        for t in range(n):
            total[t] += q[x, t]
    for t in range(n):
        total[t] = 1.0 / total[t]
    for x in range(q.shape[0]):
        for t in range(n):
            q[x, t] *= total[t]
        if weight is not None:
            for t in range(n):
                log_q[x, t] += np.log(total[t])


@compiled
def _weighted_score(first: int, size: int, weight: Floats, level: Floats,
                    buffers: _Buffers) -> float:  # fmt: skip
    """Return the leave-one-out log score of a chunk of labels with weights."""
    theta, chance, log_q = buffers.theta, buffers.chance, buffers.log_q
    K, score = theta.shape[0], 0.0
    for b in range(size):
        top, total = -np.inf, 0.0
        for x in range(log_q.shape[0]):
            lik = theta[x % K, b] + level[x // K] * (chance[b] - theta[x % K, b])
            value = log_q[x, buffers.task[b]] - weight[first + b] * np.log(lik)
            if value > top:
                total = total * np.exp(top - value) + 1.0
                top = value
            elif value > -np.inf:
                total += np.exp(value - top)
        score -= top + np.log(total)
    return score


@compiled
def _fill_contributions(size: int, level: Floats, buffers: _Buffers) -> None:
    """Fill the contribution of each label (K, B), and the sum of q over its likelihood."""
    theta, chance, q, task = buffers.theta, buffers.chance, buffers.q, buffers.task
    line, part, ratio = buffers.line, buffers.part, buffers.ratio
    K = theta.shape[0]
    for b in range(size):
        ratio[b] = 0.0
    for d in range(0, level.shape[0], 4):
        a0, a1, a2, a3 = level[d], level[d + 1], level[d + 2], level[d + 3]
        for k in range(K):
            x = d * K + k
            for b in range(size):
                t = task[b]
                line[0, b] = q[x, t]
                line[1, b] = q[x + K, t]
                line[2, b] = q[x + 2 * K, t]
                line[3, b] = q[x + 3 * K, t]
            for b in range(size):
                lik, gap = theta[k, b], chance[b] - theta[k, b]
                p0, p1, p2, p3 = lik + a0 * gap, lik + a1 * gap, lik + a2 * gap, lik + a3 * gap
                inverse = 1.0 / ((p0 * p1) * (p2 * p3))
                lower, upper = inverse * (p2 * p3), inverse * (p0 * p1)
                r0, r1 = line[0, b] * p1 * lower, line[1, b] * p0 * lower
                r2, r3 = line[2, b] * p3 * upper, line[3, b] * p2 * upper
                kept = (1.0 - a0) * r0 + (1.0 - a1) * r1 + (1.0 - a2) * r2 + (1.0 - a3) * r3
                part[k, b] = kept * lik if d == 0 else part[k, b] + kept * lik
                ratio[b] += (r0 + r1) + (r2 + r3)


@compiled
def _add_own(lanes: Lanes, first: int, size: int, worker: Ints, label: Ints, weight: Floats | None,
             own: Singles, cells: Floats, buffers: _Buffers) -> float:  # fmt: skip
    """Store the contributions and add them to the counts; return the sum of the log ratios."""
    part, ratio = buffers.part, buffers.ratio
    K, end, score, running = len(lanes), worker.shape[0] - 1, 0.0, 1.0
    for b in range(size):
        e = first + b
        if K >= LONG_ROW:
            ahead = min(e + AHEAD, end)
            prefetch_row(cells, worker[ahead] * K + label[ahead])
        row = worker[e] * K + label[e]
        for k in range(K):
            share = np.float32(part[k, b] if weight is None else weight[e] * part[k, b])
            own[e, k] = share
            cells[row, k] += share
        running *= ratio[b]
        if running > LARGE:
            score += np.log(running)
            running = 1.0
    return score + float(np.log(running))


@compiled
def _add_tasks(start: int, n: int, indptr: Ints, level: Floats, block: TaskBlock, tol: float,
               buffers: _Buffers) -> int:  # fmt: skip
    """Store the posteriors of a chunk and add them up; return how many tasks moved."""
    q, task, mass = buffers.q, buffers.total, buffers.mass
    K, moving = block.probas.shape[1], 0
    for t in range(n):
        task[K + 1, t] = 0.0
        task[K + 2, t] = 1.0 if indptr[start + t + 1] > indptr[start + t] else 0.0
    for k in range(K):
        for t in range(n):
            task[k, t] = 0.0
        for d in range(level.shape[0]):
            for t in range(n):
                task[k, t] += q[d * K + k, t]
                task[K + 1, t] += level[d] * q[d * K + k, t]
                mass[K + d, t] += task[K + 2, t] * q[d * K + k, t]
        for t in range(n):
            mass[k, t] += task[K + 2, t] * task[k, t]
    for t in range(n):
        i, change = start + t, 0.0
        for k in range(K):
            change = max(change, abs(task[k, t] - block.probas[i, k]))
            block.probas[i, k] = task[k, t]
        block.difficulty[i] = task[K + 1, t]
        if change >= tol and task[K + 2, t] > 0.0:
            moving += 1
    return moving


@compiled
def _add_mass(sums: CountSums, buffers: _Buffers) -> None:
    """Add the mass of all chunks to the sums."""
    K, mass = sums.mass.shape[0], buffers.mass
    for t in range(mass.shape[1]):
        for k in range(K):
            sums.mass[k] += mass[k, t]
        for d in range(sums.levels.shape[0]):
            sums.levels[d] += mass[K + d, t]


@compiled
def _step(lanes: Lanes, indptr: Ints, worker: Ints, label: Ints, weight: Floats | None,
          log_class: Floats, prior_rows: Floats, row_of: Ints | None, counts: WorkerCounts,
          population: RatePrior, levels: TaskLevels, block: TaskBlock, sums: CountSums,
          tol: float) -> tuple[float, int]:  # fmt: skip
    n_tasks, K, D = indptr.shape[0] - 1, len(lanes), levels.value.shape[0]
    longest = CHUNK
    for i in range(n_tasks):
        longest = max(longest, indptr[i + 1] - indptr[i])
    tasks, labels = min(CHUNK, n_tasks) + ROOM, longest + ROOM
    buffers = _Buffers(
        np.empty((K, labels)), np.empty((K, labels)), np.empty(labels), np.empty(labels),
        np.empty((4, labels)), np.empty(labels, np.int64), np.empty((K, tasks)),
        np.empty((K, tasks)), np.empty((D * K, tasks)), np.empty((D * K, tasks)),
        np.empty((K + 3, tasks)), np.zeros((K + D, tasks)),
    )  # fmt: skip
    if row_of is None:
        _fill_priors(0, tasks, log_class, prior_rows, row_of, buffers)
    score, moving, start = 0.0, 0, 0
    while start < n_tasks:
        n, first = 1, indptr[start]
        while n < CHUNK and start + n < n_tasks and indptr[start + n + 1] - first <= longest:
            n += 1
        size = indptr[start + n] - first
        for t in range(n):
            for e in range(indptr[start + t], indptr[start + t + 1]):
                buffers.task[e - first] = t
        if row_of is not None:
            _fill_priors(start, n, log_class, prior_rows, row_of, buffers)
        _fill_rates(lanes, first, size, worker, label, counts, population, block.own, buffers)
        if weight is None:
            _fill_products(start, n, indptr, levels, buffers)
        else:
            _fill_logarithms(start, n, indptr, weight, levels, buffers)
        _normalise(start, n, indptr, weight, buffers)
        _fill_contributions(size, levels.value, buffers)
        ratios = _add_own(lanes, first, size, worker, label, weight, block.own, sums.cells,
                          buffers)  # fmt: skip
        if weight is None:
            score -= ratios
        else:
            score += _weighted_score(first, size, weight, levels.value, buffers)
        moving += _add_tasks(start, n, indptr, levels.value, block, tol, buffers)
        start += n
    _add_mass(sums, buffers)
    return score, moving


def hierarchical_step(
    labels: TaskLabels,
    priors: TaskPriors,
    counts: WorkerCounts,
    rates: RatePrior,
    levels: TaskLevels,
    block: TaskBlock,
    sums: CountSums,
    tol: float,
    repeat: Floats | None = None,
) -> tuple[float, int]:
    """See :func:`wisecrowd.kinds.classes.kernels.hierarchical.hierarchical_step`."""
    if repeat is not None:  # rows that tasks share are few
        arguments = labels, priors, counts, rates, levels, block, sums, tol, repeat
        return hierarchical.hierarchical_step(*arguments)
    K, missing = block.probas.shape[1], -len(levels.value) % 4
    lanes = (0,) * K if K <= MOST_LANES else np.empty(K, np.int8)
    padded = TaskLevels(  # groups of four are filled up with levels of probability zero
        np.append(levels.value, np.zeros(missing)),
        np.append(levels.log_prior, np.full(missing, -np.inf)),
    )
    score, moving = _step(lanes, *labels, *priors, counts, rates, padded, block, sums, tol)
    return float(score), int(moving)
