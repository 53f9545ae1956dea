r"""Abilities of workers times easiness of tasks, by a generalised EM whose every move climbs.

.. math::
    p(y_{ij} = z_i) = \sigma(\alpha_j e^{b_i}), \quad \text{wrong labels spread evenly}, \qquad
    \alpha_j \sim N(\mu_a, s_a^2), \; b_i \sim N(\mu_b, s_b^2)

One pass moves every :math:`b_i` by a Newton step on the task's own log-likelihood, takes the E-step
there, and collects, per worker, the gradient and a curvature bound. The abilities then move by
:math:`\text{gradient} / \text{bound}`. The bound is that of Jaakkola and Jordan,
:math:`\log\sigma(x) \ge \log\sigma(\xi) + (x - \xi) / 2 - \lambda(\xi) (x^2 - \xi^2)` with
:math:`\lambda(\xi) = \tanh(\xi / 2) / (4 \xi)`, so this step cannot lose either, and no line search
over the annotations is needed.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wisecrowd.engines.memory import Block, MemoryShards
from wisecrowd.inference.class_prior import log_shares
from wisecrowd.inference.loop import squarem
from wisecrowd.kernels import kernels_for

Floats = NDArray[np.float64]
STEPS_PER_PASS = 1  # of the easiness; more would wait for abilities that are still moving
SETTLING_STEPS = 30  # of the easiness once the abilities stand
GRID = np.linspace(-4, 4, 9)  # where the search for the best easiness starts, in prior sd
COMPILE_LATER = 5  # times as many annotations as elsewhere: compiling these kernels takes seconds
NODES = 21  # of the quadrature over the easiness of new tasks


class Normal(NamedTuple):
    """A normal prior; without a precision it is flat, and with an infinite one it is a point."""

    mean: float
    precision: float

    def log_density(self, values: Floats) -> float:
        """Return the log density up to a constant, so that it is zero at the mean."""
        if not 0 < self.precision < np.inf:
            return 0.0
        return float(-0.5 * self.precision * ((values - self.mean) ** 2).sum())


class Stats(NamedTuple):
    """Additive statistics of one pass: worker sums (J, 3), class mass (K,), and two numbers."""

    sums: Floats
    mass: Floats
    log_likelihood: float
    log_prior: float  # of the easiness


@dataclass(frozen=True, eq=False)
class Params:
    """Abilities (J,) and log class prior (K,); whether they are a guess that may be taken back."""

    ability: Floats
    log_class: Floats
    extrapolated: bool = False


class State(NamedTuple):
    """Log easiness of a block's tasks (n,), and the one before a guess at the parameters."""

    log_easiness: Floats
    before: Floats | None = None


