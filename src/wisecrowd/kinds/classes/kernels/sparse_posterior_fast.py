"""The kernels of :mod:`wisecrowd.kinds.classes.kernels.sparse_posterior`, compiled.

Tasks are processed in chunks whose pairs stay in the first-level cache between the sweeps over
them. Within a chunk the sweeps run over *all* its pairs, not task by task. A processor cannot
predict the number of labels of a task, and every misprediction costs more than the work on a pair.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from wisecrowd.core.types import Floats, Ints
from wisecrowd.kernels.arguments import TaskLabels
from wisecrowd.kernels.compiling import compiled, exp_below_zero, inlined
from wisecrowd.kinds.classes.kernels.sparse_posterior import (
    NEARLY_ALL,
    TIE,
    CoinOutput,
    LabelPairs,
    NormalisedPriors,
    VoteOutput,
)

__all__ = ["add_pair_mass", "coin_step", "received_labels", "vote_step"]


CHUNK = 256  # tasks


@compiled
def _sort_few(values: Ints, first: int, last: int) -> None:
    """Sort a stretch in place by insertion, which suits a handful of labels."""
    if last - first > 32:
        values[first:last] = np.sort(values[first:last])
        return
    for p in range(first + 1, last):
        value = values[p]
        o = p
        while o > first and values[o - 1] > value:
            values[o] = values[o - 1]
            o -= 1
        values[o] = value


@compiled
def _received_labels(indptr: Ints, label: Ints, n_classes: int, pairs: LabelPairs) -> int:
    pair, pair_indptr, pair_task, pair_label = pairs
    seen = np.full(n_classes, -1, np.int64)  # the last task that received each label
    slot = np.empty(n_classes, np.int32)  # the pair of this label in that task
    count = 0
    pair_indptr[0] = 0
    for i in range(indptr.shape[0] - 1):
        first = count
        for e in range(indptr[i], indptr[i + 1]):
            k = label[e]
            if seen[k] != i:
                seen[k] = i
                pair_label[count] = k
                count += 1
        _sort_few(pair_label, first, count)
        for p in range(first, count):
            pair_task[p] = i
            slot[pair_label[p]] = p
        for e in range(indptr[i], indptr[i + 1]):
            pair[e] = slot[label[e]]
        pair_indptr[i + 1] = count
    return count


@inlined
def _log_prior(i: int, k: int, log_shared: Floats, log_class: Floats, rows: Floats,
               row_of: Ints | None, totals: Floats) -> Any:  # fmt: skip
    if row_of is None:
        return log_shared[k]
    row = row_of[i]
    return log_class[k] + rows[row, k] - totals[row]


@compiled
def _fill_log_priors(task: Ints, label: Ints, log_shared: Floats, priors: NormalisedPriors,
                     row_of: Ints | None, values: Floats) -> None:  # fmt: skip
    """Fill the log priors of a chunk's pairs."""
    log_class, rows, _, totals = priors
    for p in range(task.shape[0]):
        values[p] = _log_prior(task[p], label[p], log_shared, log_class, rows, row_of, totals)


@compiled
def _outside(i: int, pairs: LabelPairs, log_shared: Floats, priors: NormalisedPriors,
             row_of: Ints | None) -> Any:  # fmt: skip
    """Return the sum and the maximum of the priors of the classes that a task did not receive."""
    log_class, rows, _, totals = priors
    total = top = 0.0
    p = pairs.indptr[i]
    for k in range(log_class.shape[0]):
        if p < pairs.indptr[i + 1] and pairs.label[p] == k:
            p += 1
            continue
        prior = np.exp(_log_prior(i, k, log_shared, log_class, rows, row_of, totals))
        total += prior
        top = max(top, prior)
    return total, top


@compiled
def _sum_pairs(worker: Ints, weight: Floats | None, pair: Ints, values: Floats,
               sums: Floats) -> None:  # fmt: skip
    """Add each annotation's worker value to its pair."""
    for e in range(worker.shape[0]):
        if weight is None:
            sums[pair[e]] += values[worker[e]]
        else:
            sums[pair[e]] += weight[e] * values[worker[e]]


