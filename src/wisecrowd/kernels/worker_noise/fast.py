"""Numbers with a bias and a noise per worker, compiled; the reference defines every kernel."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.kernels.arguments import NumberPriors, TaskNumbers
from wisecrowd.kernels.compiling import compiled, inlined
from wisecrowd.kernels.worker_noise.reference import HALF, SETTLED, TINY

__all__ = ["gain_step", "gaussian_step", "student_step", "task_medians"]

Floats = NDArray[np.float64]
Ints = NDArray[np.integer[Any]]

NOTHING = np.empty(0)


@inlined
def _add_totals(
    totals: Floats,
    q: int,
    mean: float,
    variance: float,
    prior_mean: float,
    precision: float,
    level: float,
    free: bool,
) -> None:
    away, off = mean - level, mean - prior_mean
    ratio = precision * variance if free else precision
    totals[q, 0] += 1.0
    totals[q, 1] += 1.0 if free else 0.0
    totals[q, 2] += away
    totals[q, 3] += away * away
    totals[q, 4] += variance
    totals[q, 5] += np.log(max(ratio, TINY))
    totals[q, 6] += precision * off * off
    totals[q, 7] += precision * variance


@compiled
def _gaussian(
    indptr: Ints,
    worker: Ints,
    value: Floats,
    weight: Floats | None,
    question: Ints | None,
    cells: Floats,
    prior_mean: Floats,
    prior_precision: Floats,
    per_task: bool,
    level: Floats,
    gold: Floats | None,
    sums: Floats,
    totals: Floats,
    means: Floats,
    variances: Floats,
) -> None:
    Q = totals.shape[0]
    for i in range(indptr.shape[0] - 1):
        first, last = indptr[i], indptr[i + 1]
        q = 0 if question is None else question[i]
        row = i if per_task else q
        f, prior = prior_mean[row], prior_precision[row]
        precision, pull, total = 0.0, 0.0, 0.0
        for e in range(first, last):
            c = worker[e] * Q + q
            w = 1.0 if weight is None else weight[e]
            total += w
            precision += w * cells[c, 1]
            pull += w * cells[c, 1] * (value[e] - cells[c, 0])
        v = 1.0 / max(prior + precision, TINY)
        m = (prior * f + pull) * v
        free = True
        if gold is not None and not np.isnan(gold[i]):
            m, v, free = gold[i], 0.0, False
        if len(means) > 0:
            means[i] = m
            variances[i] = v
        for e in range(first, last):
            c = worker[e] * Q + q
            w = 1.0 if weight is None else weight[e]
            d = value[e] - cells[c, 0] - m
            sums[c, 0] += w * d
            sums[c, 1] += w * d * d
            sums[c, 2] += w * v
            sums[c, 3] += w
        if total > 0:
            _add_totals(totals, q, m, v, f, prior, level[q], free)


@compiled
def _gain(
    indptr: Ints,
    worker: Ints,
    value: Floats,
    weight: Floats | None,
    question: Ints | None,
    cells: Floats,
    prior_mean: Floats,
    prior_precision: Floats,
    per_task: bool,
    level: Floats,
    gold: Floats | None,
    sums: Floats,
    totals: Floats,
    means: Floats,
    variances: Floats,
) -> None:
    Q = totals.shape[0]
    for i in range(indptr.shape[0] - 1):
        first, last = indptr[i], indptr[i + 1]
        q = 0 if question is None else question[i]
        row = i if per_task else q
        f, prior = prior_mean[row], prior_precision[row]
        precision, pull, total = 0.0, 0.0, 0.0
        for e in range(first, last):
            c = worker[e] * Q + q
            w = 1.0 if weight is None else weight[e]
            total += w
            precision += w * cells[c, 1] * cells[c, 3]
            pull += w * cells[c, 1] * (cells[c, 2] * (value[e] - cells[c, 0]) - cells[c, 4])
        v = 1.0 / max(prior + precision, TINY)
        m = (prior * f + pull) * v
        free = True
        if gold is not None and not np.isnan(gold[i]):
            m, v, free = gold[i], 0.0, False
        if len(means) > 0:
            means[i] = m
            variances[i] = v
        for e in range(first, last):
            c = worker[e] * Q + q
            w = 1.0 if weight is None else weight[e]
            d = value[e] - cells[c, 0] - cells[c, 2] * m
            sums[c, 0] += w * d
            sums[c, 1] += w * d * d
            sums[c, 2] += w * v
            sums[c, 3] += w
            sums[c, 4] += w * d * m
            sums[c, 5] += w * m
            sums[c, 6] += w * m * m
        if total > 0:
            _add_totals(totals, q, m, v, f, prior, level[q], free)


@compiled
def _student(
    indptr: Ints,
    worker: Ints,
    value: Floats,
    weight: Floats | None,
    question: Ints | None,
    cells: Floats,
    prior_mean: Floats,
    prior_precision: Floats,
    per_task: bool,
    level: Floats,
    gold: Floats | None,
    nu: float,
    n_rounds: int,
    sums: Floats,
    totals: Floats,
    means: Floats,
    variances: Floats,
) -> float:
    Q = totals.shape[0]
    logs = 0.0
    for i in range(indptr.shape[0] - 1):
        first, last = indptr[i], indptr[i + 1]
        q = 0 if question is None else question[i]
        row = i if per_task else q
        f, prior = prior_mean[row], prior_precision[row]
        m, v, free = means[i], variances[i], True
        if gold is not None and not np.isnan(gold[i]):
            m, v, free = gold[i], 0.0, False
        for _ in range(n_rounds if free else 0):
            precision, pull = 0.0, 0.0
            for e in range(first, last):
                c = worker[e] * Q + q
                w = 1.0 if weight is None else weight[e]
                y = value[e] - cells[c, 0]
                r = (y - m) * (y - m) + v + cells[c, 2]
                u = w * cells[c, 1] * (nu + 1.0) / (nu + cells[c, 1] * r)
                precision += u
                pull += u * y
            v = 1.0 / max(prior + precision, TINY)
            moved = (prior * f + pull) * v
            near = abs(moved - m) <= SETTLED * np.sqrt(v)
            m = moved
            if near:
                break
        means[i] = m
        variances[i] = v
        total = 0.0
        for e in range(first, last):
            c = worker[e] * Q + q
            w = 1.0 if weight is None else weight[e]
            total += w
            d = value[e] - cells[c, 0] - m
            square = cells[c, 1] * (d * d + v + cells[c, 2])
            logs += w * np.log1p(square / nu)
            u = w * (nu + 1.0) / (nu + square)
            sums[c, 0] += u * d
            sums[c, 1] += u * d * d
            sums[c, 2] += u * v
            sums[c, 3] += u
        if total > 0:
            _add_totals(totals, q, m, v, f, prior, level[q], free)
    return logs


@compiled
def _medians(
    indptr: Ints,
    worker: Ints,
    value: Floats,
    weight: Floats | None,
    question: Ints | None,
    offset: Floats,
    n_questions: int,
) -> Floats:
    n = indptr.shape[0] - 1
    medians = np.full(n, np.nan)
    for i in range(n):
        first, last = indptr[i], indptr[i + 1]
        q = 0 if question is None else question[i]
        y, w = np.empty(last - first), np.empty(last - first)
        size = 0
        for e in range(first, last):
            one = 1.0 if weight is None else weight[e]
            if one > 0:
                y[size] = value[e] - offset[worker[e] * n_questions + q]
                w[size] = one
                size += 1
        if size == 0:
            continue
        order = np.argsort(y[:size], kind="mergesort")
        half = 0.5 * w[:size].sum()
        below = 0.0
        for k in range(size):
            below += w[order[k]]
            if below >= half * (1 - HALF):
                exact = abs(below - half) <= HALF * half
                above = order[min(k + 1, size - 1)] if exact else order[k]
                medians[i] = 0.5 * (y[order[k]] + y[above])
                break
    return medians


def gaussian_step(
    numbers: TaskNumbers,
    cells: Floats,
    priors: NumberPriors,
    sums: Floats,
    totals: Floats,
    mean: Floats | None,
    variance: Floats | None,
) -> None:
    """See :func:`wisecrowd.kernels.worker_noise.reference.gaussian_step`."""
    _gaussian(*numbers, cells, *priors, sums, totals,
              NOTHING if mean is None else mean,
              NOTHING if variance is None else variance)  # fmt: skip


def gain_step(
    numbers: TaskNumbers,
    cells: Floats,
    priors: NumberPriors,
    sums: Floats,
    totals: Floats,
    mean: Floats | None,
    variance: Floats | None,
) -> None:
    """See :func:`wisecrowd.kernels.worker_noise.reference.gain_step`."""
    _gain(*numbers, cells, *priors, sums, totals,
          NOTHING if mean is None else mean,
          NOTHING if variance is None else variance)  # fmt: skip


def student_step(
    numbers: TaskNumbers,
    cells: Floats,
    priors: NumberPriors,
    nu: float,
    n_rounds: int,
    sums: Floats,
    totals: Floats,
    mean: Floats,
    variance: Floats,
) -> float:
    """See :func:`wisecrowd.kernels.worker_noise.reference.student_step`."""
    return float(
        _student(*numbers, cells, *priors, nu, n_rounds, sums, totals, mean, variance)
    )  # fmt: skip


def task_medians(numbers: TaskNumbers, offset: Floats, n_questions: int) -> Floats:
    """See :func:`wisecrowd.kernels.worker_noise.reference.task_medians`."""
    medians: Floats = _medians(*numbers, offset, n_questions)
    return medians
