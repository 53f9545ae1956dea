r"""Rank-one fit: a vector whose products approximate a value for each pair of workers.

.. math::
    \min_x f(x) = \tfrac12 \sum_{j<k} n_{jk} (v_{jk} - x_j x_k)^2
    \quad \text{s.t. } low \le x \le high
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from wisecrowd.families.moments.pair_moments import PairMoments
from wisecrowd.families.skill_vote import sum_by
from wisecrowd.inference.loop import squarem
from wisecrowd.inference.monitor import Progress, report

Floats = NDArray[np.float64]

LONGEST = 0.5  # a full step would make the length of the vector oscillate
SHORTEST = 2.0**-30  # shortest step that is tried


class RankOneFit(NamedTuple):
    """The vector (J,), the objective after each step, and whether it converged."""

    factor: Floats
    history: tuple[float, ...]
    converged: bool


def rank_one_fit(
    pairs: PairMoments,
    values: Floats,
    start: Floats,
    bounds: tuple[float, float],
    *,
    max_iter: int,
    tol: float,
) -> RankOneFit:
    """Minimise by projected gradient until no entry moves by more than ``tol``.

    The gradient is divided by the curvature along each entry, so that workers with few and with
    many labels converge equally fast. A step that lowers the objective makes the next one longer; a
    step that would raise it is halved. An extrapolation of every three points (SQUAREM) is used if
    its objective is lower, so the objective never rises.
    """
    i, k = pairs.first, pairs.second
    weight = pairs.n_shared / max(float(pairs.n_shared.sum()), 1e-300)

    def by_worker(of_first: Floats, of_second: Floats) -> Floats:
        return sum_by(i, of_first, len(start)) + sum_by(k, of_second, len(start))

    def at(x: Floats) -> _Iterate:
        off = x[i] * x[k] - values
        gradient = by_worker(weight * off * x[k], weight * off * x[i])
        curvature = by_worker(weight * x[k] ** 2, weight * x[i] ** 2)
        least = 1e-12 * max(float(curvature.max(initial=0.0)), 1e-300)
        misfit = 0.5 * float((weight * off**2).sum())
        return _Iterate(x, misfit, gradient / np.maximum(curvature, least))

    met = by_worker(weight, weight) > 0
    here = at(np.where(met, start, 0.0).clip(*bounds))
    history: list[float] = []
    path = [here.x]
    step, converged = LONGEST, False
    for number in range(1, max_iter + 1):
        step, there = _descend(at, here, step, bounds)
        converged = float(np.abs(there.x - here.x).max(initial=0.0)) <= tol
        here = there
        path.append(here.x)
        if len(path) == 3:
            further = squarem(*path)
            trial = None if further is None else at(further.clip(*bounds))
            here = trial if trial is not None and trial.value < here.value else here
            path = [here.x]
        history.append(here.value)
        report(Progress(number, max_iter, here.value))
        if converged:
            break
    return RankOneFit(here.x, tuple(history), converged)


class _Iterate(NamedTuple):
    """A vector, the objective there, and the gradient over the curvature."""

    x: Floats
    value: float
    slope: Floats


def _descend(
    at: Callable[[Floats], _Iterate], here: _Iterate, step: float, bounds: tuple[float, float]
) -> tuple[float, _Iterate]:
    """Return the next step's length, and a point that is not worse than ``here``."""
    while step > SHORTEST:
        there = at((here.x - step * here.slope).clip(*bounds))
        if there.value <= here.value:
            return min(2 * step, LONGEST), there
        step *= 0.5
    return step, here
