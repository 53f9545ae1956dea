r"""GLAD: worker abilities and task difficulties, estimated together.

.. math::
    p(y_{ij} = z_i) = \sigma(\alpha_j e^{b_i}), \quad \text{wrong labels spread evenly}, \qquad
    \alpha_j \sim N(\mu_a, s_a^2), \; b_i \sim N(\mu_b, s_b^2)

One pass moves every :math:`b_i` by a Newton step on the task's own log-likelihood, takes the E-step
there, and sums, per worker, the gradient and a curvature bound. The abilities then move by
:math:`\text{gradient} / \text{bound}`. The bound is that of Jaakkola and Jordan,
:math:`\log\sigma(x) \ge \log\sigma(\xi) + (x - \xi) / 2 - \lambda(\xi) (x^2 - \xi^2)` with
:math:`\lambda(\xi) = \tanh(\xi / 2) / (4 \xi)`, so this step cannot lower the objective either, and
no line search over the annotations is needed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import ModuleType
from typing import Any, ClassVar, NamedTuple

import numpy as np

from wisecrowd.core.aggregator import Aggregator, Tags
from wisecrowd.core.exceptions import ParameterError
from wisecrowd.core.footprint import Footprint
from wisecrowd.core.memory_check import require_memory
from wisecrowd.core.parameter_checks import Flag, Limits
from wisecrowd.core.problem import Problem
from wisecrowd.core.result import Fit
from wisecrowd.core.saved_attributes import Saved, SavedArray
from wisecrowd.core.types import Floats
from wisecrowd.inference.engine import MemoryShards, posterior_and_more, rows_into
from wisecrowd.inference.loop import LoopResult, best_of, first_params, iterate, squarem
from wisecrowd.kernels import kernels_for
from wisecrowd.kinds.classes.container import CrowdLabels
from wisecrowd.kinds.classes.families.class_prior import (
    fixed_class_prior,
    known_class_prior,
    log_shares,
)
from wisecrowd.kinds.classes.families.confusion import Evidence
from wisecrowd.kinds.classes.families.label_law import AbilityLaw
from wisecrowd.kinds.classes.families.posteriors import Start, random_start, worker_weights
from wisecrowd.kinds.classes.kernels.posteriors import sum_by
from wisecrowd.kinds.classes.shards import Shard

FARTHEST, WIDEST = 100, 1e6  # largest mean and standard deviation of a prior
STEPS_PER_PASS = 1  # Newton steps of the easiness; more do not pay while the abilities still move
SETTLING_STEPS = 30  # Newton steps of the easiness once the abilities are final
GRID = np.linspace(-4, 4, 9)  # starting points of the search for the best easiness, in prior sd
COMPILE_LATER = 5  # factor on the usual limit, because compiling these kernels takes seconds
NODES = 21  # nodes of the quadrature over the easiness of new tasks


class Normal(NamedTuple):
    """A normal prior; without a precision it is flat, with an infinite one it is a point mass."""

    mean: float
    precision: float

    def log_density(self, values: Floats) -> float:
        """Return the log density up to a constant, so that it is zero at the mean."""
        if not 0 < self.precision < np.inf:
            return 0.0
        return float(-0.5 * self.precision * ((values - self.mean) ** 2).sum())


class GLADStats(NamedTuple):
    """Additive statistics of one pass: worker sums (J, 3), class mass (K,), and two numbers."""

    sums: Floats
    mass: Floats
    log_likelihood: float
    log_prior: float  # of the easiness


@dataclass(frozen=True, eq=False)
class GLADParams:
    """Abilities (J,), log class prior (K,), and whether they are a rejectable extrapolation."""

    ability: Floats
    log_class: Floats
    extrapolated: bool = False


class StartStats(NamedTuple):
    """Additive statistics of a start: correct labels (J,), all labels (J,), class mass (K,)."""

    right: Floats
    total: Floats
    mass: Floats


class GLADState(NamedTuple):
    """Log easiness of a shard's tasks (n,), and the one before an extrapolation."""

    log_easiness: Floats
    before: Floats | None = None


