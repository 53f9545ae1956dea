"""Kernels of numbers, compiled."""

from __future__ import annotations

import numpy as np

from wisecrowd.core.types import Floats, Ints
from wisecrowd.kernels.arguments import NumberPriors, TaskNumbers
from wisecrowd.kernels.compiling import compiled, exp_below_zero, inlined
from wisecrowd.kinds.numbers.kernels import (
    BEYOND,
    HALF,
    LOG_2PI,
    MOST_POINTS,
    SETTLED,
    STEP,
    TINY,
    Edges,
    NormalPriors,
    projected_step,
)

__all__ = [
    "gain_step",
    "gaussian_step",
    "level_step",
    "projected_step",
    "student_step",
    "task_medians",
]

# ------------------------------------------------------------------------------------- noise levels
# Belief propagation over noise levels, compiled; the reference defines every kernel.


NEGLIGIBLE = 60.0  # a point that is this far below, with the largest ratio, adds nothing


@compiled
def _mix(
    z: float,
    center: float,
    weight: float,
    squares: float,
    inverse: Floats,
    norms: Floats,
    log_u: Floats,
) -> float:
    """Return the log of a worker's mixture of levels at a point."""
    away = 0.5 * (weight * (z - center) * (z - center) + squares)
    top = -np.inf
    for k in range(inverse.shape[0]):
        top = max(top, log_u[k] - weight * norms[k] - away * inverse[k])
    total = 0.0
    for k in range(inverse.shape[0]):
        total += exp_below_zero(log_u[k] - weight * norms[k] - away * inverse[k] - top)
    return float(top + np.log(total))


@compiled
def _known_task(
    first: int,
    last: int,
    center: Floats,
    weight: Floats,
    squares: Floats,
    gold: float,
    inverse: Floats,
    norms: Floats,
    answer: Floats,
) -> None:
    for e in range(first, last):
        d = gold - center[e]
        away = 0.5 * (weight[e] * d * d + squares[e])
        for k in range(inverse.shape[0]):
            answer[e, k] = -weight[e] * norms[k] - away * inverse[k]


@compiled
def _moments(total: Floats, top: float, step: float) -> tuple[float, float, float]:
    """Return mass, mean and variance of a grid from 0 on."""
    mass, first, second = 0.0, 0.0, 0.0
    for p in range(total.shape[0]):
        one = exp_below_zero(total[p] - top)
        mass += one
        first += one * (step * p)
    mean = first / mass
    for p in range(total.shape[0]):
        d = step * p - mean
        second += exp_below_zero(total[p] - top) * d * d
    return mass, mean, second / mass


@compiled
def _integrals(
    total: Floats,
    top: float,
    mixed: Floats,
    start: float,
    step: float,
    center: float,
    weight: float,
    squares: float,
    inverse: Floats,
    norms: Floats,
    most: float,
    answer: Floats,
) -> None:
    """Integrate the other terms of a task times the likelihood of one edge at each level."""
    answer[:] = 0.0
    for p in range(total.shape[0]):
        if total[p] - top + most < -NEGLIGIBLE:
            continue
        d = start + step * p - center
        away = 0.5 * (weight * d * d + squares)
        others = total[p] - top - mixed[p]
        for k in range(inverse.shape[0]):
            answer[k] += np.exp(others - weight * norms[k] - away * inverse[k])
    shift = top + np.log(step)
    for k in range(inverse.shape[0]):
        answer[k] = np.log(max(answer[k], 1e-300)) + shift


@compiled
def _level_step(
    indptr: Ints,
    center: Floats,
    weight: Floats,
    squares: Floats,
    prior_mean: Floats,
    prior_precision: Floats,
    gold: Floats,
    levels: Floats,
    log_message: Floats,
    answer: Floats,
    mean: Floats,
    variance: Floats,
) -> float:
    inverse, norms = 1.0 / levels, 0.5 * (LOG_2PI + np.log(levels))
    evidence = 0.0
    for i in range(indptr.shape[0] - 1):
        first, last = indptr[i], indptr[i + 1]
        if not np.isnan(gold[i]):
            mean[i], variance[i] = gold[i], 0.0
            _known_task(first, last, center, weight, squares, gold[i], inverse, norms, answer)
            continue
        labels, below, above = 0.0, np.inf, -np.inf
        for e in range(first, last):
            labels += weight[e]
            off = center[e] - prior_mean[i]
            below, above = min(below, off), max(above, off)
        if last == first:
            below = above = 0.0
        prior = prior_precision[i]
        narrow = 1 / np.sqrt(prior + labels * inverse.max())
        wide = 1 / np.sqrt(prior + labels * inverse.min())
        most, least = 1 - prior * narrow * narrow, 1 - prior * wide * wide
        low = min(least * below, most * below) - BEYOND * wide
        length = max(least * above, most * above) + BEYOND * wide - low
        start, step = prior_mean[i] + low, max(STEP * narrow, length / MOST_POINTS)
        n_points = int(np.ceil(length / step)) + 1
        mixed, total = np.empty((last - first, n_points)), np.empty(n_points)
        for p in range(n_points):
            z = start + step * p
            off = z - prior_mean[i]
            total[p] = 0.5 * (np.log(prior) - LOG_2PI - prior * off * off)
            for e in range(first, last):
                mixed[e - first, p] = _mix(
                    z, center[e], weight[e], squares[e], inverse, norms, log_message[e]
                )
                total[p] += mixed[e - first, p]
        top = total.max()
        mass, away, variance[i] = _moments(total, top, step)
        variance[i] = max(variance[i], step * step / 12)
        mean[i] = start + away
        evidence += top + np.log(step) + np.log(mass)
        if last > first:
            most = -log_message[first:last].min()  # the largest log ratio to a mixture
            for e in range(first, last):
                _integrals(total, top, mixed[e - first], start, step, center[e], weight[e],
                           squares[e], inverse, norms, most, answer[e])  # fmt: skip
    return evidence


def level_step(
    edges: Edges,
    priors: NormalPriors,
    levels: Floats,
    log_message: Floats,
    answer: Floats,
    mean: Floats,
    variance: Floats,
) -> float:
    """See :func:`wisecrowd.kinds.numbers.kernels.level_step`."""
    return float(
        _level_step(*edges, *priors, levels, log_message, answer, mean, variance)
    )  # fmt: skip


# ------------------------------------------------------------------------------------- worker noise
# Numbers with a bias and a noise per worker, compiled; the reference defines every kernel.

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
    """See :func:`wisecrowd.kinds.numbers.kernels.gaussian_step`."""
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
    """See :func:`wisecrowd.kinds.numbers.kernels.gain_step`."""
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
    """See :func:`wisecrowd.kinds.numbers.kernels.student_step`."""
    return float(
        _student(*numbers, cells, *priors, nu, n_rounds, sums, totals, mean, variance)
    )  # fmt: skip


def task_medians(numbers: TaskNumbers, offset: Floats, n_questions: int) -> Floats:
    """See :func:`wisecrowd.kinds.numbers.kernels.task_medians`."""
    medians: Floats = _medians(*numbers, offset, n_questions)
    return medians
