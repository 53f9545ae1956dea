"""The loop around local and global steps: EM, variational Bayes and fixed points alike.

A model brings four functions and knows nothing of iterations, tolerances or threads::

    local_step(block, state, params)  -> (state, stats)   # stats add up over blocks of tasks
    global_step(stats, params)        -> params           # on the driver
    objective(stats, params)          -> float            # what the iteration climbs
    extrapolate(p0, p1, p2)           -> params or None   # for acceleration, optional
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from wisecrowd.engines.memory import Block, MemoryShards
from wisecrowd.inference.monitor import Progress, report

LONGEST_STEP = 16.0  # longer extrapolations are seldom accepted, and magnify rounding errors
DRAW = 1e-12  # relative difference of objectives that is rounding
QUICK = 8  # passes within which usual crowds settle; whoever needs more must show smaller gains


class Model(Protocol):
    """The inference contract; see the module's text."""

    def local_step(self, block: Block, state: Any, params: Any) -> tuple[Any, Any]:
        """Update one block of tasks and return its additive statistics."""

    def global_step(self, stats: Any, params: Any) -> Any:
        """Return new worker parameters from the summed statistics."""

    def objective(self, stats: Any, params: Any) -> float:
        """Return what the iteration climbs, at ``params``, from the statistics taken there."""

    def extrapolate(self, first: Any, second: Any, third: Any) -> Any | None:
        """Return parameters further along the path of three iterates, or None if there are none."""


@dataclass(frozen=True, eq=False)
class Run:
    """Where a run ended: parameters, the statistics and block states taken at them, and how."""

    params: Any
    stats: Any
    states: list[Any]
    history: tuple[float, ...]
    n_iter: int
    converged: bool

    @property
    def objective(self) -> float:
        """The objective at the final parameters."""
        return self.history[-1]


def run(
    model: Model,
    engine: MemoryShards,
    params: Any,
    *,
    max_iter: int,
    tol: float,
    accelerate: bool = False,
    states: Sequence[Any] | None = None,
    last_states: Sequence[Any] | None = None,
    settled: Callable[[Any, Any], bool] | None = None,
    after: Run | None = None,
) -> Run:
    """Iterate from ``params`` until the objective's relative gain is at most ``tol``.

    A slow iteration has more before it than its last gain shows: after t passes about t times that
    gain, in several directions. From the eighth pass on the gain must be below ``tol * (8 / t)**2``
    therefore; most crowds have settled by then and pay nothing.

    One iteration is one pass over the annotations. The objective of pass ``t`` belongs to the
    parameters of pass ``t``, which are also the ones returned: the posterior under them is the fit.

    ``last_states`` are given to the last permitted pass in place of ``states``: a model may use
    them to write posteriors then and save itself a pass of their own.

    ``settled(stats, params)`` replaces the test on the objective where there is a better one.

    ``after`` is a run that ``max_iter`` cut off. It goes on, with its passes counted, to the result
    of a run that was not cut off; ``params`` is not used then.

    With ``accelerate`` every third pass tries an extrapolation (SQUAREM) and falls back to the
    plain iterate when the objective there is lower than what has been reached, so that the
    history still never decreases.
    """
    states = [None] * len(engine.shards()) if states is None else list(states)
    history: list[float] = []
    path: list[Any] = []  # the iterates since the last extrapolation
    fallback: Any = None
    if after is not None:
        history = list(after.history)
        params = model.global_step(after.stats, after.params)
    for iteration in range(len(history) + 1, max_iter + 1):
        if iteration == max_iter and last_states is not None:
            states = list(last_states)
        states, stats = engine.map_reduce(model.local_step, states, params)
        value = model.objective(stats, params)
        if fallback is not None and not value >= history[-1]:
            params, fallback, path = fallback, None, []  # the extrapolation overshot
            states, stats = engine.map_reduce(model.local_step, states, params)
            value = model.objective(stats, params)
        fallback = None
        history.append(value)
        report(Progress(iteration, max_iter, value))
        if settled is not None:
            converged = settled(stats, params)
        else:
            gain = abs(value - history[-2]) if len(history) > 1 else np.inf
            least = tol * min(1.0, QUICK / iteration) ** 2
            converged = bool(gain <= least * max(1.0, abs(value)))
        if converged or iteration == max_iter:
            break
        path.append(params)
        params = model.global_step(stats, params)
        if accelerate and len(path) == 2:
            further = model.extrapolate(path[0], path[1], params)
            path = []
            if further is not None:
                fallback, params = params, further
    return Run(params, stats, states, tuple(history), iteration, converged)


def best_of(attempt: Callable[[int], Run], n_init: int) -> Run:
    """Run ``attempt(0)`` to ``attempt(n_init - 1)``; return the best, the first in a draw.

    Runs that end at the same optimum differ by rounding, which is a draw.
    """
    best = attempt(0)
    for number in range(1, n_init):
        candidate = attempt(number)
        if candidate.objective - DRAW * abs(candidate.objective) > best.objective:
            best = candidate
    return best


def squarem(first: np.ndarray, second: np.ndarray, third: np.ndarray) -> np.ndarray | None:
    r"""Extrapolate a path of three iterates (Varadhan and Roland 2008, step length S3).

    .. math::
        r = x_1 - x_0, \; v = (x_2 - x_1) - r, \; \alpha = -\|r\| / \|v\|, \;
        x' = x_0 - 2 \alpha r + \alpha^2 v

    Returns None when the step would not go beyond ``third``.
    """
    r = second - first
    v = third - second - r
    norm_r, norm_v = float(np.linalg.norm(r)), float(np.linalg.norm(v))
    if norm_v == 0 or norm_r <= norm_v:
        return None
    alpha = -min(norm_r / norm_v, LONGEST_STEP)
    return np.asarray(first - 2 * alpha * r + alpha**2 * v)