@dataclass(frozen=True, eq=False)
class GLADModel:
    """Ability times easiness, fitted by generalised EM; the objective never decreases.

    Attributes
    ----------
    ability, easiness : Normal
        Priors of the abilities and of the log easiness.
    n_workers, n_classes : int
    fixed_class : (n_classes,), optional
        Log class prior; None estimates it.
    """

    ability: Normal
    easiness: Normal
    n_workers: int
    n_classes: int
    fixed_class: Floats | None
    stateful: ClassVar[bool] = True  # the easiness of tasks moves from pass to pass

    def begin(self, shard: Shard) -> GLADState:
        """Return tasks of mean easiness."""
        return GLADState(np.full(shard.n_tasks, self.easiness.mean))

    def first(self, shard: Shard, state: GLADState, start: Start) -> tuple[GLADState, StartStats]:
        """Return the expected correct labels of a starting posterior."""
        q = start.posterior(shard, self.n_classes)
        task = np.repeat(np.arange(shard.n_tasks), np.diff(shard.indptr))
        weight = np.ones(len(task)) if shard.weight is None else shard.weight
        credit = weight * q[task, shard.label]
        return state, StartStats(
            sum_by(shard.worker, credit, self.n_workers),
            sum_by(shard.worker, weight, self.n_workers),
            q[shard.labelled].sum(axis=0),
        )

    def local_step(
        self, shard: Shard, state: GLADState, params: GLADParams
    ) -> tuple[GLADState, GLADStats]:
        """Improve the easiness of one shard and take its E-step."""
        start = state.log_easiness
        if state.before is not None:
            # The extrapolation may have been rejected: start from the easiness that fits better.
            now, before = (self._penalised(shard, params, b) for b in (start, state.before))
            start = np.where(before > now, state.before, start)
        moved, stats, _ = self._step(shard, params, start, STEPS_PER_PASS)
        return GLADState(moved, start if params.extrapolated and self._moves else None), stats

    def global_step(self, stats: GLADStats | StartStats, params: GLADParams | None) -> GLADParams:
        """Move the abilities by gradient over curvature bound, and update the class prior."""
        if isinstance(stats, StartStats):
            ability = self.abilities_from(stats.right, stats.total)
            return GLADParams(ability, self.class_update(stats.mass))
        assert params is not None
        prior = self.ability
        slope = stats.sums[:, 0] - prior.precision * (params.ability - prior.mean)
        bend = stats.sums[:, 1] + prior.precision
        moved = params.ability + slope / np.where(bend > 0, bend, 1.0)
        return GLADParams(moved, self.class_update(stats.mass))

    def objective(self, stats: GLADStats, params: GLADParams) -> float:
        """Return the log-likelihood plus the log priors of abilities and easiness."""
        return stats.log_likelihood + stats.log_prior + self.ability.log_density(params.ability)

    def extrapolate(
        self, first: GLADParams, second: GLADParams, third: GLADParams
    ) -> GLADParams | None:
        """Extrapolate abilities and log class prior by SQUAREM."""
        n_workers = len(first.ability)
        path = [np.concatenate([p.ability, p.log_class]) for p in (first, second, third)]
        if max(np.abs(x[n_workers:]).max() for x in path) > 100:
            return None  # a class has almost no weight: do not extrapolate its logarithm
        moved = squarem(*path)
        if moved is None or not np.isfinite(moved).all():
            return None
        log_class = moved[n_workers:]
        if self.fixed_class is None:
            log_class = log_class - np.logaddexp.reduce(log_class)
        return GLADParams(moved[:n_workers], log_class, extrapolated=True)

    def at_prior_mean(self) -> GLADParams:
        """Return workers of mean ability, and equal classes."""
        ability = np.full(self.n_workers, self.ability.mean)
        return GLADParams(ability, self.class_update(np.ones(self.n_classes)))

    def class_update(self, mass: Floats) -> Floats:
        """Return the fixed log class prior, or the estimated one."""
        return log_shares(mass) if self.fixed_class is None else self.fixed_class

    def abilities_from(self, right: Floats, total: Floats) -> Floats:
        """Return abilities (J,) from expected correct and total labels, at mean easiness."""
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

    def answer(
        self, shard: Shard, state: Any, params: GLADParams
    ) -> tuple[tuple[Floats, Floats], GLADStats]:
        """Return the best log easiness (n,) and the posterior there (n, K).

        The result depends only on labels and parameters, not on the path to them, so that
        prediction repeats the fit.
        """
        start = np.full(shard.n_tasks, self.easiness.mean)
        if self._moves:
            best = np.full(shard.n_tasks, -np.inf)
            scale = 1 / np.sqrt(self.easiness.precision)
            for place in self.easiness.mean + scale * GRID:
                tried = np.full(shard.n_tasks, place)
                value = self._penalised(shard, params, tried)
                start = np.where(value > best, tried, start)
                best = np.maximum(value, best)
        moved, stats, q = self._step(shard, params, start, SETTLING_STEPS)
        return (moved, q), stats

    def integrate(self, shard: Shard, state: Any, params: GLADParams) -> tuple[Any, Evidence]:
        """Return the log-likelihood of new tasks, their easiness integrated over its prior."""
        nodes, weights = np.polynomial.hermite_e.hermegauss(NODES)
        scale = 1 / np.sqrt(self.easiness.precision)
        places, log_weights = self.easiness.mean + scale * nodes, np.log(weights / weights.sum())
        scores = np.full(shard.n_tasks, -np.inf)
        for place, log_weight in zip(places, log_weights, strict=True):
            values = self._values(shard, params, np.full(shard.n_tasks, place))
            scores = np.logaddexp(scores, values + log_weight)
        return state, Evidence(float(scores[shard.labelled].sum()))

    @property
    def _moves(self) -> bool:
        return self.easiness.precision < np.inf

    def _step(
        self, shard: Shard, params: GLADParams, start: Floats, n_steps: int
    ) -> tuple[Floats, GLADStats, Floats]:
        n_classes, moved = len(params.log_class), start.copy()
        sums, mass = np.zeros((len(params.ability), 3)), np.zeros(n_classes)
        probas = np.empty((shard.n_tasks, n_classes))
        precision = self.easiness.precision if self._moves else 0.0
        log_likelihood = _kernels(shard, params).difficulty_step(
            *_arguments(shard, params), moved, self.easiness.mean, precision,
            n_steps if self._moves else 0, sums, mass, probas,
        )  # fmt: skip
        log_prior = self.easiness.log_density(moved[shard.labelled])
        return moved, GLADStats(sums, mass, log_likelihood, log_prior), probas

    def _values(self, shard: Shard, params: GLADParams, log_easiness: Floats) -> Floats:
        values: Floats = _kernels(shard, params).difficulty_values(
            *_arguments(shard, params), log_easiness
        )
        return values

    def _penalised(self, shard: Shard, params: GLADParams, log_easiness: Floats) -> Floats:
        away = log_easiness - self.easiness.mean
        return self._values(shard, params, log_easiness) - 0.5 * self.easiness.precision * away**2


