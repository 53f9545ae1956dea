r"""Belief propagation over noise levels, in NumPy: the specification, for small problems too.

The edges of task ``i`` are ``indptr[i]`` to ``indptr[i + 1]``, one per worker, with mean label
:math:`\bar y_e`, weight :math:`W_e` and squared deviations :math:`S_e`. At level :math:`s` their
likelihood is

.. math:: \log L_e(z, s) = -\tfrac12 W_e \log 2\pi s - \frac{W_e (z - \bar y_e)^2 + S_e}{2 s}.

With the workers' messages :math:`u_e(s)` and :math:`B_e(z) = \log \sum_s u_e(s) L_e(z, s)` the
messages back are one-dimensional integrals,

.. math:: d_e(s) = \log \int N(z; \mu_i, \tau_i^2)\, e^{\sum_{f \ne e} B_f(z)} L_e(z, s)\, dz,

by the trapezoid rule. Every term is a mixture of normals, whose means lie between the labels and
the prior mean. The narrowest has the precision :math:`1 / \tau^2 + \sum W / s_{\min}`, the widest
:math:`1 / \tau^2 + \sum W / s_{\max}`. Steps of .8 narrow standard deviations, up to seven wide
ones beyond the outermost mean, leave errors of about 1e-12. Labels of a task that lie more than
some 10000 narrow standard deviations apart get longer steps, and a variance of at least that of
an error of rounding to the grid.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["level_step", "projected_step"]

Floats = NDArray[np.float64]
Ints = NDArray[np.integer[Any]]

STEP = 0.8  # step of the grid, in standard deviations of the narrowest term
BEYOND = 7.0  # standard deviations of the widest term beyond the outermost mean
MOST_POINTS = 20_000  # of a grid; labels of one task that differ more get a coarser one
LOG_2PI = 1.8378770664093453
SWEEPS = 5  # of expectation propagation
LEAST_PRECISION = 1e-3  # of a projected worker, as a share of that at the largest level


class Edges(NamedTuple):
    """Labels by task and worker: pointers (n + 1,), mean, weight and squared deviations (E,)."""

    indptr: Ints
    mean: Floats
    weight: Floats
    squares: Floats


class NormalPriors(NamedTuple):
    """Mean and precision (n,) of the tasks' priors, and known numbers (n,), NaN where unknown."""

    mean: Floats
    precision: Floats
    gold: Floats


def level_step(
    edges: Edges,
    priors: NormalPriors,
    levels: Floats,
    log_message: Floats,
    answer: Floats,
    mean: Floats,
    variance: Floats,
) -> float:
    r"""Send messages from tasks to workers.

    ``log_message`` (E, S) are the workers' messages :math:`\log u_e(s)`. Fills ``answer`` (E, S)
    with :math:`d_e(s)`, and ``mean`` and ``variance`` (n,) with the moments of each task. Returns
    the sum of the log integrals of all terms of a task, without those that are known.
    """
    n_tasks = len(edges.indptr) - 1
    count = np.diff(edges.indptr)
    known = ~np.isnan(priors.gold)
    first, step, n_points = _grids(edges, priors, levels)
    n_points[known] = 1
    start = np.where(known, priors.gold, first)
    task = np.repeat(np.arange(n_tasks), n_points)  # of each point
    begin = np.cumsum(n_points) - n_points
    z = start[task] + step[task] * (np.arange(len(task)) - begin[task])
    # Pairs of an edge and a point of its task: those of edge e are in one piece.
    of_edge = np.repeat(np.arange(n_tasks), count)
    size = n_points[of_edge]
    edge = np.repeat(np.arange(len(of_edge)), size)
    edge_begin = np.cumsum(size) - size
    point = begin[of_edge][edge] + np.arange(len(edge)) - edge_begin[edge]
    away = edges.weight[edge] * (z[point] - edges.mean[edge]) ** 2 + edges.squares[edge]
    scores = -0.5 * (edges.weight[edge, None] * (LOG_2PI + np.log(levels)) + away[:, None] / levels)
    both = scores + log_message[edge]
    top = both.max(axis=1)
    mixed = top + np.log(np.exp(both - top[:, None]).sum(axis=1))
    off = z - priors.mean[task]
    total = 0.5 * (np.log(priors.precision) - LOG_2PI)[task] - 0.5 * priors.precision[task] * off**2
    total = total + np.bincount(point, mixed, len(z))
    highest = np.maximum.reduceat(total, begin) if n_tasks else total
    mass = np.exp(total - highest[task])
    whole = np.bincount(task, mass, n_tasks)
    mean[:] = start + np.bincount(task, mass * (z - start[task]), n_tasks) / whole
    variance[:] = np.bincount(task, mass * (z - mean[task]) ** 2, n_tasks) / whole
    np.maximum(variance, step**2 / 12, out=variance)  # rounding to the grid, if it is coarse
    for k in range(len(levels)):
        others = np.exp(total[point] - highest[task[point]] + scores[:, k] - mixed)
        sums = np.bincount(edge, others, len(of_edge))
        answer[:, k] = np.log(np.maximum(sums, 1e-300)) + (highest + np.log(step))[of_edge]
    gold_edge = known[of_edge]
    if gold_edge.any():
        answer[gold_edge] = scores[edge_begin[gold_edge]]
        mean[known], variance[known] = priors.gold[known], 0.0
    return float((highest + np.log(whole) + np.log(step))[~known].sum())


