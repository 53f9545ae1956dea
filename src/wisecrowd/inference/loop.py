"""The loop around local and global steps, for EM, variational Bayes and fixed-point methods.

A model is a frozen object without user parameters or results. It has the following steps, and does
not depend on iterations, tolerances, shards or threads::

    begin(shard)                      -> state            # initial state of a shard
    first(shard, state, start)        -> (state, stats)   # statistics of a starting posterior
    local_step(shard, state, params)  -> (state, stats)   # stats add up over shards of tasks
    global_step(stats, params)        -> params           # params is None at first
    objective(stats, params)          -> float            # the maximised function
    extrapolate(p0, p1, p2)           -> params or None   # for acceleration, optional
    answer(shard, state, params)      -> (rows, stats)    # results per task, at the end
    last_step(shard, state, params)   -> (rows, stats)    # answer and local_step in one, optional
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from wisecrowd.engines.memory import MemoryShards, Shard, Sink
from wisecrowd.inference.monitor import Progress, current_listener
from wisecrowd.inference.start_posterior import Start

LONGEST_STEP = 16.0  # longer extrapolations are rarely accepted and amplify rounding errors
DRAW = 1e-12  # relative difference of objectives that counts as rounding
FREE_PASSES = 8  # passes within which most crowds converge; after these the tolerance shrinks


class Model(Protocol):
    """The steps that the loop calls; the module docstring lists all steps of a model."""

    def local_step(self, shard: Shard, state: Any, params: Any) -> tuple[Any, Any]:
        """Update one shard of tasks and return its additive statistics."""

    def global_step(self, stats: Any, params: Any) -> Any:
        """Return new parameters from the summed statistics."""

    def objective(self, stats: Any, params: Any) -> float:
        """Return the objective at ``params``, from the statistics computed there."""

    def extrapolate(self, first: Any, second: Any, third: Any) -> Any | None:
        """Extrapolate the path of three iterates; return None if that is not possible."""


class StartingModel(Model, Protocol):
    """A model that starts from a posterior."""

    def first(self, shard: Shard, state: Any, start: Start) -> tuple[Any, Any]:
        """Return the statistics of a starting posterior."""


@dataclass(frozen=True, eq=False)
class LoopResult:
    """Final parameters of a run, their statistics and states, and how the run ended."""

    params: Any
    stats: Any
    states: list[Any]
    history: tuple[float, ...]
    n_iter: int
    converged: bool
    answered: bool = False

    @property
    def objective(self) -> float:
        """The objective at the final parameters."""
        return self.history[-1]


def first_params(model: StartingModel, shards: MemoryShards, start: Start) -> tuple[Any, list[Any]]:
    """Return the parameters implied by a starting posterior, and the first states."""
    states, stats = shards.map_reduce(model, "first", shards.begin(model), start)
    return model.global_step(stats, None), states


def iterate(
    model: Model,
    shards: MemoryShards,
    params: Any,
    states: Sequence[Any],
    *,
    max_iter: int,
    tol: float,
    accelerate: bool = False,
    settled: Callable[[Any, Any], bool] | None = None,
    after: LoopResult | None = None,
    sink: Sink | None = None,
) -> LoopResult:
    """Iterate from ``params`` until the objective's relative gain is at most ``tol``.

    Slow convergence hides the remaining gain, so after pass 8 the tolerance is
    ``tol * (8 / t)**2``.

    One iteration is one pass over the annotations. The objective of pass ``t`` belongs to the
    parameters of pass ``t``, which are also returned: the posterior under them is the fit.

    ``settled(stats, params)`` replaces the convergence test on the objective.

    ``after`` is a run that ``max_iter`` cut off. It continues, with its passes counted, to the
    result of an uninterrupted run; ``params`` and ``states`` are then not used.

    ``sink`` takes the rows of the last permitted pass, which is then a ``last_step``. The result is
    marked as ``answered`` and needs no extra pass for the posteriors.

    With ``accelerate``, every third pass tries an extrapolation (SQUAREM). If its objective is
    lower than the best so far, the loop falls back to the plain iterate, so the history never
    decreases.
    """
    history: list[float] = []
    path: list[Any] = []  # the iterates since the last extrapolation
    fallback: Any = None
    listener = current_listener()
    if after is not None:
        history, states = list(after.history), after.states
        params = model.global_step(after.stats, after.params)
    for iteration in range(len(history) + 1, max_iter + 1):
        answered = sink is not None and iteration == max_iter
        if sink is not None and answered:
            stats = shards.collect(model, "last_step", states, params, sink)
        else:
            states, stats = shards.map_reduce(model, "local_step", states, params)
        value = model.objective(stats, params)
        if fallback is not None and not value >= history[-1]:
            params, fallback, path, answered = fallback, None, [], False  # overshot: go back
            states, stats = shards.map_reduce(model, "local_step", states, params)
            value = model.objective(stats, params)
        fallback = None
        history.append(value)
        if listener is not None:
            listener(Progress(iteration, max_iter, value))
        if settled is not None:
            converged = settled(stats, params)
        else:
            gain = abs(value - history[-2]) if len(history) > 1 else np.inf
            least = tol * min(1.0, FREE_PASSES / iteration) ** 2
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
    return LoopResult(params, stats, list(states), tuple(history), iteration, converged, answered)


def best_of(attempt: Callable[[int], LoopResult], n_init: int) -> LoopResult:
    """Run ``attempt(0)`` to ``attempt(n_init - 1)``; return the best, the first of a tie.

    Runs that end at the same optimum differ by rounding, which counts as a tie.
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

    Returns None if the step would not go beyond ``third``.
    """
    r = second - first
    v = third - second - r
    norm_r, norm_v = float(np.linalg.norm(r)), float(np.linalg.norm(v))
    if norm_v == 0 or norm_r <= norm_v:
        return None
    alpha = -min(norm_r / norm_v, LONGEST_STEP)
    return np.asarray(first - 2 * alpha * r + alpha**2 * v)