@compiled
def _sum_workers(worker: Ints, weight: Floats | None, pair: Ints, values: Floats,
                 sums: Floats) -> None:  # fmt: skip
    """Add each annotation's pair value to its worker."""
    for e in range(worker.shape[0]):
        if weight is None:
            sums[worker[e]] += values[pair[e]]
        else:
            sums[worker[e]] += weight[e] * values[pair[e]]


@compiled
def _part(weight: Floats | None, begin: int, end: int) -> Floats | None:
    return None if weight is None else weight[begin:end]


@compiled
def _pair_priors(first: int, task: Ints, label: Ints, log_shared: Floats, shared: Floats,
                 priors: NormalisedPriors, row_of: Ints | None, prior: Floats,
                 outside: Floats) -> None:  # fmt: skip
    """Fill the prior of a chunk's pairs, and the remaining prior of each task."""
    log_class, rows, _, totals = priors
    outside[:] = 1.0
    for p in range(task.shape[0]):
        if row_of is None:
            prior[p] = shared[label[p]]
        else:
            prior[p] = np.exp(_log_prior(task[p], label[p], log_shared, log_class, rows, row_of,
                                         totals))  # fmt: skip
        outside[task[p] - first] -= prior[p]


@compiled
def _add_up_remainders(first: int, pairs: LabelPairs, log_shared: Floats, priors: NormalisedPriors,
                       row_of: Ints | None, outside: Floats) -> None:  # fmt: skip
    """Replace remainders that suffer from cancellation by sums."""
    indptr, n_classes = pairs.indptr, log_shared.shape[0]
    for b in range(outside.shape[0]):
        if outside[b] < NEARLY_ALL:
            i = first + b
            if indptr[i + 1] - indptr[i] == n_classes:
                outside[b] = 0.0
            else:
                outside[b] = _outside(i, pairs, log_shared, priors, row_of)[0]


@compiled
def _coin_posterior(first: int, task: Ints, outside: Floats, top: Floats, total: Floats,
                    probas: Floats, rest: Floats) -> None:  # fmt: skip
    """Convert a chunk's log scores to probabilities; keep their maxima and normalisers.

    Loops are separate where that vectorises them, and max() is avoided because it branches.
    """
    for b in range(outside.shape[0]):
        top[b] = 0.0 if outside[b] > 0.0 else -np.inf
    for p in range(task.shape[0]):
        b = task[p] - first
        top[b] = top[b] if top[b] > probas[p] else probas[p]
    for p in range(task.shape[0]):
        probas[p] -= top[task[p] - first]
    for p in range(task.shape[0]):
        probas[p] = exp_below_zero(probas[p])
    for b in range(outside.shape[0]):
        base = exp_below_zero(-top[b] if top[b] > 0.0 else 0.0)
        rest[b] = base if outside[b] > 0.0 else 0.0
    for b in range(outside.shape[0]):
        total[b] = rest[b] * outside[b]
    for p in range(task.shape[0]):
        total[task[p] - first] += probas[p]
    for b in range(outside.shape[0]):
        rest[b] /= total[b]
    for p in range(task.shape[0]):
        probas[p] /= total[task[p] - first]


@compiled
def _log_normalisers(first: int, indptr: Ints, row_of: Ints | None, totals: Floats, top: Floats,
                     total: Floats, n: int) -> Any:  # fmt: skip
    """Return the sum of the log normalisers of a chunk's annotated tasks."""
    log_z = 0.0
    product = 1.0  # one logarithm for many normalisers
    for b in range(n):
        i = first + b
        if indptr[i + 1] > indptr[i]:
            log_z += top[b] + (totals[0] if row_of is None else totals[row_of[i]])
            if total[b] < 1e-100:
                log_z += np.log(total[b])
            else:
                product *= total[b]
            if product > 1e150 or product < 1e-150:
                log_z += np.log(product)
                product = 1.0
    return log_z + np.log(product)


@compiled
def _add_mass(indptr: Ints, task: Ints, label: Ints, prior: Floats, probas: Floats, rest: Floats,
              mass: Floats | None) -> None:  # fmt: skip
    if mass is not None:
        for p in range(task.shape[0]):
            i = task[p]
            added = probas[p] - rest[i] * prior[p]
            mass[label[p]] += added if indptr[i + 1] > indptr[i] else 0.0


