"""The kernels of :mod:`wisecrowd.kinds.classes.kernels.incremental`, compiled."""

from __future__ import annotations

import numpy as np

from wisecrowd.core.types import Floats, Ints
from wisecrowd.kernels.compiling import compiled
from wisecrowd.kinds.classes.kernels.incremental import Stream

__all__ = ["coin_updates", "confusion_updates", "stepwise_updates"]

TINY = 1e-300


@compiled
def _log_class(mass: Floats, fixed: Floats, is_fixed: bool, score: Floats) -> None:
    if is_fixed:
        score[:] = fixed
        return
    total = 0.0
    for k in range(len(mass)):
        total += max(mass[k], 0.0)
    for k in range(len(mass)):
        share = max(mass[k], 0.0) / total if total > 0 else 1.0 / len(mass)
        score[k] = np.log(max(share, TINY))


@compiled
def _normalise(score: Floats) -> None:
    top = score.max()
    total = 0.0
    for k in range(len(score)):
        score[k] = np.exp(score[k] - top)
        total += score[k]
    for k in range(len(score)):
        score[k] /= total


@compiled
def _replace(stream: Stream, i: int, q: Floats, mass: Floats, had_old: bool) -> float:
    largest = 0.0
    for k in range(len(mass)):
        if had_old:
            mass[k] -= stream.scale[i] * stream.probas[i, k]
        mass[k] += q[k]
        largest = max(largest, abs(q[k] - stream.probas[i, k]))
        stream.probas[i, k] = q[k]
    stream.scale[i] = 1.0
    return largest


@compiled
def _confusion_updates(
    order: Ints, stream: Stream, alpha: Floats, counts: Floats, totals: Floats, mass: Floats,
    fixed: Floats, is_fixed: bool,
) -> float:  # fmt: skip
    K = len(mass)
    q, largest = np.empty(K), 0.0
    for n in range(len(order)):
        new = order[n]
        i = stream.task[new]
        was_active = stream.active[new]
        stream.active[new] = True
        _log_class(mass, fixed, is_fixed, q)
        row = stream.prior_index[i]
        for k in range(K):
            q[k] += stream.prior_rows[row, k]
        for e in range(stream.indptr[i], stream.indptr[i + 1]):
            if stream.active[e]:
                j = stream.worker[e]
                c = j * K + stream.label[e]
                for k in range(K):
                    share = (counts[c, k] + alpha[c, k]) / max(totals[j, k], TINY)
                    q[k] += stream.weight[e] * np.log(max(share, TINY))
        _normalise(q)
        had_old = False
        for e in range(stream.indptr[i], stream.indptr[i + 1]):
            if stream.active[e]:
                j = stream.worker[e]
                c = j * K + stream.label[e]
                is_old = e != new or was_active
                had_old = had_old or is_old
                for k in range(K):
                    change = q[k]
                    if is_old:
                        change -= stream.scale[i] * stream.probas[i, k]
                    change *= stream.weight[e]
                    totals[j, k] += change
                    counts[c, k] = max(counts[c, k] + change, 0.0)
        largest = max(largest, _replace(stream, i, q, mass, had_old))
    return largest


@compiled
def _coin_updates(
    order: Ints, stream: Stream, a: float, b: float, correct: Floats, total: Floats, mass: Floats,
    fixed: Floats, is_fixed: bool,
) -> float:  # fmt: skip
    K = len(mass)
    q, largest = np.empty(K), 0.0
    for n in range(len(order)):
        new = order[n]
        i = stream.task[new]
        was_active = stream.active[new]
        stream.active[new] = True
        _log_class(mass, fixed, is_fixed, q)
        row = stream.prior_index[i]
        for k in range(K):
            q[k] += stream.prior_rows[row, k]
        for e in range(stream.indptr[i], stream.indptr[i + 1]):
            if stream.active[e]:
                known = total[stream.worker[e]] + a + b
                right = 1.0 / K
                if known > 0:
                    right = min(max((correct[stream.worker[e]] + a) / known, 0.0), 1.0)
                odds = np.log(max(right, TINY)) - np.log(max(1 - right, TINY) / (K - 1))
                q[stream.label[e]] += stream.weight[e] * odds
        _normalise(q)
        had_old = False
        for e in range(stream.indptr[i], stream.indptr[i + 1]):
            if stream.active[e]:
                j, k = stream.worker[e], stream.label[e]
                right, known = q[k], 1.0
                if e != new or was_active:
                    had_old = True
                    right -= stream.scale[i] * stream.probas[i, k]
                    known -= stream.scale[i]
                correct[j] = max(correct[j] + stream.weight[e] * right, 0.0)
                total[j] += stream.weight[e] * known
        largest = max(largest, _replace(stream, i, q, mass, had_old))
    return largest


@compiled
def _stepwise_updates(
    order: Ints, task: Ints, worker: Ints, label: Ints, alpha: Floats, table: Floats, seen: Floats,
    mass: Floats, n: float, exponent: float, fixed: Floats, is_fixed: bool,
) -> float:  # fmt: skip
    K = len(mass)
    n_tasks = 0
    for e in order:
        n_tasks = max(n_tasks, task[e] + 1)
    scores, q = np.zeros((n_tasks, K)), np.empty(K)
    for e in order:
        i, j, y = task[e], worker[e], label[e]
        _log_class(mass, fixed, is_fixed, q)
        for k in range(K):
            total = 0.0
            for c in range(j * K, (j + 1) * K):
                total += table[c, k] + alpha[c, k]
            share = (table[j * K + y, k] + alpha[j * K + y, k]) / max(total, TINY)
            scores[i, k] += np.log(max(share, TINY))
            q[k] += scores[i, k]
        _normalise(q)
        step, rate = (seen[j] + 1) ** -exponent, (n + 1) ** -exponent
        for k in range(K):
            for c in range(j * K, (j + 1) * K):
                table[c, k] *= (1 - step) / max(seen[j], 1.0) * (seen[j] + 1)
            table[j * K + y, k] += step * q[k] * (seen[j] + 1)
            mass[k] = (n + 1) * ((1 - rate) * mass[k] / max(n, 1.0) + rate * q[k])
        seen[j] += 1
        n += 1
    return n


def stepwise_updates(
    order: Ints, task: Ints, worker: Ints, label: Ints, alpha: Floats, table: Floats, seen: Floats,
    mass: Floats, n: float, exponent: float, fixed: Floats, is_fixed: bool,
) -> float:  # fmt: skip
    """See :func:`wisecrowd.kinds.classes.kernels.incremental.stepwise_updates`."""
    return float(_stepwise_updates(order, task, worker, label, alpha, table, seen, mass, n,
                                   exponent, fixed, is_fixed))  # fmt: skip


def confusion_updates(
    order: Ints, stream: Stream, alpha: Floats, counts: Floats, totals: Floats, mass: Floats,
    fixed: Floats, is_fixed: bool,
) -> float:  # fmt: skip
    """See :func:`wisecrowd.kinds.classes.kernels.incremental.confusion_updates`."""
    return float(_confusion_updates(order, stream, alpha, counts, totals, mass, fixed, is_fixed))


def coin_updates(
    order: Ints, stream: Stream, pseudo: tuple[float, float], correct: Floats, total: Floats,
    mass: Floats, fixed: Floats, is_fixed: bool,
) -> float:  # fmt: skip
    """See :func:`wisecrowd.kinds.classes.kernels.incremental.coin_updates`."""
    a, b = pseudo
    return float(_coin_updates(order, stream, a, b, correct, total, mass, fixed, is_fixed))