@dataclass(frozen=True, eq=False)
class AbilityDifficulty:
    """The inference contract of ability times easiness.

    Attributes
    ----------
    ability, easiness : Normal
        Priors of the abilities and of the log easiness.
    fixed_class : (n_classes,), optional
        Log class prior; None estimates it.
    """

    ability: Normal
    easiness: Normal
    fixed_class: Floats | None

    # -------------------------------------------------------------------------- inference contract

    def local_step(self, block: Block, state: Any, params: Params) -> tuple[State, Stats]:
        """Improve the easiness of one block and take its E-step."""
        if state is None:
            state = State(np.full(block.n_tasks, self.easiness.mean))
        start = state.log_easiness
        if state.before is not None:
            # The guess may have been taken back: start from what suits these parameters better.
            now, before = (self._penalised(block, params, b) for b in (start, state.before))
            start = np.where(before > now, state.before, start)
        moved, stats, _ = self._step(block, params, start, STEPS_PER_PASS)
        return State(moved, start if params.extrapolated and self._moves else None), stats

    def global_step(self, stats: Stats, params: Params) -> Params:
        """Move the abilities by gradient over curvature bound, and count the classes."""
        prior = self.ability
        slope = stats.sums[:, 0] - prior.precision * (params.ability - prior.mean)
        bend = stats.sums[:, 1] + prior.precision
        moved = params.ability + slope / np.where(bend > 0, bend, 1.0)
        return Params(moved, self.class_update(stats.mass))

    def objective(self, stats: Stats, params: Params) -> float:
        """Log-likelihood plus the log priors of abilities and easiness."""
        return stats.log_likelihood + stats.log_prior + self.ability.log_density(params.ability)

    def extrapolate(self, first: Params, second: Params, third: Params) -> Params | None:
        """Extrapolate abilities and log class prior by SQUAREM."""
        n_workers = len(first.ability)
        path = [np.concatenate([p.ability, p.log_class]) for p in (first, second, third)]
        if max(np.abs(x[n_workers:]).max() for x in path) > 100:
            return None  # a class of practically no weight: the log domain no longer extrapolates
        moved = squarem(*path)
        if moved is None or not np.isfinite(moved).all():
            return None
        log_class = moved[n_workers:]
        if self.fixed_class is None:
            log_class = log_class - np.logaddexp.reduce(log_class)
        return Params(moved[:n_workers], log_class, extrapolated=True)

    def class_update(self, mass: Floats) -> Floats:
        """Return the fixed log class prior, or the estimated one."""
        return log_shares(mass) if self.fixed_class is None else self.fixed_class

    # --------------------------------------------------------------------------- given abilities

    def abilities_from(self, right: Floats, total: Floats) -> Floats:
        """Return abilities (J,) from expected correct and all labels, on tasks of mean easiness."""
        prior, easiness = self.ability, float(np.exp(self.easiness.mean))
        ability = np.full(len(right), prior.mean)
        for _ in range(20):  # the same bound as above, on two numbers per worker
            x = easiness * ability
            bound = 0.25 * np.ones_like(x)
            np.divide(np.tanh(x / 2), 2 * x, out=bound, where=np.abs(x) > 1e-4)
            slope = easiness * (right - total * 0.5 * (1 + np.tanh(x / 2)))
            slope -= prior.precision * (ability - prior.mean)
            bend = easiness**2 * total * bound + prior.precision
            ability = ability + slope / np.where(bend > 0, bend, 1.0)
        return ability

    def settle(self, engine: MemoryShards, params: Params) -> tuple[Floats, Floats, Stats]:
        """Return the best log easiness (n_tasks,), the posterior there (n_tasks, K) and the stats.

        A function of labels and parameters alone, whatever path led to them: this makes prediction
        repeat the fit.
        """
        log_easiness = np.empty(engine.n_tasks)
        probas = np.empty((engine.n_tasks, len(params.log_class)))

        def settle_block(block: Block, state: None, params: Params) -> tuple[None, Stats]:
            start = np.full(block.n_tasks, self.easiness.mean)
            if self._moves:
                best = np.full(block.n_tasks, -np.inf)
                scale = 1 / np.sqrt(self.easiness.precision)
                for place in self.easiness.mean + scale * GRID:
                    tried = np.full(block.n_tasks, place)
                    value = self._penalised(block, params, tried)
                    start = np.where(value > best, tried, start)
                    best = np.maximum(value, best)
            moved, stats, q = self._step(block, params, start, SETTLING_STEPS)
            log_easiness[block.tasks], probas[block.tasks] = moved, q
            return None, stats

        _, stats = engine.map_reduce(settle_block, [None] * len(engine.shards()), params)
        return log_easiness, probas, stats

    def log_likelihood(self, engine: MemoryShards, params: Params) -> float:
        """Return the log-likelihood of new tasks, their easiness integrated over its prior."""
        nodes, weights = np.polynomial.hermite_e.hermegauss(NODES)
        scale = 1 / np.sqrt(self.easiness.precision)
        places, log_weights = self.easiness.mean + scale * nodes, np.log(weights / weights.sum())
        total = 0.0
        for block in engine.shards():
            labelled = np.diff(block.indptr) > 0
            scores = np.full(block.n_tasks, -np.inf)
            for place, log_weight in zip(places, log_weights, strict=True):
                values = self._values(block, params, np.full(block.n_tasks, place))
                scores = np.logaddexp(scores, values + log_weight)
            total += float(scores[labelled].sum())
        return total

    # -------------------------------------------------------------------------------- kernel calls

    @property
    def _moves(self) -> bool:
        return self.easiness.precision < np.inf

    def _step(
        self, block: Block, params: Params, start: Floats, n_steps: int
    ) -> tuple[Floats, Stats, Floats]:
        n_classes, moved = len(params.log_class), start.copy()
        sums, mass = np.zeros((len(params.ability), 3)), np.zeros(n_classes)
        probas = np.empty((block.n_tasks, n_classes))
        precision = self.easiness.precision if self._moves else 0.0
        log_likelihood = _kernels(block, params).difficulty_step(
            *_arguments(block, params), moved, self.easiness.mean, precision,
            n_steps if self._moves else 0, sums, mass, probas,
        )  # fmt: skip
        log_prior = self.easiness.log_density(moved[np.diff(block.indptr) > 0])
        return moved, Stats(sums, mass, log_likelihood, log_prior), probas

    def _values(self, block: Block, params: Params, log_easiness: Floats) -> Floats:
        values: Floats = _kernels(block, params).difficulty_values(
            *_arguments(block, params), log_easiness
        )
        return values

    def _penalised(self, block: Block, params: Params, log_easiness: Floats) -> Floats:
        away = log_easiness - self.easiness.mean
        return self._values(block, params, log_easiness) - 0.5 * self.easiness.precision * away**2


def _kernels(block: Block, params: Params) -> ModuleType:
    # By annotations × classes: the reference makes tables of that size.
    return kernels_for("glad", block.work * len(params.log_class) // 2 // COMPILE_LATER)


def _arguments(block: Block, params: Params) -> tuple[Any, ...]:
    return (
        block.indptr, block.worker, block.label, block.weight, params.ability, params.log_class,
        block.prior_rows, block.prior_index,
    )  # fmt: skip
