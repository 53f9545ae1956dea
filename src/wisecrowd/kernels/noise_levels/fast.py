"""Belief propagation over noise levels, compiled; the reference defines every kernel."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.kernels.compiling import compiled, exp_below_zero
from wisecrowd.kernels.noise_levels.reference import (
    BEYOND,
    LOG_2PI,
    MOST_POINTS,
    STEP,
    Edges,
    NormalPriors,
    projected_step,
)

__all__ = ["level_step", "projected_step"]

Floats = NDArray[np.float64]
Ints = NDArray[np.integer[Any]]

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
    """See :func:`wisecrowd.kernels.noise_levels.reference.level_step`."""
    return float(
        _level_step(*edges, *priors, levels, log_message, answer, mean, variance)
    )  # fmt: skip
