"""Kernels of numbers: noise with a few levels, noise per worker, and medians of tasks."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.types import Floats, Ints
from wisecrowd.kernels.arguments import NumberPriors, TaskNumbers
from wisecrowd.kinds.classes.kernels.posteriors import annotations_of, sum_by

__all__ = [
    "gain_step",
    "gaussian_step",
    "level_step",
    "projected_step",
    "student_step",
    "task_medians",
]

# ------------------------------------------------------------------------------------- noise levels
# Belief propagation over noise levels, in NumPy: the specification, for small problems too.
#
# The edges of task ``i`` are ``indptr[i]`` to ``indptr[i + 1]``, one per worker, with mean label
# :math:`\bar y_e`, weight :math:`W_e` and squared deviations :math:`S_e`. At level :math:`s` their
# likelihood is
#
# .. math:: \log L_e(z, s) = -\tfrac12 W_e \log 2\pi s - \frac{W_e (z - \bar y_e)^2 + S_e}{2 s}.
#
# With the workers' messages :math:`u_e(s)` and :math:`B_e(z) = \log \sum_s u_e(s) L_e(z, s)` the
# messages back are one-dimensional integrals,
#
# .. math:: d_e(s) = \log \int N(z; \mu_i, \tau_i^2)\, e^{\sum_{f \ne e} B_f(z)} L_e(z, s)\, dz,
#
# by the trapezoid rule. Every term is a mixture of normals, whose means lie between the labels and
# the prior mean. The narrowest has the precision :math:`1 / \tau^2 + \sum W / s_{\min}`, the widest
# :math:`1 / \tau^2 + \sum W / s_{\max}`. Steps of .8 narrow standard deviations, up to seven wide
# ones beyond the outermost mean, leave errors of about 1e-12. Labels of a task that lie more than
# some 10000 narrow standard deviations apart get longer steps, and a variance of at least that of
# an error of rounding to the grid.


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


# ------------------------------------------------------------------------------------- worker noise
# Numbers with a bias and a noise per worker, in NumPy: the specification, for small problems too.
#
# Annotation ``e`` of task ``i`` has the cell :math:`c = jQ + q` of its worker and question, an
# offset :math:`o_c` and a precision :math:`p_c`:
#
# .. math:: y_e = o_c + g_c m_i + \varepsilon_e, \qquad \varepsilon_e \sim N(0, 1 / p_c),
#           \qquad m_i \sim N(f_i, 1 / \lambda_i)
#
# All steps add to ``sums`` (C, 4 or 7), with :math:`d_e = y_e - o_c - g_c m_i` at the new mean,
#
# .. math:: \sum w d, \; \sum w d^2, \; \sum w v_i, \; \sum w \quad
#           \Bigl(\sum w d m_i, \; \sum w m_i, \; \sum w m_i^2 \text{ with gains}\Bigr),
#
# and to ``totals`` (Q, 8), over the tasks that have labels,
#
# .. math:: N, \; N_\text{free}, \; \sum (m_i - l_q), \; \sum (m_i - l_q)^2, \; \sum v_i, \;
#           \sum \log \lambda_i v_i, \; \sum \lambda_i (m_i - f_i)^2, \; \sum \lambda_i v_i,
#
# where tasks are free unless their number is known, and :math:`v_i` is left out of the logarithm
# for the others. The posterior mean and variance of all tasks go to ``mean`` and ``variance`` (n,).

TINY = 1e-300
HALF = 1e-9  # relative tolerance of a cumulative weight that is exactly one half
SETTLED = 1e-9  # move of a mean, in standard deviations, that counts as converged


class _Block:
    """Parts of a block that do not depend on the iteration."""

    def __init__(self, numbers: TaskNumbers, n_questions: int) -> None:
        rows, self.task = annotations_of(numbers.indptr)
        self.n = len(numbers.indptr) - 1
        self.value, self.worker = numbers.value[rows], numbers.worker[rows]
        ones = np.ones(len(self.task))
        self.weight = ones if numbers.weight is None else numbers.weight[rows]
        none = np.zeros(self.n, dtype=np.int64)
        self.question = none if numbers.question is None else numbers.question
        self.cell = self.worker.astype(np.int64) * n_questions + self.question[self.task]
        self.labelled = sum_by(self.task, self.weight, self.n) > 0

    def priors(self, priors: NumberPriors) -> tuple[Floats, Floats, Floats, NDArray[np.bool_]]:
        """Return prior mean, precision and gold of each task, and whether it is free."""
        row = np.arange(self.n) if priors.per_task else self.question
        gold = np.full(self.n, np.nan) if priors.gold is None else priors.gold
        return priors.mean[row], priors.precision[row], gold, np.isnan(gold)

    def posterior(
        self, priors: NumberPriors, precision: Floats, target: Floats
    ) -> tuple[Floats, Floats]:
        """Return mean and variance (n,) from precisions and precision × target (E,)."""
        prior_mean, prior_precision, gold, free = self.priors(priors)
        total = prior_precision + sum_by(self.task, precision, self.n)
        pull = prior_precision * prior_mean + sum_by(self.task, target, self.n)
        variance = np.where(free, 1 / np.maximum(total, TINY), 0.0)
        return np.where(free, pull * variance, gold), variance

    def add_totals(
        self, priors: NumberPriors, mean: Floats, variance: Floats, totals: Floats
    ) -> None:
        """Add the sums over the tasks that have labels."""
        prior_mean, precision, _, free = self.priors(priors)
        away = mean - priors.level[self.question]
        log_ratio = np.log(np.maximum(precision * np.where(free, variance, 1.0), TINY))
        columns = (
            np.ones(self.n), free, away, away**2, variance, log_ratio,
            precision * (mean - prior_mean) ** 2, precision * variance,
        )  # fmt: skip
        for k, values in enumerate(columns):
            kept = np.where(self.labelled, values, 0.0)
            totals[:, k] += sum_by(self.question, kept, len(totals))


def _store(
    mean: Floats | None, variance: Floats | None, new_mean: Floats, new_variance: Floats
) -> None:
    if mean is not None and variance is not None:
        mean[:], variance[:] = new_mean, new_variance


def gaussian_step(
    numbers: TaskNumbers,
    cells: Floats,
    priors: NumberPriors,
    sums: Floats,
    totals: Floats,
    mean: Floats | None,
    variance: Floats | None,
) -> None:
    """Run the E-step of normal noise; ``cells`` (C, 2) has offsets and precisions."""
    block = _Block(numbers, len(totals))
    offset, precision = cells[block.cell].T
    weighted = block.weight * precision
    centred = block.value - offset
    new_mean, new_variance = block.posterior(priors, weighted, weighted * centred)
    rest = centred - new_mean[block.task]
    columns = rest, rest**2, new_variance[block.task], np.ones(len(rest))
    for k, values in enumerate(columns):
        sums[:, k] += sum_by(block.cell, block.weight * values, len(cells))
    block.add_totals(priors, new_mean, new_variance, totals)
    _store(mean, variance, new_mean, new_variance)


def gain_step(
    numbers: TaskNumbers,
    cells: Floats,
    priors: NumberPriors,
    sums: Floats,
    totals: Floats,
    mean: Floats | None,
    variance: Floats | None,
) -> None:
    """Run the E-step with gains.

    ``cells`` (C, 5) has offsets, precisions, expected gains, expected squared gains, and the
    covariance of gain and bias.
    """
    block = _Block(numbers, len(totals))
    offset, precision, gain, squared_gain, covariance = cells[block.cell].T
    weighted = block.weight * precision
    centred = block.value - offset
    new_mean, new_variance = block.posterior(
        priors, weighted * squared_gain, weighted * (gain * centred - covariance)
    )
    at = new_mean[block.task]
    rest = centred - gain * at
    columns = rest, rest**2, new_variance[block.task], np.ones(len(rest)), rest * at, at, at**2
    for k, values in enumerate(columns):
        sums[:, k] += sum_by(block.cell, block.weight * values, len(cells))
    block.add_totals(priors, new_mean, new_variance, totals)
    _store(mean, variance, new_mean, new_variance)


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
    r"""Run the E-step of Student noise; ``cells`` (C, 3) has offset, precision, variance of bias.

    ``mean`` and ``variance`` (n,) are the start and are replaced. A round takes

    .. math:: u_e = (\nu + 1) / (\nu + p_c r_e^2), \qquad r_e^2 = (y_e - o_c - m_i)^2 + v_i + c_c

    and the mean and variance of each task with weights :math:`w_e u_e`; rounds end when a mean
    moves by less than 1e-9 standard deviations. The sums have weights :math:`w_e u_e` at the new
    mean. Returns :math:`\sum_e w_e \log(1 + p_c r_e^2 / \nu)`.
    """
    block = _Block(numbers, len(totals))
    offset, precision, spread = cells[block.cell].T
    centred = block.value - offset

    def square(at: Floats, width: Floats) -> Floats:
        squares = (centred - at[block.task]) ** 2 + width[block.task] + spread
        return np.asarray(precision * squares)

    moving = np.ones(block.n, dtype=bool)
    for _ in range(n_rounds):
        u = (nu + 1) / (nu + square(mean, variance))
        weighted = block.weight * precision * u
        new_mean, new_variance = block.posterior(priors, weighted, weighted * centred)
        near = np.abs(new_mean - mean) <= SETTLED * np.sqrt(new_variance)
        mean[moving], variance[moving] = new_mean[moving], new_variance[moving]
        moving &= ~near
        if not moving.any():
            break
    squares = square(mean, variance)
    u = block.weight * (nu + 1) / (nu + squares)
    rest = centred - mean[block.task]
    for k, values in enumerate((rest, rest**2, variance[block.task], np.ones(len(rest)))):
        sums[:, k] += sum_by(block.cell, u * values, len(cells))
    block.add_totals(priors, mean, variance, totals)
    return float((block.weight * np.log1p(squares / nu)).sum())


def task_medians(numbers: TaskNumbers, offset: Floats, n_questions: int) -> Floats:
    """Return the weighted median (n,) of each task's numbers minus offsets (C,); NaN without.

    It is the smallest number whose cumulative weight reaches half of the total. If the weight is
    exactly half, it is the mean of this number and the next.
    """
    block = _Block(numbers, n_questions)
    value = block.value - offset[block.cell]
    kept = np.flatnonzero(block.weight > 0)
    order = kept[np.lexsort((value[kept], block.task[kept]))]
    task, value, weight = block.task[order], value[order], block.weight[order]
    medians = np.full(block.n, np.nan)
    if not len(order):
        return medians
    size = np.bincount(task, minlength=block.n)
    first = np.cumsum(size) - size
    total = sum_by(task, weight, block.n)
    if numbers.weight is None:  # exact, whatever the sizes
        below = np.arange(len(order)) - first[task] + 1.0
    else:
        running = np.cumsum(weight)
        start = running[first[task]] - weight[first[task]]
        below = running - start
    half = 0.5 * total[task]
    reached = below >= half * (1 - HALF)
    place = np.full(block.n, len(order))
    np.minimum.at(place, task[reached], np.flatnonzero(reached))
    has = size > 0
    low = place[has]
    exact = np.abs(below[low] - half[low]) <= HALF * half[low]
    high = np.where(exact, np.minimum(low + 1, first[has] + size[has] - 1), low)
    medians[has] = 0.5 * (value[low] + value[high])
    return medians
