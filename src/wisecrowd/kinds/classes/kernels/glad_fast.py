"""The kernels of :mod:`wisecrowd.kinds.classes.kernels.glad`, compiled: one task at a time.

Arrays that are not requested have no rows instead of being None. One compiled version serves all
calls, because compiling takes longer here than fitting 10^5 annotations.
"""

from __future__ import annotations

import numpy as np

from wisecrowd.core.types import Floats, Ints
from wisecrowd.kernels.compiling import compiled
from wisecrowd.kinds.classes.kernels.glad import LONGEST_MOVE, MOST_CUTS, ROUNDING, SETTLED, SHORTER

__all__ = ["difficulty_step", "difficulty_values"]

NOTHING = np.empty(0)
NO_ROWS = np.empty((0, 1))


@compiled
def _prepare(
    first: int,
    last: int,
    worker: Ints,
    label: Ints,
    weight: Floats | None,
    ability: Floats,
    log_class: Floats,
    prior: Floats,
    base: Floats,
    pull: Floats,
) -> None:
    """Fill the parts of a task's log scores that do not depend on its easiness."""
    K = log_class.shape[0]
    spread = np.log(max(K - 1.0, 1.0))
    total = 0.0
    for k in range(K):
        base[k] = log_class[k] + prior[k]
        pull[k] = 0.0
    for e in range(first, last):
        w = 1.0 if weight is None else weight[e]
        base[label[e]] += w * spread
        pull[label[e]] += w * ability[worker[e]]
        total += w * spread
    for k in range(K):
        base[k] -= total


@compiled
def _at(
    first: int,
    last: int,
    worker: Ints,
    weight: Floats | None,
    ability: Floats,
    base: Floats,
    pull: Floats,
    b: float,
    center: float,
    precision: float,
    q: Floats,
) -> tuple[float, float, float]:
    """Fill the posterior of a task and return its penalised value, slope and curvature."""
    K = base.shape[0]
    easiness = np.exp(b)
    top = -np.inf
    for k in range(K):
        q[k] = base[k] + easiness * pull[k]
        top = max(top, q[k])
    z = 0.0
    mean = 0.0
    for k in range(K):
        q[k] = np.exp(q[k] - top)
        z += q[k]
        mean += q[k] * pull[k]
    for k in range(K):
        q[k] /= z
    value = top + np.log(z)
    gain = easiness * mean / z
    bend = precision
    for e in range(first, last):
        w = 1.0 if weight is None else weight[e]
        x = ability[worker[e]] * easiness
        tail = np.exp(-abs(x))
        right = (1.0 if x >= 0 else tail) / (1.0 + tail)
        value -= w * (max(x, 0.0) + np.log1p(tail))
        gain -= w * right * x
        bend += w * right * (1.0 - right) * x * x
    away = b - center
    return (
        value - 0.5 * precision * away * away,
        gain - precision * away,
        max(bend - gain, 0.25 * bend),
    )


@compiled
def _climb(
    first: int,
    last: int,
    worker: Ints,
    weight: Floats | None,
    ability: Floats,
    base: Floats,
    pull: Floats,
    b: float,
    center: float,
    precision: float,
    n_steps: int,
    q: Floats,
) -> tuple[float, float]:
    """Move a task's log easiness by Newton steps that never lower it; return it and its value."""
    value, slope, bend = _at(
        first, last, worker, weight, ability, base, pull, b, center, precision, q
    )
    for _ in range(n_steps):
        move = slope / bend if bend > 0 else slope
        move = min(max(move, -LONGEST_MOVE), LONGEST_MOVE)
        least = value - ROUNDING * (1.0 + abs(value))
        for cut in range(MOST_CUTS + 1):
            if cut > 0:
                move *= SHORTER if cut < MOST_CUTS else 0.0
            reached, slope, bend = _at(
                first, last, worker, weight, ability, base, pull, b + move, center, precision, q
            )
            if reached >= least:
                break
        b += move
        value = reached
        if abs(move) <= SETTLED:
            break
    return b, value


@compiled
def _difficulty_step(
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
    sums: Floats,
    mass: Floats,
    probas: Floats,
    values: Floats,
) -> float:
    K = log_class.shape[0]
    base, pull, q = np.empty(K), np.empty(K), np.empty(K)
    total = 0.0
    for i in range(indptr.shape[0] - 1):
        first, last = indptr[i], indptr[i + 1]
        prior = prior_rows[0] if prior_index is None else prior_rows[prior_index[i]]
        _prepare(first, last, worker, label, weight, ability, log_class, prior, base, pull)
        b, value = _climb(first, last, worker, weight, ability, base, pull, log_easiness[i],
                          center, precision, n_steps, q)  # fmt: skip
        log_easiness[i] = b
        value += 0.5 * precision * (b - center) ** 2
        if len(values) > 0:
            values[i] = value
        if len(probas) > 0:
            probas[i] = q
        if last == first:
            continue
        total += value
        if len(sums) > 0:
            mass += q
            easiness = np.exp(b)
            for e in range(first, last):
                j = worker[e]
                w = 1.0 if weight is None else weight[e]
                x = ability[j] * easiness
                tail = np.exp(-abs(x))
                right = (1.0 if x >= 0 else tail) / (1.0 + tail)
                bound = 0.25 if abs(x) < 1e-4 else (right - 0.5) / x
                sums[j, 0] += w * (q[label[e]] - right) * easiness
                sums[j, 1] += w * bound * easiness * easiness
                sums[j, 2] += w * right
    return total


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
    """See :func:`wisecrowd.kinds.classes.kernels.glad.difficulty_values`."""
    values = np.empty(len(log_easiness))
    _difficulty_step(indptr, worker, label, weight, ability, log_class, prior_rows, prior_index,
                     log_easiness.copy(), 0.0, 0.0, 0, NO_ROWS, NOTHING, NO_ROWS,
                     values)  # fmt: skip
    return values


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
    """See :func:`wisecrowd.kinds.classes.kernels.glad.difficulty_step`."""
    return float(
        _difficulty_step(indptr, worker, label, weight, ability, log_class, prior_rows, prior_index,
                         log_easiness, center, precision, n_steps,
                         NO_ROWS if sums is None else sums,
                         NOTHING if mass is None else mass,
                         NO_ROWS if probas is None else probas, NOTHING)
    )  # fmt: skip
