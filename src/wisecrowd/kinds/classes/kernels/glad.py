r"""Abilities times easiness, in NumPy: the specification, also used for small problems.

Conventions as in :mod:`wisecrowd.kinds.classes.kernels.confusion`. Worker ``j`` is right
on task ``i`` with probability :math:`\sigma(\alpha_j e^{b_i})`; wrong labels are spread evenly.
With :math:`\beta_i = e^{b_i}` the log-likelihood of a task is

.. math::
    f_i(b) = \log \sum_k \exp\Bigl[\log\pi_k + \log h_i(k)
    + \beta_i \sum_{e: y_e = k} w_e \alpha_{j(e)} + m_{ik} \log(K - 1)\Bigr]
    - \sum_{e \in i} w_e [\log(1 + e^{\beta_i \alpha_{j(e)}}) + \log(K - 1)]

with :math:`m_{ik}` the weight of labels ``k``. Only the last sum needs a function per annotation.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from wisecrowd.core.types import Floats, Ints
from wisecrowd.kinds.classes.kernels.posteriors import log_normalise

__all__ = ["difficulty_step", "difficulty_values"]


LONGEST_MOVE = 1.0  # longest move of a log easiness in one step
SHORTER = 0.3  # factor that shortens a move that lowers the value
MOST_CUTS = 6  # maximum number of such cuts
SETTLED = 1e-10  # length of a move that counts as converged
ROUNDING = 1e-12  # relative loss that counts as rounding


class _Point(NamedTuple):
    """The tasks of a block at some log easiness: value, slope, curvature (n,), posterior (n, K)."""

    value: Floats
    slope: Floats
    curvature: Floats
    probas: Floats
    right: Floats  # (E,) probability of a correct label


class _Block:
    """Parts of a block that do not depend on the easiness."""

    def __init__(
        self,
        indptr: Ints,
        worker: Ints,
        label: Ints,
        weight: Floats | None,
        ability: Floats,
        log_class: Floats,
        prior_rows: Floats,
        prior_index: Ints | None,
    ) -> None:
        rows = slice(indptr[0], indptr[-1])
        self.n, n_classes = len(indptr) - 1, len(log_class)
        self.labelled = np.diff(indptr) > 0
        self.task = np.repeat(np.arange(self.n), np.diff(indptr))
        self.worker, self.label = worker[rows], label[rows]
        self.weight = np.ones(len(self.task)) if weight is None else weight[rows]
        self.ability = ability[self.worker]
        spread = np.log(max(n_classes - 1, 1))
        cell = self.task * n_classes + self.label
        shape = (self.n, n_classes)
        received = np.bincount(cell, self.weight, minlength=self.n * n_classes).reshape(shape)
        pull = np.bincount(cell, self.weight * self.ability, minlength=self.n * n_classes)
        self.pull = pull.reshape(shape).astype(np.float64, copy=False)  # a_ik: times β, log odds
        prior = log_class + (prior_rows[0] if prior_index is None else prior_rows[prior_index])
        self.base = prior + spread * (received - received.sum(axis=1, keepdims=True))

    def by_task(self, values: Floats) -> Floats:
        total = np.bincount(self.task, self.weight * values, minlength=self.n)
        return total.astype(np.float64, copy=False)

    def at(self, log_easiness: Floats, center: float, precision: float) -> _Point:
        """Evaluate the penalised log-likelihood and its derivatives in the log easiness."""
        easiness = np.exp(log_easiness)
        x = self.ability * easiness[self.task]
        tail = np.exp(-np.abs(x))
        right = np.where(x >= 0, 1.0, tail) / (1 + tail)
        probas, log_z = log_normalise(self.base + easiness[:, None] * self.pull)
        value = log_z - self.by_task(np.maximum(x, 0) + np.log1p(tail))
        gain = easiness * (probas * self.pull).sum(axis=1) - self.by_task(right * x)
        bend = precision + self.by_task(right * (1 - right) * x * x)
        away = log_easiness - center
        return _Point(
            value - 0.5 * precision * away**2,
            gain - precision * away,
            # The curvature of the expected log-likelihood, kept positive and away from zero.
            np.maximum(bend - gain, 0.25 * bend),
            probas,
            right,
        )

    def climb(
        self, start: Floats, point: _Point, center: float, precision: float
    ) -> tuple[Floats, _Point, float]:
        """Take one Newton step per task, cut until none loses; return the longest move."""
        bend = np.where(point.curvature > 0, point.curvature, 1.0)
        move = np.clip(point.slope / bend, -LONGEST_MOVE, LONGEST_MOVE)
        least = point.value - ROUNDING * (1 + np.abs(point.value))
        reached = self.at(start + move, center, precision)
        for cut in range(1, MOST_CUTS + 1):
            loses = ~(reached.value >= least)
            if not loses.any():
                break
            move[loses] *= SHORTER if cut < MOST_CUTS else 0.0
            reached = self.at(start + move, center, precision)
        return start + move, reached, float(np.abs(move).max(initial=0.0))


def difficulty_values(
    indptr: Ints,
    worker: Ints,
    label: Ints,
    weight: Floats | None,
    ability: Floats,
    log_class: Floats,
    prior_rows: Floats,
    prior_index: Ints | None,
    log_easiness: Floats,
) -> Floats:
    """Return the log-likelihood (n,) of each task of a block at the given log easiness (n,)."""
    block = _Block(indptr, worker, label, weight, ability, log_class, prior_rows, prior_index)
    return block.at(log_easiness, 0.0, 0.0).value


def difficulty_step(
    indptr: Ints,
    worker: Ints,
    label: Ints,
    weight: Floats | None,
    ability: Floats,
    log_class: Floats,
    prior_rows: Floats,
    prior_index: Ints | None,
    log_easiness: Floats,
    center: float,
    precision: float,
    n_steps: int,
    sums: Floats | None,
    mass: Floats | None,
    probas: Floats | None,
) -> float:
    r"""Improve the easiness of a block's tasks, run the E-step, and sum the ability statistics.

    Moves ``log_easiness`` (n,) in place by up to ``n_steps`` Newton steps on :math:`f_i(b)` minus
    ``precision / 2 * (b - center)**2``, none of which lowers it. Then adds to ``sums`` (J, 3)

    .. math::
        \sum_e w_e (q_i(y_e) - \sigma(x_e)) \beta_i, \quad
        \sum_e w_e \beta_i^2 \tanh(x_e / 2) / (2 x_e), \quad
        \sum_e w_e \sigma(x_e), \qquad x_e = \alpha_j \beta_i

    (the gradient in the ability, a bound on its curvature that holds everywhere, and the expected
    number of correct labels), adds to ``mass`` (K,), fills ``probas`` (n, K), each unless it is
    None, and returns :math:`\sum_i f_i(b_i)` over the labelled tasks.
    """
    block = _Block(indptr, worker, label, weight, ability, log_class, prior_rows, prior_index)
    reached = log_easiness.copy()
    point = block.at(reached, center, precision)
    for _ in range(n_steps):
        reached, point, longest = block.climb(reached, point, center, precision)
        if longest <= SETTLED:
            break
    log_easiness[:] = reached
    if probas is not None:
        probas[:] = point.probas
    if sums is not None and mass is not None:
        mass += point.probas[block.labelled].sum(axis=0)
        easiness = np.exp(reached)[block.task]
        x = block.ability * easiness
        miss = point.probas[block.task, block.label] - point.right
        bound = half_tanh_ratio(x, point.right)
        for column, values in enumerate((miss * easiness, bound * easiness**2, point.right)):
            sums[:, column] += np.bincount(
                block.worker, block.weight * values, minlength=len(ability)
            )
    value = point.value + 0.5 * precision * (reached - center) ** 2
    return float(value[block.labelled].sum())


def half_tanh_ratio(x: Floats, right: Floats) -> Floats:
    r"""Return :math:`\tanh(x / 2) / (2 x)`, 1/4 at zero, from ``x`` and :math:`\sigma(x)`."""
    near_zero = np.abs(x) < 1e-4
    return np.where(near_zero, 0.25, (right - 0.5) / np.where(near_zero, 1.0, x))