@compiled
def _most_pairs(pair_indptr: Ints) -> Any:
    """Return the maximum number of pairs of a chunk."""
    most = 0
    n = pair_indptr.shape[0] - 1
    for first in range(0, n, CHUNK):
        most = max(most, pair_indptr[min(first + CHUNK, n)] - pair_indptr[first])
    return most


@compiled
def _coin_step(labels: TaskLabels, pairs: LabelPairs, log_odds: Floats, priors: NormalisedPriors,
               output: CoinOutput) -> Any:  # fmt: skip
    indptr, worker, _, weight = labels
    pair, pair_indptr, pair_task, pair_label = pairs
    log_class, rows, row_of, totals = priors
    correct, mass, probas, rest = output
    n = indptr.shape[0] - 1
    log_shared = log_class + rows[0] - totals[0]
    shared = np.exp(log_shared)
    prior = np.empty(_most_pairs(pair_indptr))
    buffers = np.empty((3, CHUNK))
    log_likelihood = 0.0
    for first in range(0, n, CHUNK):
        last = min(first + CHUNK, n)
        begin, end = indptr[first], indptr[last]
        who, votes, weights = worker[begin:end], pair[begin:end], _part(weight, begin, end)
        begin, end = pair_indptr[first], pair_indptr[last]
        task, label, part = pair_task[begin:end], pair_label[begin:end], probas[begin:end]
        outside, top, total = buffers[0, : last - first], buffers[1], buffers[2]
        _fill_log_priors(task, label, log_shared, priors, row_of, part)
        _sum_pairs(who, weights, votes, log_odds, probas)
        _pair_priors(first, task, label, log_shared, shared, priors, row_of, prior, outside)
        _add_up_remainders(first, pairs, log_shared, priors, row_of, outside)
        _coin_posterior(first, task, outside, top, total, part, rest[first:last])
        log_likelihood += _log_normalisers(first, indptr, row_of, totals, top, total, last - first)
        _sum_workers(who, weights, votes, probas, correct)
        _add_mass(indptr, task, label, prior, part, rest, mass)
    return log_likelihood


@compiled
def add_pair_mass(indptr: Ints, pairs: LabelPairs, priors: NormalisedPriors, probas: Floats,
                  rest: Floats, mass: Floats) -> None:  # fmt: skip
    """See :func:`wisecrowd.kinds.classes.kernels.sparse_posterior.add_pair_mass`."""
    _, pair_indptr, pair_task, pair_label = pairs
    log_class, rows, row_of, totals = priors
    n = indptr.shape[0] - 1
    log_shared = log_class + rows[0] - totals[0]
    shared = np.exp(log_shared)
    prior = np.empty(_most_pairs(pair_indptr))
    outside = np.empty(CHUNK)
    for first in range(0, n, CHUNK):
        begin, end = pair_indptr[first], pair_indptr[min(first + CHUNK, n)]
        task, label = pair_task[begin:end], pair_label[begin:end]
        _pair_priors(first, task, label, log_shared, shared, priors, row_of, prior, outside)
        _add_mass(indptr, task, label, prior, probas[begin:end], rest, mass)


@compiled
def _vote_shares(first: int, task: Ints, smoothing: float, prior: Floats, outside: Floats,
                 floor: Floats, total: Floats, probas: Floats, rest: Floats) -> None:  # fmt: skip
    """Convert the summed votes of a chunk's pairs to its posterior."""
    floor[:] = 0.0
    for p in range(task.shape[0]):
        b = task[p] - first
        floor[b] = floor[b] if floor[b] < probas[p] else probas[p]
    for b in range(outside.shape[0]):
        floor[b] = smoothing - floor[b]
        total[b] = floor[b] * outside[b]
    for p in range(task.shape[0]):
        b = task[p] - first
        probas[p] = (probas[p] + floor[b]) * prior[p]
        total[b] += probas[p]
    for b in range(outside.shape[0]):
        rest[b] = floor[b] / total[b] if total[b] > 0.0 else 1.0
    for p in range(task.shape[0]):
        z = total[task[p] - first]
        probas[p] = probas[p] / z if z > 0.0 else prior[p]