@dataclass(eq=False, repr=False, kw_only=True)
class GLAD(Aggregator):
    r"""One ability per worker and one difficulty per task; wrong labels are spread evenly.

    .. math::
        p(y_{ij} = z_i) = \sigma(\alpha_j \beta_i), \quad \beta_i = e^{b_i}, \qquad
        \alpha_j \sim N(1, 1), \; b_i \sim N(1, 1)

    Use it when tasks differ in difficulty and you want to know which are hard. Cost per iteration:
    O(annotations + tasks × classes), with a few exponentials per annotation.

    Parameters
    ----------
    prior : (mean, sd) or None
        Prior of the abilities :math:`\alpha_j`, which are negative for adversaries. None is flat.
    easiness_prior : (mean, sd)
        Prior of the log easiness :math:`b_i`. An sd of 0 fixes it: (0, 0) is the one-coin model
        with accuracies :math:`\sigma(\alpha_j)`.
    class_prior : "uniform", "auto", "estimate" or (n_classes,) probabilities
        "auto" estimates the class frequencies unless a task prior is given, or fewer than a tenth
        of the tasks have labels by two workers; they are then equal.
    max_iter, tol : int, float
        Maximum number of passes over the annotations; relative gain that counts as converged.
    n_init : int
        Number of starts: abilities at their prior mean (or from ``init``), then random ones; the
        best objective wins.
    accelerate : bool
        Extrapolate slow runs (SQUAREM). An extrapolation that lowers the objective is rejected,
        and counts as a pass.
    random_state : int, Generator or None

    Attributes
    ----------
    ability_ : (n_workers,)
        :math:`\alpha_j`.
    difficulty_ : (n_tasks,)
        :math:`1 / \beta_i`; 0 is a task that every worker of positive ability gets right.
    worker_accuracy_ : (n_workers,)
        Mean of :math:`\sigma(\alpha_j \beta_i)` over the worker's own tasks.
    class_prior_ : (n_classes,)

    Notes
    -----
    The objective is the log-likelihood plus the log densities of abilities and easiness, zero at
    their means; it never decreases. The paper runs a gradient method inside each M-step. Here every
    pass takes one Newton step per task and one bounded step per worker, which never lower it.

    The easiness of a task is a function of its labels and the abilities: its optimum is found at
    the end of the fit, and in the same way for new tasks. Labels by workers unknown to the fit are
    ignored. ``score`` without truth integrates over the easiness.

    As in the paper, the classes are equally probable by default: with estimated frequencies, a rare
    class is easily mistaken for a set of hard tasks.

    References
    ----------
    J. Whitehill, P. Ruvolo, T. Wu, J. Bergsma and J. Movellan (2009). Whose vote should count more:
    optimal integration of labels from labelers of unknown expertise. NeurIPS 22, 2035-2043.

    Examples
    --------
    >>> from wisecrowd.kinds.classes.container import CrowdLabels
    >>> votes = [[0, 0, 0, 0], [1, 1, 1, 1], [0, 0, 0, 1], [1, 1, 1, 1], [1, 0, 1, 0]]
    >>> model = GLAD().fit(CrowdLabels.from_matrix(votes))
    >>> model.labels_[:4]
    array([0, 1, 0, 1])
    >>> model.difficulty_.argmax()  # on the last task they are divided
    np.int64(4)
    """

    prior: Any = (1.0, 1.0)
    easiness_prior: Any = (1.0, 1.0)
    class_prior: Any = "uniform"
    max_iter: int = 100
    tol: float = 1e-6
    n_init: int = 1
    accelerate: bool = True
    random_state: Any = 0

    saves: ClassVar[dict[str, Saved]] = {
        "ability_": SavedArray("J"),
        "difficulty_": SavedArray("N", "positive"),
        "class_prior_": SavedArray("K", "distribution"),
    }
    promises: ClassVar[Tags] = Tags(
        monotone=True,
        inductive=True,
        likelihood=True,
        online=True,
        shardable=True,
        repeatable=False,
    )
    footprint = Footprint(label=31.8, cell=17.0)
    limits: ClassVar[Limits] = {"accelerate": Flag()}

    def _validate_parameters(self) -> None:
        super()._validate_parameters()
        self._priors()

    def _priors(self) -> tuple[Normal, Normal]:
        ability = Normal(1.0, 0.0) if self.prior is None else _as_normal("prior", self.prior)
        if ability.precision == np.inf:
            raise ParameterError("prior has a standard deviation of 0; give a positive one.")
        return ability, _as_normal("easiness_prior", self.easiness_prior)

    # ------------------------------------------------------------------------------------- fit

    def _fit(self, problem: Problem) -> Fit:
        labels = problem.data
        J, K = labels.n_workers, labels.n_classes
        probas, sink, log_easiness = posterior_and_more(labels)
        require_memory(
            8 * 6 * getattr(probas, "size", 0),
            f"GLAD with {labels.n_tasks} tasks and {K} classes would",
            "use one-coin or majority-vote, which need a few bytes per annotation",
        )
        fixed = fixed_class_prior(self.class_prior, problem.prior, K, labels)
        model = GLADModel(*self._priors(), J, K, fixed)
        shards = problem.cut(3 * J)

        def attempt(number: int) -> LoopResult:
            if number > 0:
                start = random_start(labels, problem.start, problem.rng)
                params, states = first_params(model, shards, start)
            elif problem.start is not None:
                params, states = first_params(model, shards, Start(problem.start))
            else:
                params, states = model.at_prior_mean(), shards.begin(model)
            return iterate(
                model, shards, params, states,
                max_iter=self.max_iter, tol=self.tol, accelerate=self.accelerate,
            )  # fmt: skip

        best = best_of(attempt, self.n_init)
        stats = shards.collect(model, "answer", best.states, best.params, sink)
        history = (*best.history[:-1], model.objective(stats, best.params))
        best = replace(best, stats=stats, history=history)
        return self._result(labels, best, log_easiness, probas)

    def _result(
        self, labels: CrowdLabels, best: LoopResult, log_easiness: Floats | None, probas: Any
    ) -> Fit:
        params: GLADParams = best.params
        stats: GLADStats = best.stats
        total = worker_weights(labels)
        typical = _sigmoid(params.ability * np.exp(self._priors()[1].mean))
        accuracy = np.where(total > 0, stats.sums[:, 2] / np.where(total > 0, total, 1), typical)
        class_prior = np.exp(params.log_class)
        of_tasks = {} if log_easiness is None else {"difficulty": np.exp(-log_easiness)}
        return Fit(
            probas,
            accuracy,
            class_prior=class_prior / class_prior.sum(),
            n_iter=best.n_iter,
            converged=best.converged,
            history=best.history,
            extra={"ability": params.ability} | of_tasks,
        )

    # --------------------------------------------------------------------------------- predict

    def _predict(self, problem: Problem) -> Floats:
        labels = problem.data
        model, shards, params = self._known_model(problem)
        easiness, probas = np.empty(labels.n_tasks), np.empty((labels.n_tasks, labels.n_classes))
        shards.collect(model, "answer", shards.begin(model), params, rows_into(easiness, probas))
        return probas

    def _log_likelihood(self, problem: Problem) -> float:
        labels = problem.data
        model, shards, params = self._known_model(problem)
        unknown = labels.worker >= len(self.ability_)
        weight = unknown if labels.weight is None else labels.weight[unknown]
        guessed = float(weight.sum() * np.log(labels.n_classes))
        _, evidence = shards.map_reduce(model, "integrate", shards.begin(model), params)
        return float(evidence.log_likelihood - guessed)

    def _known_model(self, problem: Problem) -> tuple[GLADModel, MemoryShards, GLADParams]:
        labels = problem.data
        log_class = known_class_prior(self.class_prior, problem.prior, self.class_prior_)
        # No ability makes a label uninformative at every easiness: drop those of unknown workers.
        known = labels.worker < len(self.ability_)
        if not known.all():
            problem = replace(problem, data=labels.select_annotations(known))
        model = GLADModel(*self._priors(), labels.n_workers, labels.n_classes, log_class)
        return model, problem.cut(3 * labels.n_workers), GLADParams(self.ability_, log_class)

    def _label_law(self) -> AbilityLaw:
        """Return the label law at the fitted easiness; for new tasks, integrated over its prior."""
        mean, precision = self._priors()[1]
        nodes, weights = np.polynomial.hermite_e.hermegauss(NODES)
        easiness = np.exp(mean + nodes / np.sqrt(precision))
        accuracy = _sigmoid(np.outer(self.ability_, easiness)) @ (weights / weights.sum())
        return AbilityLaw(self.class_prior_, accuracy, self.ability_, 1 / self.difficulty_)