def _grids(
    edges: Edges, priors: NormalPriors, levels: Floats
) -> tuple[Floats, Floats, NDArray[np.int64]]:
    """Return the first point, the step and the number of points (n,) of each task's grid."""
    n_tasks = len(edges.indptr) - 1
    task = np.repeat(np.arange(n_tasks), np.diff(edges.indptr))
    weight = np.bincount(task, edges.weight, n_tasks)
    narrow = 1 / np.sqrt(priors.precision + weight / levels.min())
    wide = 1 / np.sqrt(priors.precision + weight / levels.max())
    # A term's mean is the prior's, plus a share of the distance to a mean of the labels. The share
    # lies between those at the largest and at the smallest level.
    below, above = np.full(n_tasks, np.inf), np.full(n_tasks, -np.inf)
    np.minimum.at(below, task, edges.mean - priors.mean[task])
    np.maximum.at(above, task, edges.mean - priors.mean[task])
    below, above = (np.where(np.isfinite(end), end, 0.0) for end in (below, above))
    most, least = (1 - priors.precision * sd**2 for sd in (narrow, wide))
    low = priors.mean + np.minimum(least * below, most * below)
    high = priors.mean + np.maximum(least * above, most * above)
    first, length = low - BEYOND * wide, high - low + 2 * BEYOND * wide
    step = np.maximum(STEP * narrow, length / MOST_POINTS)
    return first, step, np.ceil(length / step).astype(np.int64) + 1


def projected_step(
    edges: Edges,
    priors: NormalPriors,
    levels: Floats,
    log_message: Floats,
    answer: Floats,
    mean: Floats,
    variance: Floats,
) -> float:
    r"""Send messages with the mixture of every other worker projected to one normal.

    As :func:`level_step`, where the mixture of levels :math:`e^{B_e(z)}` of each worker becomes the
    normal function of :math:`z` that gives the task the same mean and variance (expectation
    propagation, a few sweeps). Every integral then has a closed form. It costs O(edges × levels).
    """
    n_tasks = len(edges.indptr) - 1
    task = np.repeat(np.arange(n_tasks), np.diff(edges.indptr))
    known = ~np.isnan(priors.gold)
    message, weight = np.exp(log_message), edges.weight
    y = edges.mean - priors.mean[task]  # relative to the prior mean
    precision = weight / (message @ levels)
    pull = precision * y
    for sweep in range(SWEEPS + 1):
        total = priors.precision + np.bincount(task, precision, n_tasks)
        place = np.bincount(task, pull, n_tasks) / total
        # The task without this edge; never less certain than the prior, which rounding could cause.
        rest = np.maximum(total[task] - precision, priors.precision[task])
        spread = np.where(known[task], 0.0, 1 / rest)
        center = np.where(
            known[task], (priors.gold - priors.mean)[task],
            (place[task] * total[task] - pull) / rest,
        )  # fmt: skip
        away = weight * (y - center) ** 2
        wide = 1 + weight[:, None] * spread[:, None] / levels
        answer[:] = -0.5 * (
            weight[:, None] * (LOG_2PI + np.log(levels)) + np.log(wide)
            + (away[:, None] / wide + edges.squares[:, None]) / levels
        )  # fmt: skip
        if sweep == SWEEPS:
            break
        # Moments of the task under the levels of this edge, and the normal that causes them.
        level = answer + log_message
        level = np.exp(level - level.max(axis=1, keepdims=True))
        level /= level.sum(axis=1, keepdims=True)
        own = spread[:, None] / wide
        part = center[:, None] + (y - center)[:, None] * (1 - 1 / wide)
        middle = (level * part).sum(axis=1)
        moment = (level * (own + (part - middle[:, None]) ** 2)).sum(axis=1)
        moment = np.where(known[task], 1.0, moment)
        lowest, highest = weight / levels.max(), weight / levels.min()
        precision = np.clip(1 / moment - rest, LEAST_PRECISION * lowest, highest)
        pull = np.where(known[task], 0.0, (middle * (rest + precision) - center * rest))
    mean[:] = np.where(known, priors.gold, priors.mean + place)
    variance[:] = np.where(known, 0.0, 1 / total)
    return 0.0
