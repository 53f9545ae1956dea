r"""Numbers with a bias and a noise per worker, in NumPy: the specification, for small problems too.

Annotation ``e`` of task ``i`` has the cell :math:`c = jQ + q` of its worker and question, an offset
:math:`o_c` and a precision :math:`p_c`:

.. math:: y_e = o_c + g_c m_i + \varepsilon_e, \qquad \varepsilon_e \sim N(0, 1 / p_c),
          \qquad m_i \sim N(f_i, 1 / \lambda_i)

All steps add to ``sums`` (C, 4 or 7), with :math:`d_e = y_e - o_c - g_c m_i` at the new mean,

.. math:: \sum w d, \; \sum w d^2, \; \sum w v_i, \; \sum w \quad
          \Bigl(\sum w d m_i, \; \sum w m_i, \; \sum w m_i^2 \text{ with gains}\Bigr),

and to ``totals`` (Q, 8), over the tasks that have labels,

.. math:: N, \; N_\text{free}, \; \sum (m_i - l_q), \; \sum (m_i - l_q)^2, \; \sum v_i, \;
          \sum \log \lambda_i v_i, \; \sum \lambda_i (m_i - f_i)^2, \; \sum \lambda_i v_i,

where tasks are free unless their number is known, and :math:`v_i` is left out of the logarithm
for the others. The posterior mean and variance of all tasks go to ``mean`` and ``variance`` (n,).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.kernels.arguments import NumberPriors, TaskNumbers
from wisecrowd.kernels.posteriors import annotations_of, sum_by

__all__ = ["gain_step", "gaussian_step", "student_step", "task_medians"]

Floats = NDArray[np.float64]
Ints = NDArray[np.integer[Any]]

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
