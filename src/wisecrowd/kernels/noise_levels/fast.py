"""Belief propagation over noise levels, compiled; the reference defines every kernel."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.kernels.compiling import compiled, exp_below_zero
from wisecrowd.kernels.noise_levels.reference import (
    BEYOND,
    LOG_2PI,
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
    return top + np.log(total)


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
    S = levels.shape[0]
    inverse = 1.0 / levels
    norms = 0.5 * (LOG_2PI + np.log(levels))
    low_level, high_level = levels.min(), levels.max()
    evidence = 0.0
    for i in range(indptr.shape[0] - 1):
        first, last = indptr[i], indptr[i + 1]
        m = last - first
        if not np.isnan(gold[i]):
            mean[i], variance[i] = gold[i], 0.0
            for e in range(first, last):
                d = gold[i] - center[e]
                for k in range(S):
                    answer[e, k] = -weight[e] * norms[k]
                    answer[e, k] -= 0.5 * (weight[e] * d * d + squares[e]) * inverse[k]
            continue
        total_weight, low, high = 0.0, prior_mean[i], prior_mean[i]
        most = 0.0  # the largest ratio of a likelihood to its mixture
        for e in range(first, last):
            total_weight += weight[e]
            low, high = min(low, center[e]), max(high, center[e])
            for k in range(S):
                most = max(most, -log_message[e, k])
        narrow = 1.0 / np.sqrt(prior_precision[i] + total_weight / low_level)
        wide = 1.0 / np.sqrt(prior_precision[i] + total_weight / high_level)
        step = STEP * narrow
        start = low - BEYOND * wide
        P = int(np.ceil((high + BEYOND * wide - start) / step)) + 1
        mixed, total = np.empty((m, P)), np.empty(P)
        top = -np.inf
        base = 0.5 * (np.log(prior_precision[i]) - LOG_2PI)
        for p in range(P):
            z = start + step * p
            off = z - prior_mean[i]
            total[p] = base - 0.5 * prior_precision[i] * off * off
            for e in range(first, last):
                mixed[e - first, p] = _mix(
                    z, center[e], weight[e], squares[e], inverse, norms, log_message[e]
                )
                total[p] += mixed[e - first, p]
            top = max(top, total[p])
        sum0, sum1 = 0.0, 0.0
        for p in range(P):
            one = exp_below_zero(total[p] - top)
            sum0 += one
            sum1 += one * (step * p)
        mean[i] = start + sum1 / sum0
        sum2 = 0.0
        for p in range(P):
            d = start + step * p - mean[i]
            sum2 += exp_below_zero(total[p] - top) * d * d
        variance[i] = sum2 / sum0
        shift = top + np.log(step)
        evidence += shift + np.log(sum0)
        for e in range(first, last):
            for k in range(S):
                answer[e, k] = 0.0
            for p in range(P):
                if total[p] - top + most < -NEGLIGIBLE:
                    continue
                d = start + step * p - center[e]
                away = 0.5 * (weight[e] * d * d + squares[e])
                others = total[p] - top - mixed[e - first, p]
                for k in range(S):
                    answer[e, k] += np.exp(others - weight[e] * norms[k] - away * inverse[k])
            for k in range(S):
                answer[e, k] = np.log(max(answer[e, k], 1e-300)) + shift
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