@compiled
def _winners(first: int, last: int, pairs: LabelPairs, log_shared: Floats, highest: float,
             priors: NormalisedPriors, row_of: Ints | None, probas: Floats, rest: Floats,
             share: Floats) -> None:  # fmt: skip
    """Give each task's vote to its best class, shared among ties; none if it was not received."""
    indptr = pairs.indptr
    for i in range(first, last):
        begin, end = indptr[i], indptr[i + 1]
        best = 0.0
        for p in range(begin, end):
            best = max(best, probas[p])
        if end > begin and rest[i] * highest > best:
            outside = _outside(i, pairs, log_shared, priors, row_of)[1]
            if rest[i] * outside > best + TIE:
                best = np.inf
        winners = 0
        for p in range(begin, end):
            winners += probas[p] >= best - TIE
        each = 1.0 / max(winners, 1)
        for p in range(begin, end):
            share[p] = each if probas[p] >= best - TIE else 0.0


@compiled
def _highest(shared: Floats, row_of: Ints | None) -> Any:
    """Return an upper bound on all priors."""
    return shared.max() if row_of is None else 1.0


@compiled
def _vote_step(labels: TaskLabels, pairs: LabelPairs, vote_weight: Floats, priors: NormalisedPriors,
               output: VoteOutput, smoothing: float, share: Floats | None) -> None:  # fmt: skip
    indptr, worker, _, weight = labels
    pair, pair_indptr, pair_task, pair_label = pairs
    log_class, rows, row_of, totals = priors
    agreement, probas, rest = output
    n = indptr.shape[0] - 1
    log_shared = log_class + rows[0] - totals[0]
    shared = np.exp(log_shared)
    highest = _highest(shared, row_of)
    prior = np.empty(_most_pairs(pair_indptr))
    buffers = np.empty((3, CHUNK))
    for first in range(0, n, CHUNK):
        last = min(first + CHUNK, n)
        begin, end = indptr[first], indptr[last]
        who, votes, weights = worker[begin:end], pair[begin:end], _part(weight, begin, end)
        begin, end = pair_indptr[first], pair_indptr[last]
        task, label, part = pair_task[begin:end], pair_label[begin:end], probas[begin:end]
        outside, floor, total = buffers[0, : last - first], buffers[1], buffers[2]
        part[:] = 0.0
        _sum_pairs(who, weights, votes, vote_weight, probas)
        _pair_priors(first, task, label, log_shared, shared, priors, row_of, prior, outside)
        _add_up_remainders(first, pairs, log_shared, priors, row_of, outside)
        _vote_shares(first, task, smoothing, prior, outside, floor, total, part, rest[first:last])
        if share is None:
            _sum_workers(who, weights, votes, probas, agreement)
        else:
            _winners(first, last, pairs, log_shared, highest, priors, row_of, probas, rest, share)
            _sum_workers(who, weights, votes, share, agreement)


def received_labels(indptr: Ints, label: Ints, n_classes: int) -> LabelPairs:
    """See :func:`wisecrowd.kinds.classes.kernels.sparse_posterior.received_labels`."""
    n, size = len(indptr) - 1, int(indptr[-1])
    pair, pair_indptr = np.empty(size, np.int32), np.empty(n + 1, np.int64)
    room = LabelPairs(pair, pair_indptr, np.empty(size, np.int32), np.empty(size, np.int32))
    count = _received_labels(indptr, label, n_classes, room)
    return LabelPairs(pair, pair_indptr, room.task[:count].copy(), room.label[:count].copy())


def coin_step(
    labels: TaskLabels,
    pairs: LabelPairs,
    log_odds: Floats,
    priors: NormalisedPriors,
    output: CoinOutput,
) -> float:
    """See :func:`wisecrowd.kinds.classes.kernels.sparse_posterior.coin_step`."""
    return float(_coin_step(labels, pairs, log_odds, priors, output))


def vote_step(
    labels: TaskLabels,
    pairs: LabelPairs,
    vote_weight: Floats,
    priors: NormalisedPriors,
    output: VoteOutput,
    smoothing: float,
    hard: bool,
) -> None:
    """See :func:`wisecrowd.kinds.classes.kernels.sparse_posterior.vote_step`."""
    share = np.empty_like(output.probas) if hard else None
    _vote_step(labels, pairs, vote_weight, priors, output, float(smoothing), share)
