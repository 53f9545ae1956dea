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
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from wisecrowd.inference.engine import MemoryShards, Sink
from wisecrowd.inference.monitor import Progress, current_listener

if TYPE_CHECKING:
    from wisecrowd.kinds.classes.families.posteriors import Start
    from wisecrowd.kinds.classes.shards import Shard

LONGEST_STEP = 16.0  # longer extrapolations are rarely accepted and amplify rounding errors
TINY = 1e-300  # keeps divisors above zero
DRAW = 1e-12  # relative difference of objectives that counts as rounding
FREE_PASSES = 8  # passes within which most crowds converge; after these the tolerance shrinks
PER_GAIN = 2.0  # plain passes that an extrapolation replaces, per gain of the pass before it


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
    """Final parameters of a run, their statistics and states, and how the run ended.

    ``n_iter`` counts passes over the annotations, including rejected extrapolations. ``history``
    has one value per pass; a rejected extrapolation repeats the value before it.
    """

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


class Pace:
    """Gains of the latest passes of a run, which decide when to extrapolate and when to stop.

    Attributes
    ----------
    passes : float
        Passes so far. An accepted extrapolation counts as the plain passes that it replaces, so
        that the tolerance of an accelerated run shrinks as it would without acceleration.
    gain, gain_before : float
        Gains of the latest pass and of the pass before it.
    """

    def __init__(self, tol: float, passes: int) -> None:
        self.tol, self.passes = tol, float(passes)
        self.gain = self.gain_before = np.inf
        self._least = 0.0  # gain that counts as converged
        self._jumps = (False, False)  # whether these two passes were extrapolations

    def note(self, gain: float, size: float, jumped: bool) -> None:
        """Note the gain of an accepted pass; ``size`` is the absolute value of the objective."""
        self.passes += 1.0
        if jumped and self.gain > 0:
            self.passes += PER_GAIN * min(gain / self.gain, LONGEST_STEP)
        self.gain, self.gain_before = gain, self.gain
        self._jumps = (jumped, self._jumps[0])
        self._least = self.tol * min(1.0, FREE_PASSES / self.passes) ** 2 * max(1.0, size)

    @property
    def converged(self) -> bool:
        """Whether the gain is small; next to an extrapolation, the gains of two passes."""
        return bool(max(self.gain, self.gain_before if any(self._jumps) else 0.0) <= self._least)

    @property
    def is_ending(self) -> bool:
        """Whether the next pass is expected to be the last."""
        return bool(self._expected(1) <= self._least)

    @property
    def is_slow(self) -> bool:
        """Whether three more plain passes are expected, or an extrapolation was just accepted."""
        if not np.isfinite(self.gain_before):
            return False
        return self._jumps[1] or bool(self._expected(2) > self._least)

    def _expected(self, ahead: int) -> float:
        """Return the gain expected ``ahead`` passes later, if the gains keep their ratio."""
        if self._jumps[1] or not np.isfinite(self.gain_before):
            return self.gain  # the ratio to an extrapolation is not a rate
        return self.gain * min(self.gain / max(self.gain_before, TINY), 1.0) ** ahead


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

    ``sink`` takes the rows of passes that are permitted or expected to be the last, which are then
    a ``last_step``; models with states cannot use it. If the last pass was one, the result is
    marked as ``answered`` and needs no extra pass for the posteriors.

    With ``accelerate``, a run that converges slowly tries an extrapolation (SQUAREM) every other
    pass. If its objective is lower than the best so far, the next pass is at the plain iterate, so
    the history never decreases. A rejected extrapolation counts as a pass.
    """
    history: list[float] = []
    path: list[Any] = []  # the iterates since the last extrapolation, at most two
    fallback: Any = None
    listener = current_listener()
    if after is not None:
        history, states = list(after.history), after.states
        params = model.global_step(after.stats, after.params)
    pace, converged = Pace(tol, len(history)), False
    for iteration in range(len(history) + 1, max_iter + 1):
        answered = sink is not None and (iteration == max_iter or pace.is_ending)
        if sink is not None and answered:
            stats = shards.collect(model, "last_step", states, params, sink)
        else:
            states, stats = shards.map_reduce(model, "local_step", states, params)
        value = model.objective(stats, params)
        jumped = fallback is not None
        rejected = jumped and not value >= history[-1]
        history.append(history[-1] if rejected else value)
        if listener is not None:
            listener(Progress(iteration, max_iter, history[-1]))
        if rejected:
            params, fallback = fallback, None
            continue
        fallback = None
        pace.note(abs(value - history[-2]) if len(history) > 1 else np.inf, abs(value), jumped)
        converged = pace.converged if settled is None else settled(stats, params)
        if converged or iteration == max_iter:
            break
        path = [*path[-1:], params]
        params = model.global_step(stats, params)
        # A rejected extrapolation needs another pass.
        if accelerate and len(path) == 2 and pace.is_slow and iteration + 2 <= max_iter:
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
    # Not np.linalg.norm: BLAS would start threads that go on spinning after the call.
    norm_r, norm_v = float(np.sqrt(np.square(r).sum())), float(np.sqrt(np.square(v).sum()))
    if norm_v == 0 or norm_r <= norm_v:
        return None
    alpha = -min(norm_r / norm_v, LONGEST_STEP)
    return np.asarray(first - 2 * alpha * r + alpha**2 * v)
