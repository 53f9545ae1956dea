r"""Incremental EM (Neal and Hinton) in NumPy: the specification, also used for few answers.

An answer for task ``i`` gives it a new posterior from the current counts, and its old contribution
to the counts is replaced by the new one. ``active`` says which annotations count so far; ``order``
lists annotations, each of which becomes active and updates its task. ``scale[i]`` is the weight of
the task's contribution, which forgetting reduces; a new contribution has weight one.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from wisecrowd.core.types import Floats, Ints, Mask


class Stream(NamedTuple):
    """Annotations sorted by task, and the state of the tasks, which is changed.

    ``probas`` (N, K), ``scale`` (N,) and ``active`` (E,) are changed. The prior of task ``i`` is
    ``prior_rows[prior_index[i]]``.
    """

    indptr: Ints
    task: Ints
    worker: Ints
    label: Ints
    weight: Floats
    prior_rows: Floats
    prior_index: Ints
    probas: Floats
    scale: Floats
    active: Mask


def confusion_updates(
    order: Ints,
    stream: Stream,
    alpha: Floats,
    counts: Floats,
    totals: Floats,
    mass: Floats,
    fixed: Floats,
    is_fixed: bool,
) -> float:
    r"""Update tasks under confusion matrices and return the largest change of a posterior.

    ``alpha`` and ``counts`` are (J·K, K) by cell ``worker * K + label``, with the true class last;
    ``totals`` (J, K) are the sums of both over labels, and ``mass`` (K,) sums posteriors. These
    are changed. ``fixed`` (K,) is the log class prior if ``is_fixed``.
    """
    K, largest = len(mass), 0.0
    for e in order.tolist():
        i = int(stream.task[e])
        rows = np.arange(stream.indptr[i], stream.indptr[i + 1])
        old = rows[stream.active[rows]]
        stream.active[e] = True
        rows = rows[stream.active[rows]]
        worker, weight = stream.worker[rows], stream.weight[rows]
        cell = worker.astype(np.int64) * K + stream.label[rows]
        share = (counts[cell] + alpha[cell]) / np.maximum(totals[worker], 1e-300)
        score = _log_class(mass, fixed, is_fixed) + stream.prior_rows[stream.prior_index[i]]
        score = score + (weight[:, None] * np.log(np.maximum(share, 1e-300))).sum(axis=0)
        q = np.exp(score - score.max())
        q /= q.sum()
        if len(old):
            before = -stream.scale[i] * stream.probas[i]
            _add_confusion(stream, old, before, counts, totals, K)
            mass += before
        _add_confusion(stream, rows, q, counts, totals, K)
        mass += q
        np.maximum(counts, 0.0, out=counts)
        largest = max(largest, float(np.abs(q - stream.probas[i]).max()))
        stream.probas[i], stream.scale[i] = q, 1.0
    return largest


def _add_confusion(
    stream: Stream, rows: Ints, q: Floats, counts: Floats, totals: Floats, n_classes: int
) -> None:
    for e in rows.tolist():
        j = int(stream.worker[e])
        counts[j * n_classes + int(stream.label[e])] += stream.weight[e] * q
        totals[j] += stream.weight[e] * q


def coin_updates(
    order: Ints,
    stream: Stream,
    pseudo: tuple[float, float],
    correct: Floats,
    total: Floats,
    mass: Floats,
    fixed: Floats,
    is_fixed: bool,
) -> float:
    r"""Update tasks under one accuracy per worker and return the largest change of a posterior.

    ``pseudo`` are the pseudo-counts of right and wrong labels; ``correct`` and ``total`` (J,) are
    the weights of right and of all labels, and are changed, as is ``mass`` (K,).
    """
    K, largest = len(mass), 0.0
    a, b = pseudo
    for e in order.tolist():
        i = int(stream.task[e])
        rows = np.arange(stream.indptr[i], stream.indptr[i + 1])
        old = rows[stream.active[rows]]
        stream.active[e] = True
        rows = rows[stream.active[rows]]
        worker, weight = stream.worker[rows], stream.weight[rows]
        right = (correct[worker] + a) / np.maximum(total[worker] + a + b, 1e-300)
        right = np.where(total[worker] + a + b > 0, np.clip(right, 0.0, 1.0), 1 / K)
        odds = np.log(np.maximum(right, 1e-300)) - np.log(np.maximum(1 - right, 1e-300) / (K - 1))
        score = _log_class(mass, fixed, is_fixed) + stream.prior_rows[stream.prior_index[i]]
        score = score + np.bincount(stream.label[rows], weight * odds, K)
        q = np.exp(score - score.max())
        q /= q.sum()
        if len(old):
            before = stream.scale[i] * stream.weight[old]
            np.subtract.at(correct, stream.worker[old],
                           before * stream.probas[i][stream.label[old]])  # fmt: skip
            np.subtract.at(total, stream.worker[old], before)
            mass -= stream.scale[i] * stream.probas[i]
        np.add.at(correct, worker, weight * q[stream.label[rows]])
        np.add.at(total, worker, weight)
        mass += q
        correct[worker] = np.maximum(correct[worker], 0.0)
        largest = max(largest, float(np.abs(q - stream.probas[i]).max()))
        stream.probas[i], stream.scale[i] = q, 1.0
    return largest


def stepwise_updates(
    order: Ints,
    task: Ints,
    worker: Ints,
    label: Ints,
    alpha: Floats,
    table: Floats,
    seen: Floats,
    mass: Floats,
    n: float,
    exponent: float,
    fixed: Floats,
    is_fixed: bool,
) -> float:
    r"""Move the counts (J·K, K) of each answer's worker by the step ``seen ** -exponent``.

    ``table``, ``seen`` (J,) and ``mass`` (K,) are changed; return the number of answers so far.
    """
    K = len(mass)
    scores = np.zeros((int(task.max(initial=-1)) + 1, K))
    for e in order.tolist():
        i, j, y = int(task[e]), int(worker[e]), int(label[e])
        block = slice(j * K, (j + 1) * K)
        theta = table[block] + alpha[block]
        scores[i] += np.log(np.maximum(theta[y] / np.maximum(theta.sum(axis=0), 1e-300), 1e-300))
        score = scores[i] + _log_class(mass, fixed, is_fixed)
        q = np.exp(score - score.max())
        q /= q.sum()
        step, rate = (seen[j] + 1) ** -exponent, (n + 1) ** -exponent
        table[block] *= (1 - step) / max(seen[j], 1.0)
        table[block][y] += step * q
        table[block] *= seen[j] + 1
        mass[:] = (n + 1) * ((1 - rate) * mass / max(n, 1.0) + rate * q)
        seen[j] += 1
        n += 1
    return n


def _log_class(mass: Floats, fixed: Floats, is_fixed: bool) -> Floats:
    if is_fixed:
        return fixed
    positive = np.maximum(mass, 0.0)
    total = positive.sum()
    if not total > 0:
        return np.full(len(mass), -np.log(len(mass)))
    return np.asarray(np.log(np.maximum(positive / total, 1e-300)))
