r"""One accuracy per worker, fitted by EM in O(annotations) per iteration for any number of classes.

.. math::
    z_i \sim Cat(\pi), \qquad p(y_{ij} = l \mid z_i = k) = p_j \;\text{if}\; l = k, \quad
    (1 - p_j) / (K - 1) \;\text{otherwise}
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.base import Aggregator
from wisecrowd.core.labels import CrowdLabels
from wisecrowd.core.memory import readable_bytes
from wisecrowd.core.parameters import check_flag
from wisecrowd.core.problem import Problem
from wisecrowd.core.result import FitResult
from wisecrowd.core.saved_attributes import Saved, SavedArray
from wisecrowd.engines.memory import Block, MemoryShards
from wisecrowd.families.confusion import safe_log
from wisecrowd.families.received import (
    Received,
    accuracy_error,
    mass_outside,
    posterior_matrix,
    received,
    row_totals,
    worker_weights,
)
from wisecrowd.inference.class_prior import fixed_class_prior, known_class_prior, log_shares
from wisecrowd.inference.initial import condition
from wisecrowd.inference.loop import Run, best_of, run, squarem
from wisecrowd.inference.priors import as_coin_prior

Floats = NDArray[np.float64]

CONFUSION_LIMIT = 10_000_000  # numbers; larger tables of confusion matrices are not written out


class Stats(NamedTuple):
    """Additive statistics of one pass: correct labels (J,), class mass (K,), sum of log Z."""

    correct: Floats
    mass: Floats
    log_z: float


@dataclass(frozen=True, eq=False)
class Params:
    """Accuracies (J,), their log-odds against one wrong class, log class prior (K,), row totals."""

    accuracy: Floats
    log_odds: Floats
    log_class: Floats
    totals: Floats


class OneCoinEM(Aggregator):
    """EM for one accuracy per worker; a method adds its defaults and where it starts.

    Parameters
    ----------
    prior : "weak", None, (a, b) or :class:`~wisecrowd.inference.priors.OneCoin`
        Pseudo-counts of correct and wrong labels; "weak" is (1, 0.5), None is maximum likelihood.
    class_prior : "auto", "estimate", "uniform" or (n_classes,) probabilities
        "auto" estimates the class frequencies unless a task prior is given.
    max_iter, tol : int, float
        Stop after so many passes, or when the objective gains less than ``tol`` times its size.
    n_init : int
        Number of starts: the method's own, then random accuracies; the best objective wins.
    accelerate : bool
        Extrapolate (SQUAREM) with a safeguard that keeps the objective from falling.
    random_state : int, Generator or None
    """

    prior: Any
    class_prior: Any = "auto"
    max_iter: int
    tol: float
    n_init: int
    accelerate: bool
    random_state: Any

    saves: ClassVar[dict[str, Saved]] = {
        "accuracy_": SavedArray("J", "probability"),
        "class_prior_": SavedArray("K", "distribution"),
    }

    def _validate_parameters(self) -> None:
        super()._validate_parameters()
        check_flag("accelerate", self.accelerate)
        self._coin = as_coin_prior(self.prior)

    # -------------------------------------------------------------------------- inference contract

    def local_step(self, block: Block, state: Received, params: Params) -> tuple[Received, Stats]:
        """E-step and expected correct labels of one block."""
        correct = np.zeros_like(params.accuracy)
        mass = np.zeros_like(params.log_class) if self._fixed_class is None else None
        log_z = block.kernels("sparse_posterior").coin_step(
            block.indptr, block.worker, block.weight, *state.pairs, params.log_odds,
            params.log_class, block.prior_rows, block.prior_index, params.totals,
            correct, mass, state.probas, state.rest,
        )  # fmt: skip
        if mass is None:
            return state, Stats(correct, np.zeros(0), log_z)
        mass += mass_outside(block, state, params.log_class, params.totals)
        return state, Stats(correct, mass, log_z)

    def global_step(self, stats: Stats, params: Params | None) -> Params:
        """M-step: MAP accuracies and class shares."""
        if self._fixed_class is None:
            log_class = log_shares(np.maximum(stats.mass, 0.0))  # rounding may leave -1e-17
            return self._params(self._accuracies(stats.correct), log_class)
        totals = None if params is None else params.totals
        return self._params(self._accuracies(stats.correct), self._fixed_class, totals)

    def objective(self, stats: Stats, params: Params) -> float:
        """Log-likelihood plus log prior density, both at ``params``."""
        value = stats.log_z + log_wrong(params.accuracy, len(params.log_class)) @ self._weights
        if len(params.log_class) == 1:
            return float(value)  # nothing can be wrong, and accuracies are no parameters
        right, wrong = safe_log(params.accuracy), safe_log(1 - params.accuracy)
        return float(value + self._coin.a * right.sum() + self._coin.b * wrong.sum())

    def extrapolate(self, first: Params, second: Params, third: Params) -> Params | None:
        """Extrapolate log-odds and log class prior; what is practically certain stays as it is."""
        path = [
            np.concatenate([safe_log(p.accuracy) - safe_log(1 - p.accuracy), p.log_class])
            for p in (first, second, third)
        ]
        free = np.max(np.abs(path), axis=0) < 100
        moved = squarem(*(x[free] for x in path))
        if moved is None or not np.isfinite(moved).all():
            return None
        path[2][free] = moved
        K = len(third.log_class)
        accuracy = 1 / (1 + np.exp(-path[2][:-K].clip(-700, 700)))
        if self._fixed_class is not None:
            return self._params(accuracy, self._fixed_class, third.totals)
        return self._params(accuracy, path[2][-K:] - np.logaddexp.reduce(path[2][-K:]))

    def _accuracies(self, correct: Floats) -> Floats:
        if self._n_classes == 1:
            return np.ones_like(correct)
        known = self._weights + self._coin.a + self._coin.b > 0
        found = self._coin.map_accuracy(correct, self._weights).clip(0.0, 1.0)
        return np.where(known, found, 1 / self._n_classes)

    def _params(self, accuracy: Floats, log_class: Floats, totals: Floats | None = None) -> Params:
        if totals is None:
            totals = row_totals(self._task_prior, log_class)
        return Params(accuracy, log_odds(accuracy, len(log_class)), log_class, totals)

    # ------------------------------------------------------------------------------------- fit

    def _fit(self, problem: Problem) -> FitResult:
        labels, prior, rng = problem.data, problem.prior, problem.rng
        engine, states = self._prepare(problem)
        self._fixed_class = fixed_class_prior(self.class_prior, prior, labels.n_classes)

        def attempt(number: int) -> Run:
            params = self._first_params(engine, states, problem.start)
            if number > 0:
                noise = rng.uniform(1 / labels.n_classes, 1.0, size=labels.n_workers)
                params = self._params(0.5 * (params.accuracy + noise), params.log_class)
            return run(
                self, engine, params,
                max_iter=self.max_iter, tol=self.tol, accelerate=self.accelerate, states=states,
            )  # fmt: skip

        best = best_of(attempt, self.n_init)
        return self._result(labels, best, self._posterior(labels, engine, states, best.params)[0])

    def _prepare(self, problem: Problem) -> tuple[MemoryShards, list[Received]]:
        labels = problem.data
        self._weights, self._n_classes = worker_weights(labels), labels.n_classes
        self._task_prior = problem.prior
        engine = problem.cut(labels.n_workers + labels.n_classes)
        return engine, received(engine, labels.n_classes)

    def _first_params(
        self, engine: MemoryShards, states: list[Received], given: Floats | None
    ) -> Params:
        """M-step from a starting posterior: the given one, or the soft vote times the prior."""
        correct, mass = np.zeros_like(self._weights), np.zeros(self._n_classes)
        no_class = np.zeros(self._n_classes)
        totals = row_totals(self._task_prior, no_class)
        everyone = np.ones_like(self._weights)
        for block, state in zip(engine.shards(), states, strict=True):
            part = np.zeros_like(correct)
            prior = no_class, block.prior_rows, block.prior_index, totals
            block.kernels("sparse_posterior").vote_step(
                block.indptr, block.worker, block.weight, *state.pairs, everyone, 0.0,
                *prior, part, state.probas, state.rest, False,
            )  # fmt: skip
            if given is not None:
                part, dense = given_start(block, state, given, len(correct))
                mass += dense
            else:
                block.kernels("sparse_posterior").add_pair_mass(
                    block.indptr, *state.pairs[1:], *prior, state.probas, state.rest, mass
                )
                mass += mass_outside(block, state, no_class, totals)
            correct += part
        return self.global_step(Stats(correct, mass, 0.0), None)

    def _posterior(
        self, labels: CrowdLabels, engine: MemoryShards, states: list[Received], params: Params
    ) -> tuple[Any, float]:
        """Return the posterior matrix under ``params`` and the log-likelihood."""
        _, stats = engine.map_reduce(self.local_step, states, params)
        value = stats.log_z + log_wrong(params.accuracy, labels.n_classes) @ self._weights
        probas = posterior_matrix(engine, states, labels, params.log_class, params.totals)
        return probas, float(value)

    def _result(self, labels: CrowdLabels, best: Run, probas: Any) -> FitResult:
        params: Params = best.params
        class_prior = np.exp(params.log_class - params.log_class.max())
        small = labels.n_workers * labels.n_classes**2 <= CONFUSION_LIMIT
        return FitResult(
            probas,
            params.accuracy,
            accuracy_error(params.accuracy, self._weights),
            class_prior=class_prior / class_prior.sum(),
            confusion=coin_confusion(params.accuracy, labels.n_classes) if small else None,
            n_iter=best.n_iter,
            converged=best.converged,
            history=best.history,
            extra={"accuracy": params.accuracy},
        )

    def __getattr__(self, name: str) -> Any:
        if name == "confusion_" and "accuracy_" in self.__dict__:
            n_classes = len(self.classes_)
            size = readable_bytes(8 * len(self.accuracy_) * n_classes**2)
            raise AttributeError(
                f"confusion_ would need {size} and is not written out; accuracy_ says it all: "
                "its diagonal is accuracy_, the rest (1 - accuracy_) / (n_classes - 1)."
            )
        return super().__getattr__(name)

    # --------------------------------------------------------------------------------- predict

    def _predict(self, problem: Problem) -> Any:
        return self._known(problem)[0]

    def _log_likelihood(self, problem: Problem) -> float:
        return self._known(problem)[1]

    def _known(self, problem: Problem) -> tuple[Any, float]:
        labels = problem.data
        engine, states = self._prepare(problem)
        self._fixed_class = known_class_prior(self.class_prior, problem.prior, self.class_prior_)
        accuracy = self.accuracy_
        if labels.n_workers > len(accuracy):  # one more: the worker about whom nothing is known
            accuracy = np.append(accuracy, 1 / labels.n_classes)
        return self._posterior(labels, engine, states, self._params(accuracy, self._fixed_class))


def log_odds(accuracy: Floats, n_classes: int) -> Floats:
    r"""Return :math:`\log p - \log\frac{1 - p}{K - 1}` (J,): what a label adds to its class."""
    if n_classes == 1:
        return np.zeros_like(accuracy)
    return safe_log(accuracy) - log_wrong(accuracy, n_classes)


def log_wrong(accuracy: Floats, n_classes: int) -> Floats:
    r"""Return :math:`\log\frac{1 - p}{K - 1}` (J,); zero for one class, where labels are right."""
    if n_classes == 1:
        return np.zeros_like(accuracy)
    return safe_log(1 - accuracy) - float(np.log(n_classes - 1))


def coin_confusion(accuracy: Floats, n_classes: int) -> Floats:
    """Return the (J, K, K) confusion matrices that the accuracies stand for."""
    off = (1 - accuracy) / max(n_classes - 1, 1)
    same = np.eye(n_classes, dtype=bool)
    return np.where(same, accuracy[:, None, None], off[:, None, None])


def given_start(
    block: Block, state: Received, given: Floats, n_workers: int
) -> tuple[Floats, Floats]:
    """Return the correct labels (J,) and class mass (K,) of a given posterior (n_tasks, K)."""
    probas = condition(given[block.tasks], block)
    rows = slice(block.indptr[0], block.indptr[-1])
    credit = probas[state.task, state.label][state.pair]
    if block.weight is not None:
        credit = credit * block.weight[rows]
    correct = np.bincount(block.worker[rows], weights=credit, minlength=n_workers)
    return correct.astype(np.float64), probas[np.diff(block.indptr) > 0].sum(axis=0)
