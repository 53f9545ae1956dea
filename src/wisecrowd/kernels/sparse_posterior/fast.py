"""The kernels of :mod:`wisecrowd.kernels.sparse_posterior.reference`, compiled.

Tasks are taken in chunks whose pairs stay in the first-level cache between the sweeps over them.
Within a chunk the sweeps run over *all* its pairs, not task by task: how many labels a task
received is what a processor cannot predict, and every wrong guess costs more than a pair's work.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.kernels.compiling import compiled, exp_below_zero, inlined
from wisecrowd.kernels.sparse_posterior.reference import NEARLY_ALL, TIE

__all__ = ["add_pair_mass", "coin_step", "received_labels", "vote_step"]

Floats = NDArray[np.float64]
Ints = NDArray[np.integer[Any]]

CHUNK = 256  # tasks


@compiled
def _sort_few(values: Ints, first: int, last: int) -> None:
    """Sort a stretch in place: by insertion, which is what a handful of labels needs."""
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
def _received_labels(indptr: Ints, label: Ints, n_classes: int, pair: Ints, pair_indptr: Ints,
                     pair_task: Ints, pair_label: Ints) -> int:  # fmt: skip
    seen = np.full(n_classes, -1, np.int64)  # the last task that received each label
    slot = np.empty(n_classes, np.int32)  # and which of its pairs that is
    start = indptr[0]
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
            pair[e - start] = slot[label[e]]
        pair_indptr[i + 1] = count
    return count


@inlined
def _log_prior(i: int, k: int, log_shared: Floats, log_class: Floats, prior_rows: Floats,
               prior_index: Ints | None, row_total: Floats) -> Any:  # fmt: skip
    if prior_index is None:
        return log_shared[k]
    row = prior_index[i]
    return log_class[k] + prior_rows[row, k] - row_total[row]


@compiled
def _outside(i: int, pair_indptr: Ints, pair_label: Ints, log_shared: Floats, log_class: Floats,
             prior_rows: Floats, prior_index: Ints | None, row_total: Floats) -> Any:  # fmt: skip
    """Return the sum and the maximum of the priors of the classes that a task did not receive."""
    total = top = 0.0
    p = pair_indptr[i]
    for k in range(log_class.shape[0]):
        if p < pair_indptr[i + 1] and pair_label[p] == k:
            p += 1
            continue
        prior = np.exp(_log_prior(i, k, log_shared, log_class, prior_rows, prior_index, row_total))
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


@inlined
def _part(weight: Floats | None, begin: int, end: int) -> Floats | None:
    return None if weight is None else weight[begin:end]


@compiled
def _pair_priors(first: int, task: Ints, label: Ints, log_shared: Floats, shared: Floats,
                 log_class: Floats, prior_rows: Floats, prior_index: Ints | None,
                 row_total: Floats, priors: Floats, outside: Floats) -> None:  # fmt: skip
    """Fill the priors of a chunk's pairs, and what they leave of each task's prior."""
    outside[:] = 1.0
    for p in range(task.shape[0]):
        if prior_index is None:
            priors[p] = shared[label[p]]
        else:
            priors[p] = np.exp(_log_prior(task[p], label[p], log_shared, log_class, prior_rows,
                                          prior_index, row_total))  # fmt: skip
        outside[task[p] - first] -= priors[p]


@compiled
def _add_up_remainders(first: int, pair_indptr: Ints, pair_label: Ints, log_shared: Floats,
                       log_class: Floats, prior_rows: Floats, prior_index: Ints | None,
                       row_total: Floats, outside: Floats) -> None:  # fmt: skip
    """Replace remainders that cancellation has spoilt by sums."""
    for b in range(outside.shape[0]):
        if outside[b] < NEARLY_ALL:
            i = first + b
            if pair_indptr[i + 1] - pair_indptr[i] == log_class.shape[0]:
                outside[b] = 0.0
            else:
                outside[b] = _outside(i, pair_indptr, pair_label, log_shared, log_class,
                                      prior_rows, prior_index, row_total)[0]  # fmt: skip


@compiled
def _coin_posterior(first: int, task: Ints, outside: Floats, top: Floats, total: Floats,
                    probas: Floats, rest: Floats) -> None:  # fmt: skip
    """Turn a chunk's log scores into probabilities; keep their maxima and normalisers.

    Loops are kept apart where that makes vector code of them, and max() is avoided: it branches.
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
def _log_normalisers(first: int, indptr: Ints, prior_index: Ints | None, row_total: Floats,
                     top: Floats, total: Floats, n: int) -> Any:  # fmt: skip
    """Return the sum of the log normalisers of a chunk's annotated tasks."""
    log_z = 0.0
    product = 1.0  # one logarithm for many normalisers
    for b in range(n):
        i = first + b
        if indptr[i + 1] > indptr[i]:
            log_z += top[b] + (row_total[0] if prior_index is None else row_total[prior_index[i]])
            if total[b] < 1e-100:
                log_z += np.log(total[b])
            else:
                product *= total[b]
            if product > 1e150 or product < 1e-150:
                log_z += np.log(product)
                product = 1.0
    return log_z + np.log(product)


