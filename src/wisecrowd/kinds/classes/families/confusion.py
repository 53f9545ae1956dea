r"""What methods with a confusion matrix per worker share: starts, runs, results, predictions.

.. math::
    z_i \sim Cat(\pi), \qquad y_{ij} \mid z_i = k \sim Cat(\theta_{jk\cdot})

The equations are those of :mod:`~wisecrowd.kinds.classes.methods.dawid_skene`; a method of the
family has a model of its own, usually a
:class:`~wisecrowd.kinds.classes.methods.dawid_skene.WorkerConfusionModel`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np

from wisecrowd.core.aggregator import Aggregator
from wisecrowd.core.memory_check import require_memory
from wisecrowd.core.parameter_checks import Flag, Limits
from wisecrowd.core.problem import Problem
from wisecrowd.core.result import Fit
from wisecrowd.core.saved_attributes import Saved, SavedArray
from wisecrowd.core.types import Floats
from wisecrowd.inference.engine import MemoryShards, Sink, posterior_of
from wisecrowd.inference.loop import LoopResult, best_of, first_params, iterate
from wisecrowd.kinds.classes.container import CrowdLabels
from wisecrowd.kinds.classes.families.class_prior import fixed_class_prior, known_class_prior
from wisecrowd.kinds.classes.families.posteriors import (
    Start,
    confusion_statistics,
    posterior_counts,
    random_start,
)
from wisecrowd.kinds.classes.shards import Shard

TINY = 1e-300  # a probability of zero, with a finite logarithm
RIVAL = 1.0  # difference of objectives, in nats, up to which two runs explain labels equally well
MOVED = 0.1  # share of labels on tasks of another class that makes two runs contradict each other


def safe_log(probabilities: Floats) -> Floats:
    """Return the logarithm, with zero replaced by 1e-300, so that it stays finite."""
    positive = np.maximum(probabilities, TINY)
    return np.log(positive, out=positive)


class ConfusionStats(NamedTuple):
    """Additive statistics of a pass: counts (J·K, K) by cell, class mass (K,), log-likelihood."""

    counts: Floats
    mass: Floats
    log_likelihood: float


class Evidence(NamedTuple):
    """Additive statistics of a pass that only fills posteriors."""

    log_likelihood: float


@dataclass(frozen=True, eq=False)
class ConfusionParams:
    """Worker and class parameters; ``table`` (J·K, K) is the log confusion, true class last."""

    table: Floats
    log_class: Floats
    log_prior: float
    extra: dict[str, Any]


@dataclass(frozen=True, eq=False, kw_only=True)
class KnownConfusion:
    """Steps of a model that need no update: its start, and the posterior under its parameters.

    Attributes
    ----------
    n_workers, n_classes : int
    fixed_class : (n_classes,) log class prior, or None where it is estimated
    """

    n_workers: int
    n_classes: int
    fixed_class: Floats | None
    hard: ClassVar[bool] = False  # whether the E-step takes the most probable class

    def begin(self, shard: Shard) -> Any:
        """Return None: a shard has no state."""
        return None

    def first(self, shard: Shard, state: Any, start: Start) -> tuple[Any, ConfusionStats]:
        """Return the expected counts of a starting posterior."""
        counts = np.zeros((self.n_workers * self.n_classes, self.n_classes))
        mass = np.zeros(self.n_classes)
        if shard.repeat is not None:
            q = start.posterior(shard, self.n_classes)
            return state, ConfusionStats(*posterior_counts(shard, q, len(counts)), 0.0)
        kernels = shard.kernels("confusion")
        if start.is_vote and not shard.prior_rows.any():
            kernels.add_vote_counts(
                shard.indptr, shard.label, shard.cell, shard.weight, counts, mass
            )
        else:
            q = start.posterior(shard, self.n_classes)
            kernels.add_counts(shard.indptr, shard.cell, shard.weight, q, counts)
            mass += q[shard.labelled].sum(axis=0)
        return state, ConfusionStats(counts, mass, 0.0)

    def answer(self, shard: Shard, state: Any, params: ConfusionParams) -> tuple[Floats, Evidence]:
        """Return the posteriors (n, K) of one shard and its log-likelihood.

        Always the soft posterior, even for methods that take hard steps.
        """
        probas = np.empty((shard.n_tasks, len(params.log_class)))
        value = shard.kernels("confusion").confusion_step(
            shard.indptr, shard.cell, shard.weight, params.table, params.log_class,
            shard.prior_rows, shard.prior_index, None, None, probas, False,
        )  # fmt: skip
        return probas, Evidence(value)


class ConfusionEM(Aggregator):
    """Methods that iterate over confusion matrices; a subclass says with which model.

    Parameters
    ----------
    class_prior : "auto", "estimate", "uniform" or (n_classes,) probabilities
        "auto" estimates the class frequencies unless a task prior is given, or fewer than a tenth
        of the tasks have labels by two workers; they are then equal.
    max_iter, tol : int, float
        Maximum number of passes over the annotations; relative gain that counts as converged.
    n_init : int
        Number of starts: the given one or the soft vote, then random ones; the best objective wins.
    accelerate : bool
        Extrapolate slow runs (SQUAREM). An extrapolation that lowers the objective is rejected,
        and counts as a pass.
    random_state : int, Generator or None
    """

    class_prior: Any = "auto"
    max_iter: int = 100
    tol: float = 1e-6
    n_init: int = 1
    accelerate: bool = False
    random_state: Any = 0

    _trial: ClassVar[int | None] = None  # passes of each start before only the best continues

    saves: ClassVar[dict[str, Saved]] = {
        "class_prior_": SavedArray("K", "distribution"),
        "confusion_": SavedArray("J K K", "distribution"),
    }

    limits: ClassVar[Limits] = {"accelerate": Flag()}

    def _model(self, problem: Problem) -> Any:
        """Return the model of a fit."""
        raise TypeError(f"{type(self).__name__} must define _model.")

    def _shape(self, problem: Problem) -> dict[str, Any]:
        """Return the fields that every model has."""
        J, K = problem.data.n_workers, problem.data.n_classes
        fixed = fixed_class_prior(self.class_prior, problem.prior, K, problem.data)
        return {"n_workers": J, "n_classes": K, "fixed_class": fixed}

    # ------------------------------------------------------------------------------------- fit

    def _fit(self, problem: Problem) -> Fit:
        labels = problem.data
        probas, sink = posterior_of(labels)
        require_tables(labels, probas, type(self).__name__)
        model = self._model(problem)
        shards = problem.cut(labels.n_workers * labels.n_classes**2)
        best = self._climb(model, shards, problem, sink)
        if not best.answered:
            shards.collect(model, "answer", best.states, best.params, sink)
        return self._result(model, labels, best, probas)

    def _climb(self, model: Any, shards: MemoryShards, problem: Problem, sink: Sink) -> LoopResult:
        """Iterate from every start and return the run with the best objective."""
        return climb(
            model, shards, problem, sink, max_iter=self.max_iter, tol=self.tol,
            n_init=self.n_init, accelerate=self.accelerate, trial=self._trial,
            start_of=self._start, first=self._first,
        )  # fmt: skip

    def _start(self, problem: Problem, rng: np.random.Generator | None) -> Start:
        """Return the given start or the soft vote; with ``rng``, a random start."""
        return own_start(problem, rng)

    def _first(
        self, model: Any, shards: MemoryShards, start: Start
    ) -> tuple[ConfusionParams, list[Any]]:
        """Return the initial parameters and states of a run."""
        return first_params(model, shards, start)

    def _result(self, model: Any, labels: CrowdLabels, best: LoopResult, probas: Floats) -> Fit:
        return fit_of(best, probas, self._confusion_of(best.params))

    def _confusion_of(self, params: ConfusionParams) -> Floats:
        """Return the (J, K, L) confusion matrices to publish; rows sum to one."""
        return np.exp(as_confusion(params.table))

    # --------------------------------------------------------------------------------- predict

    def _predict(self, problem: Problem) -> Floats:
        log_class = known_class_prior(self.class_prior, problem.prior, self.class_prior_)
        return self._known(problem, self._known_log_confusion(), log_class)[0]

    def _log_likelihood(self, problem: Problem) -> float:
        log_class = known_class_prior(self.class_prior, problem.prior, self.class_prior_)
        return self._known(problem, safe_log(self.confusion_), log_class)[1]

    def _known(
        self, problem: Problem, log_confusion: Floats, log_class: Floats
    ) -> tuple[Floats, float]:
        """Return posteriors and log-likelihood under known parameters."""
        return known_posterior(problem, log_confusion, log_class)

    def _known_log_confusion(self) -> Floats:
        """Return the fitted log confusion (J, K, L) for the E-step of new tasks."""
        return safe_log(self.confusion_)


# -------------------------------------------------------------------------------------------- runs


def require_tables(labels: CrowdLabels, probas: Any, name: str) -> None:
    """Refuse to start without memory for a confusion matrix per worker and the posterior."""
    J, K = labels.n_workers, labels.n_classes
    require_memory(
        8 * (4 * J * K * K + 2 * getattr(probas, "size", 0)),
        f"{name} with {J} workers and {K} classes would",
        "use one-coin or majority-vote, which need a few bytes per annotation",
    )


def own_start(problem: Problem, rng: np.random.Generator | None) -> Start:
    """Return the given start or the soft vote; with ``rng``, a random start."""
    if rng is None:
        return Start(problem.start)
    return random_start(problem.data, problem.start, rng)


def climb(
    model: Any,
    shards: MemoryShards,
    problem: Problem,
    sink: Sink,
    *,
    max_iter: int,
    tol: float,
    n_init: int,
    accelerate: bool,
    trial: int | None = None,
    start_of: Callable[[Problem, np.random.Generator | None], Start] = own_start,
    first: Callable[[Any, MemoryShards, Start], tuple[Any, list[Any]]] = first_params,
) -> LoopResult:
    """Iterate from every start and return the run with the best objective.

    With several starts, each has ``trial`` passes before only the best continues.
    """
    several = n_init > 1
    trial = min(max_iter if trial is None or not several else trial, max_iter)
    loop: dict[str, Any] = {"tol": tol, "accelerate": accelerate}
    if shards.keeps_states and not (model.hard or several):
        loop["sink"] = sink

    def attempt(number: int) -> LoopResult:
        start = start_of(problem, problem.rng if number > 0 else None)
        params, states = first(model, shards, start)
        return iterate(model, shards, params, states, max_iter=trial, **loop)

    own = attempt(0)
    best = best_of(lambda number: attempt(number) if number else own, n_init)

    def challenge() -> LoopResult:
        other = with_other_names(best.params, model.n_classes)
        return iterate(model, shards, other, best.states, max_iter=trial, **loop)

    best = unless_contested(own, best, challenge, model.n_classes)
    if best.converged or trial == max_iter:
        return best
    return iterate(model, shards, None, (), max_iter=max_iter, after=best, **loop)


def fit_of(best: LoopResult, probas: Floats, confusion: Floats) -> Fit:
    """Return the fit of a run: its class prior, (J, K, L) confusion matrices and accuracies."""
    class_prior = np.exp(best.params.log_class)
    class_prior = class_prior / class_prior.sum()
    return Fit(
        probas,
        accuracy_of(confusion, class_prior),
        class_prior=class_prior,
        confusion=confusion,
        n_iter=best.n_iter,
        converged=best.converged,
        history=best.history,
        extra=best.params.extra,
    )


def unless_contested(
    first: LoopResult, best: LoopResult, challenge: Callable[[], LoopResult], n_classes: int
) -> LoopResult:
    """Return the best run, or the first if chance decided between the best and its rival.

    Two workers who contradict each other everywhere are explained by either being right. A random
    start takes a side, and the side that it takes means nothing. The best run is therefore
    challenged by a run that starts with its classes renamed. If that explains the labels as well
    and gives other answers, the run of the first start counts, which leaves ties as they are.
    """
    if n_classes < 2 or not _contradict(first, best, n_classes):
        return best
    rival = challenge()
    tied = rival.objective >= best.objective - RIVAL and _contradict(rival, best, n_classes)
    return first if tied else best


def _contradict(one: LoopResult, other: LoopResult, n_classes: int) -> bool:
    """Return whether two runs place more than a tenth of the labels on tasks of other classes."""
    if one is other:
        return False
    counts = [run.stats.counts.reshape(-1, n_classes, run.stats.counts.shape[1] // n_classes)
              .sum(axis=2) for run in (one, other)]  # fmt: skip
    moved = 0.5 * float(np.abs(counts[0] - counts[1]).sum())
    return moved > MOVED * float(counts[0].sum())


def with_other_names(params: ConfusionParams, n_classes: int) -> ConfusionParams:
    """Return parameters under which every class has the name of the next; subtypes go along."""
    table, log_class = params.table, params.log_class
    step = table.shape[1] // n_classes
    return replace(params, table=np.roll(table, step, axis=1), log_class=np.roll(log_class, step))


# ------------------------------------------------------------------------------------------ tables


def repeated_rows_step(shard: Shard, params: ConfusionParams, hard: bool) -> ConfusionStats:
    """Return the statistics of a shard whose rows stand for several tasks each."""
    return ConfusionStats(*confusion_statistics(shard, params.table, params.log_class, hard))


def as_table(log_confusion: Floats) -> Floats:
    """Move the true class last: (J, K, L) → (J·L, K), contiguous."""
    n_classes = log_confusion.shape[1]
    return np.ascontiguousarray(log_confusion.transpose(0, 2, 1)).reshape(-1, n_classes)


def as_confusion(table: Floats) -> Floats:
    """Move the true class second again: (J·L, K) → (J, K, L)."""
    n_classes = table.shape[1]
    return np.ascontiguousarray(table.reshape(-1, n_classes, n_classes).transpose(0, 2, 1))


def posterior(problem: Problem, table: Floats, log_class: Floats) -> tuple[Floats, float]:
    """Return the posterior (n_tasks, n_classes) under known parameters, and the log-likelihood."""
    K = len(log_class)
    model = KnownConfusion(n_workers=len(table) // K, n_classes=K, fixed_class=log_class)
    params = ConfusionParams(table, log_class, 0.0, {})
    shards, (probas, sink) = problem.cut(table.size), posterior_of(problem.data, K)
    evidence = shards.collect(model, "answer", shards.begin(model), params, sink)
    return probas, evidence.log_likelihood


def known_posterior(
    problem: Problem, log_confusion: Floats, log_class: Floats
) -> tuple[Floats, float]:
    """Return posteriors and log-likelihood under known parameters.

    One more worker than in ``log_confusion`` (J, K, K) is an unknown one, whose labels say nothing.
    """
    J, K = log_confusion.shape[:2]
    if problem.data.n_workers > J:
        log_confusion = np.concatenate([log_confusion, safe_log(np.full((1, K, K), 1 / K))])
    return posterior(problem, as_table(log_confusion), log_class)


def naive_bayes(problem: Problem, confusion: Floats, class_prior: Floats) -> Floats:
    """Return the posterior (n_tasks, n_classes) of new tasks under known confusion matrices.

    Workers that ``confusion`` (J, K, K) does not contain are unknown, and their labels are ignored.
    """
    return known_mixture(problem, confusion, class_prior)[0]


def known_mixture(problem: Problem, confusion: Floats, class_prior: Floats) -> tuple[Floats, float]:
    """Return the posterior of :func:`naive_bayes` and the log-likelihood."""
    labels = problem.data
    extra = max(labels.n_workers - len(confusion), 0)
    unknown = np.full((extra, *confusion.shape[1:]), 1 / labels.n_classes)
    table = as_table(safe_log(np.concatenate([confusion, unknown])))
    log_class = np.zeros(labels.n_classes) if problem.prior.given else safe_log(class_prior)
    return posterior(problem, table, log_class)


def accuracy_of(confusion: Floats, class_prior: Floats) -> Floats:
    r"""Return the worker accuracy (n_workers,) :math:`\sum_k \pi_k \theta_{jkk}`."""
    diagonal = np.diagonal(confusion, axis1=1, axis2=2)  # (J, K)
    # Not a matrix product: BLAS would start threads for it.
    return np.asarray(np.einsum("jk,k->j", diagonal, class_prior))