def _kernels(shard: Shard, params: GLADParams) -> ModuleType:
    # The choice depends on annotations × classes, the table size of the reference.
    return kernels_for("glad", shard.work * len(params.log_class) // 2 // COMPILE_LATER)


def _arguments(shard: Shard, params: GLADParams) -> tuple[Any, ...]:
    return (
        shard.indptr, shard.worker, shard.label, shard.weight, params.ability, params.log_class,
        shard.prior_rows, shard.prior_index,
    )  # fmt: skip


def _as_normal(name: str, value: Any) -> Normal:
    """Return a normal prior from a pair (mean, sd)."""
    try:
        mean, sd = (float(number) for number in value)
    except (TypeError, ValueError, OverflowError):
        mean = sd = np.nan
    # exp(700) overflows; 1 / sd² must not.
    if not -FARTHEST <= mean <= FARTHEST or not (sd == 0 or 1 / WIDEST <= sd <= WIDEST):
        raise ParameterError(
            f"{name} is {value!r}; give a pair of finite numbers: a mean between -{FARTHEST} and "
            f"{FARTHEST} and a standard deviation of 0 or between {1 / WIDEST:g} and {WIDEST:g}."
        )
    return Normal(mean, 1 / sd**2 if sd > 0 else np.inf)


def _sigmoid(x: Floats) -> Floats:
    # tanh does not overflow where exp(-x) would.
    return np.asarray(0.5 * (1 + np.tanh(0.5 * x)))