@compiled
def _add_mass(indptr: Ints, task: Ints, label: Ints, priors: Floats, probas: Floats, rest: Floats,
              mass: Floats) -> None:  # fmt: skip
    for p in range(task.shape[0]):
        i = task[p]
        added = probas[p] - rest[i] * priors[p]
        mass[label[p]] += added if indptr[i + 1] > indptr[i] else 0.0


@compiled
def _most_pairs(pair_indptr: Ints) -> Any:
    """Return the most pairs that a chunk has."""
    most = 0
    n = pair_indptr.shape[0] - 1
    for first in range(0, n, CHUNK):
        most = max(most, pair_indptr[min(first + CHUNK, n)] - pair_indptr[first])
    return most


@compiled
def _coin_step(indptr: Ints, worker: Ints, weight: Floats | None, pair: Ints, pair_indptr: Ints,
               pair_task: Ints, pair_label: Ints, log_odds: Floats, log_class: Floats,
               prior_rows: Floats, prior_index: Ints | None, row_total: Floats, correct: Floats,
               mass: Floats | None, probas: Floats, rest: Floats) -> Any:  # fmt: skip
    n = indptr.shape[0] - 1
    log_shared = log_class + prior_rows[0] - row_total[0]
    shared = np.exp(log_shared)
    priors = np.empty(_most_pairs(pair_indptr))
    buffers = np.empty((3, CHUNK))
    log_likelihood = 0.0
    for first in range(0, n, CHUNK):
        last = min(first + CHUNK, n)
        begin, end = indptr[first], indptr[last]
        who, votes = worker[begin:end], pair[begin - indptr[0] : end - indptr[0]]
        weights = _part(weight, begin, end)
        begin, end = pair_indptr[first], pair_indptr[last]
        task, label, part = pair_task[begin:end], pair_label[begin:end], probas[begin:end]
        outside, top, total = buffers[0, : last - first], buffers[1], buffers[2]
        for p in range(task.shape[0]):
            part[p] = _log_prior(task[p], label[p], log_shared, log_class, prior_rows, prior_index,
                                 row_total)  # fmt: skip
        _sum_pairs(who, weights, votes, log_odds, probas)
        _pair_priors(first, task, label, log_shared, shared, log_class, prior_rows, prior_index,
                     row_total, priors, outside)  # fmt: skip
        _add_up_remainders(first, pair_indptr, pair_label, log_shared, log_class, prior_rows,
                           prior_index, row_total, outside)  # fmt: skip
        _coin_posterior(first, task, outside, top, total, part, rest[first:last])
        log_likelihood += _log_normalisers(first, indptr, prior_index, row_total, top, total,
                                           last - first)  # fmt: skip
        _sum_workers(who, weights, votes, probas, correct)
        if mass is not None:
            _add_mass(indptr, task, label, priors, part, rest, mass)
    return log_likelihood


@compiled
def _add_pair_mass(indptr: Ints, pair_indptr: Ints, pair_task: Ints, pair_label: Ints,
                   log_class: Floats, prior_rows: Floats, prior_index: Ints | None,
                   row_total: Floats, probas: Floats, rest: Floats,
                   mass: Floats) -> None:  # fmt: skip
    n = indptr.shape[0] - 1
    log_shared = log_class + prior_rows[0] - row_total[0]
    shared = np.exp(log_shared)
    priors = np.empty(_most_pairs(pair_indptr))
    outside = np.empty(CHUNK)
    for first in range(0, n, CHUNK):
        begin, end = pair_indptr[first], pair_indptr[min(first + CHUNK, n)]
        task, label = pair_task[begin:end], pair_label[begin:end]
        _pair_priors(first, task, label, log_shared, shared, log_class, prior_rows, prior_index,
                     row_total, priors, outside)  # fmt: skip
        _add_mass(indptr, task, label, priors, probas[begin:end], rest, mass)


@compiled
def _vote_shares(first: int, task: Ints, smoothing: float, priors: Floats, outside: Floats,
                 floor: Floats, total: Floats, probas: Floats, rest: Floats) -> None:  # fmt: skip
    """Turn the summed votes of a chunk's pairs into its posterior."""
    floor[:] = 0.0
    for p in range(task.shape[0]):
        b = task[p] - first
        floor[b] = floor[b] if floor[b] < probas[p] else probas[p]
    for b in range(outside.shape[0]):
        floor[b] = smoothing - floor[b]
        total[b] = floor[b] * outside[b]
    for p in range(task.shape[0]):
        b = task[p] - first
        probas[p] = (probas[p] + floor[b]) * priors[p]
        total[b] += probas[p]
    for b in range(outside.shape[0]):
        rest[b] = floor[b] / total[b] if total[b] > 0.0 else 1.0
    for p in range(task.shape[0]):
        z = total[task[p] - first]
        probas[p] = probas[p] / z if z > 0.0 else priors[p]


@compiled
def _winners(first: int, last: int, pair_indptr: Ints, pair_label: Ints, log_shared: Floats,
             highest: float, log_class: Floats, prior_rows: Floats, prior_index: Ints | None,
             row_total: Floats, probas: Floats, rest: Floats, share: Floats) -> None:  # fmt: skip
    """Put each task's vote wholly to its best class, shared among ties, none if not received."""
    for i in range(first, last):
        begin, end = pair_indptr[i], pair_indptr[i + 1]
        best = 0.0
        for p in range(begin, end):
            best = max(best, probas[p])
        if end > begin and rest[i] * highest > best:
            outside = _outside(i, pair_indptr, pair_label, log_shared, log_class, prior_rows,
                               prior_index, row_total)[1]  # fmt: skip
            if rest[i] * outside > best + TIE:
                best = np.inf
        winners = 0
        for p in range(begin, end):
            winners += probas[p] >= best - TIE
        each = 1.0 / max(winners, 1)
        for p in range(begin, end):
            share[p] = each if probas[p] >= best - TIE else 0.0


@compiled
def _vote_step(indptr: Ints, worker: Ints, weight: Floats | None, pair: Ints, pair_indptr: Ints,
               pair_task: Ints, pair_label: Ints, vote_weight: Floats, smoothing: float,
               log_class: Floats, prior_rows: Floats, prior_index: Ints | None, row_total: Floats,
               agreement: Floats, probas: Floats, rest: Floats,
               share: Floats | None) -> None:  # fmt: skip
    n = indptr.shape[0] - 1
    log_shared = log_class + prior_rows[0] - row_total[0]
    shared = np.exp(log_shared)
    highest = shared.max() if prior_index is None else 1.0
    priors = np.empty(_most_pairs(pair_indptr))
    buffers = np.empty((3, CHUNK))
    for first in range(0, n, CHUNK):
        last = min(first + CHUNK, n)
        begin, end = indptr[first], indptr[last]
        who, votes = worker[begin:end], pair[begin - indptr[0] : end - indptr[0]]
        weights = _part(weight, begin, end)
        begin, end = pair_indptr[first], pair_indptr[last]
        task, label, part = pair_task[begin:end], pair_label[begin:end], probas[begin:end]
        outside, floor, total = buffers[0, : last - first], buffers[1], buffers[2]
        part[:] = 0.0
        _sum_pairs(who, weights, votes, vote_weight, probas)
        _pair_priors(first, task, label, log_shared, shared, log_class, prior_rows, prior_index,
                     row_total, priors, outside)  # fmt: skip
        _add_up_remainders(first, pair_indptr, pair_label, log_shared, log_class, prior_rows,
                           prior_index, row_total, outside)  # fmt: skip
        _vote_shares(first, task, smoothing, priors, outside, floor, total, part, rest[first:last])
        if share is None:
            _sum_workers(who, weights, votes, probas, agreement)
        else:
            _winners(first, last, pair_indptr, pair_label, log_shared, highest, log_class,
                     prior_rows, prior_index, row_total, probas, rest, share)  # fmt: skip
            _sum_workers(who, weights, votes, share, agreement)


def received_labels(
    indptr: Ints, label: Ints, n_classes: int
) -> tuple[NDArray[np.int32], NDArray[np.int64], NDArray[np.int32], NDArray[np.int32]]:
    """See :func:`wisecrowd.kernels.sparse_posterior.reference.received_labels`."""
    n, size = len(indptr) - 1, int(indptr[-1] - indptr[0])
    pair, pair_indptr = np.empty(size, np.int32), np.empty(n + 1, np.int64)
    task, received = np.empty(size, np.int32), np.empty(size, np.int32)
    count = _received_labels(indptr, label, n_classes, pair, pair_indptr, task, received)
    return pair, pair_indptr, task[:count].copy(), received[:count].copy()


def coin_step(
    indptr: Ints,
    worker: Ints,
    weight: Floats | None,
    pair: Ints,
    pair_indptr: Ints,
    pair_task: Ints,
    pair_label: Ints,
    log_odds: Floats,
    log_class: Floats,
    prior_rows: Floats,
    prior_index: Ints | None,
    row_total: Floats,
    correct: Floats,
    mass: Floats | None,
    probas: Floats,
    rest: Floats,
) -> float:
    """See :func:`wisecrowd.kernels.sparse_posterior.reference.coin_step`."""
    return float(
        _coin_step(indptr, worker, weight, pair, pair_indptr, pair_task, pair_label, log_odds,
                   log_class, prior_rows, prior_index, row_total, correct, mass, probas, rest)
    )  # fmt: skip


def add_pair_mass(
    indptr: Ints,
    pair_indptr: Ints,
    pair_task: Ints,
    pair_label: Ints,
    log_class: Floats,
    prior_rows: Floats,
    prior_index: Ints | None,
    row_total: Floats,
    probas: Floats,
    rest: Floats,
    mass: Floats,
) -> None:
    """See :func:`wisecrowd.kernels.sparse_posterior.reference.add_pair_mass`."""
    _add_pair_mass(indptr, pair_indptr, pair_task, pair_label, log_class, prior_rows, prior_index,
                   row_total, probas, rest, mass)  # fmt: skip


def vote_step(
    indptr: Ints,
    worker: Ints,
    weight: Floats | None,
    pair: Ints,
    pair_indptr: Ints,
    pair_task: Ints,
    pair_label: Ints,
    vote_weight: Floats,
    smoothing: float,
    log_class: Floats,
    prior_rows: Floats,
    prior_index: Ints | None,
    row_total: Floats,
    agreement: Floats,
    probas: Floats,
    rest: Floats,
    hard: bool,
) -> None:
    """See :func:`wisecrowd.kernels.sparse_posterior.reference.vote_step`."""
    share = np.empty_like(probas) if hard else None
    _vote_step(indptr, worker, weight, pair, pair_indptr, pair_task, pair_label, vote_weight,
               float(smoothing), log_class, prior_rows, prior_index, row_total, agreement, probas,
               rest, share)  # fmt: skip
