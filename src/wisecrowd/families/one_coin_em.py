r"""One accuracy per worker, fitted by EM in O(annotations) per iteration for any number of classes.

.. math::
    z_i \sim Cat(\pi), \qquad p(y_{ij} = l \mid z_i = k) = p_j \;\text{if}\; l = k, \quad
    (1 - p_j) / (K - 1) \;\text{otherwise}
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wisecrowd.checks.data_checks import ENOUGH, subsample_tasks
from wisecrowd.core.aggregator import Aggregator
from wisecrowd.core.footprint import MOST_VOTES
from wisecrowd.core.labels import CrowdLabels
from wisecrowd.core.memory_check import readable_bytes
from wisecrowd.core.parameter_checks import check_flag
from wisecrowd.core.problem import Problem
from wisecrowd.core.result import TIE, Fit
from wisecrowd.core.saved_attributes import Saved, SavedArray
from wisecrowd.core.votes import vote_table
from wisecrowd.engines.memory import MemoryShards, Shard
from wisecrowd.engines.packed_shard import PackedCrowd
from wisecrowd.families.confusion import safe_log
from wisecrowd.families.incremental import Arrival, contributions, run_passes, stream_of
from wisecrowd.families.repeated_rows import coin_statistics, vote_statistics
from wisecrowd.families.sparse_posterior import (
    PosteriorMatrix,
    SparsePosterior,
    begin_posterior,
    mass_outside,
    posterior_matrix,
    posterior_rows,
    row_totals,
    worker_weights,
)
from wisecrowd.inference.class_prior import fixed_class_prior, known_class_prior, log_shares
from wisecrowd.inference.loop import LoopResult, best_of, iterate, squarem
from wisecrowd.inference.priors import OneCoinPrior, as_coin_prior
from wisecrowd.inference.start_posterior import Start, condition
from wisecrowd.kernels.sparse_posterior.reference import CoinOutput, NormalisedPriors, VoteOutput

Floats = NDArray[np.float64]

CONFUSION_LIMIT = 10_000_000  # numbers; larger confusion matrices are not stored
# Shares of the vote that differ from what a fit expects by more than this, and by this many
# standard errors, refute its class frequencies. Simulated crowds with one accuracy per worker,
# whatever their class frequencies and difficulties, stay below both.
DRIFT, DRIFT_Z = 0.1, 4.0
SMALLEST_SPREAD = 1e-12  # variance of the lead among workers who never err


class CoinStats(NamedTuple):
    """Additive statistics of one pass: correct labels (J,), class mass (K,), sum of log Z."""

    correct: Floats
    mass: Floats
    log_z: float


@dataclass(frozen=True, eq=False)
class CoinParams:
    """Accuracies (J,), their log-odds against one wrong class, and the log class prior (K,)."""

    accuracy: Floats
    log_odds: Floats
    log_class: Floats


class CoinState(NamedTuple):
    """Labels of a shard with their posterior, and totals of prior rows if these are fixed."""

    posterior: SparsePosterior
    totals: Floats | None


@dataclass(frozen=True, eq=False, kw_only=True)
class OneCoinModel:
    """One accuracy per worker, fitted by EM.

    Attributes
    ----------
    coin : OneCoinPrior
        Pseudo-counts of correct and wrong labels.
    weights : (n_workers,) total weight of each worker's labels
    n_classes : int
    fixed_class : (n_classes,) log class prior, or None where it is estimated
    by_frequency : (n_classes,) classes by frequency, or None if posteriors are dense
    """

    coin: OneCoinPrior
    weights: Floats
    n_classes: int
    fixed_class: Floats | None = None
    by_frequency: NDArray[np.intp] | None = None

    def begin(self, shard: Shard) -> CoinState:
        """Return the distinct labels of a shard's tasks."""
        totals = None
        if self.fixed_class is not None:
            totals = row_totals(shard.prior_rows, self.fixed_class)
        return CoinState(begin_posterior(shard, self.n_classes), totals)

    def first(self, shard: Shard, state: CoinState, start: Start) -> tuple[CoinState, CoinStats]:
        """Return the statistics of a given posterior, or of the soft vote times the prior."""
        if start.given is not None:
            given = given_start(shard, state.posterior, start.given, len(self.weights))
            return state, CoinStats(*given, 0.0)
        if shard.repeat is not None:
            votes = vote_statistics(shard, state.posterior, len(self.weights), self.n_classes)
            return state, CoinStats(*votes, 0.0)
        correct, mass, no_class = np.zeros_like(self.weights), *np.zeros((2, self.n_classes))
        totals = row_totals(shard.prior_rows, no_class)
        priors = NormalisedPriors(no_class, shard.prior_rows, shard.prior_index, totals)
        labels, kernels = state.posterior, shard.kernels("sparse_posterior")
        kernels.vote_step(
            shard.task_labels, labels.pairs, np.ones_like(self.weights), priors,
            VoteOutput(correct, labels.probas, labels.rest), 0.0, False,
        )  # fmt: skip
        kernels.add_pair_mass(shard.indptr, labels.pairs, priors, labels.probas, labels.rest, mass)
        mass += mass_outside(shard, labels, no_class, totals)
        return state, CoinStats(correct, mass, 0.0)

    def local_step(
        self, shard: Shard, state: CoinState, params: CoinParams
    ) -> tuple[CoinState, CoinStats]:
        """Run the E-step of one shard and return its expected correct labels."""
        if shard.repeat is not None:
            totals = self._totals(shard, state, params)
            priors = NormalisedPriors(params.log_class, shard.prior_rows, shard.prior_index, totals)
            found = coin_statistics(shard, state.posterior, params.log_odds, priors)
            return state, CoinStats(*found)
        labels, totals = state.posterior, self._totals(shard, state, params)
        correct = np.zeros_like(params.log_odds)
        mass = np.zeros_like(params.log_class) if self.fixed_class is None else None
        log_z = shard.kernels("sparse_posterior").coin_step(
            shard.task_labels,
            labels.pairs,
            params.log_odds,
            NormalisedPriors(params.log_class, shard.prior_rows, shard.prior_index, totals),
            CoinOutput(correct, mass, labels.probas, labels.rest),
        )
        if mass is None:
            return state, CoinStats(correct, np.zeros(0), log_z)
        mass += mass_outside(shard, labels, params.log_class, totals)
        return state, CoinStats(correct, mass, log_z)

    def global_step(self, stats: CoinStats, params: CoinParams | None) -> CoinParams:
        """Run the M-step: MAP accuracies and class shares."""
        accuracy = self._accuracies(stats.correct)
        if self.fixed_class is not None:
            return self.params(accuracy, self.fixed_class)
        log_class = log_shares(np.maximum(stats.mass, 0.0))  # rounding may leave -1e-17
        return self.params(accuracy, log_class)

    def objective(self, stats: CoinStats, params: CoinParams) -> float:
        """Return the log-likelihood plus log prior density, both at ``params``."""
        value = self.log_likelihood(stats, params)
        if self.n_classes == 1:
            return value  # every label is right: accuracies are not parameters
        right, wrong = safe_log(params.accuracy), safe_log(1 - params.accuracy)
        return float(value + self.coin.a * right.sum() + self.coin.b * wrong.sum())

    def log_likelihood(self, stats: CoinStats, params: CoinParams) -> float:
        """Return the log-likelihood at ``params``."""
        wrong = log_wrong(params.accuracy, self.n_classes) * self.weights  # BLAS starts threads
        return float(stats.log_z + wrong.sum())

    def extrapolate(
        self, first: CoinParams, second: CoinParams, third: CoinParams
    ) -> CoinParams | None:
        """Extrapolate log-odds and log class prior; values near certainty stay unchanged."""
        path = [
            np.concatenate([safe_log(p.accuracy) - safe_log(1 - p.accuracy), p.log_class])
            for p in (first, second, third)
        ]
        free = np.max(np.abs(path), axis=0) < 100
        moved = squarem(*(x[free] for x in path))
        if moved is None or not np.isfinite(moved).all():
            return None
        path[2][free] = moved
        K = self.n_classes
        accuracy = 1 / (1 + np.exp(-path[2][:-K].clip(-700, 700)))
        if self.fixed_class is not None:
            return self.params(accuracy, self.fixed_class)
        return self.params(accuracy, path[2][-K:] - np.logaddexp.reduce(path[2][-K:]))

    def answer(self, shard: Shard, state: CoinState, params: CoinParams) -> tuple[Any, CoinStats]:
        """Return the posteriors of one shard, dense or sparse, and its statistics."""
        state, stats = self.local_step(shard, state, params)
        totals = self._totals(shard, state, params)
        rows = posterior_rows(shard, state.posterior, params.log_class, totals, self.by_frequency)
        return rows, stats

    def params(self, accuracy: Floats, log_class: Floats) -> CoinParams:
        """Return the parameters of these accuracies and log class prior."""
        return CoinParams(accuracy, log_odds(accuracy, self.n_classes), log_class)

    def _accuracies(self, correct: Floats) -> Floats:
        if self.n_classes == 1:
            return np.ones_like(correct)
        known = self.weights + self.coin.a + self.coin.b > 0
        found = self.coin.map_accuracy(correct, self.weights).clip(0.0, 1.0)
        return np.where(known, found, 1 / self.n_classes)

    def _totals(self, shard: Shard, state: CoinState, params: CoinParams) -> Floats:
        if state.totals is not None:
            return state.totals
        return row_totals(shard.prior_rows, params.log_class)


class OneCoinEM(Aggregator):
    """EM for one accuracy per worker; a method adds its defaults and its start.

    Parameters
    ----------
    prior : "weak", None, (a, b) or :class:`~wisecrowd.inference.priors.OneCoinPrior`
        Pseudo-counts of correct and wrong labels; "weak" is (1, 0.5), None is maximum likelihood.
    class_prior : "auto", "estimate", "uniform" or (n_classes,) probabilities
        "auto" estimates the class frequencies unless a task prior is given, or fewer than a tenth
        of the tasks have labels by two workers; they are then equal. Frequencies that contradict
        the vote are replaced by its shares.
    max_iter, tol : int, float
        Maximum number of passes over the annotations; relative gain that counts as converged.
    n_init : int
        Number of starts: the method's own, then random accuracies; the best objective wins.
    accelerate : bool
        Extrapolate slow runs (SQUAREM). An extrapolation that lowers the objective is rejected,
        and counts as a pass.
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
        as_coin_prior(self.prior)

    def _fit(self, problem: Problem) -> Fit:
        labels, K = problem.data, problem.data.n_classes
        probas = posterior_matrix(labels)
        fixed = fixed_class_prior(self.class_prior, problem.prior, K, labels)
        model, best, shards = self._climb(problem, fixed, probas)
        if fixed is None and isinstance(self.class_prior, str) and self.class_prior == "auto":
            shares = shares_of_vote_if_drifted(labels, best.params)
            if shares is not None:
                model, best, shards = self._climb(problem, log_shares(shares), probas)
        shards.collect(model, "answer", best.states, best.params, probas.store)
        return self._result(labels, model, best, probas.matrix())

    def _update(self, problem: Problem, arrival: Arrival, sweeps: int) -> tuple[Fit, Floats]:
        """Return the fit after new answers, and the weight of each task in its counts."""
        labels, K = problem.data, problem.data.n_classes
        if K == 1:  # every label is right
            return self._fit(problem), arrival.scale
        probas = PosteriorMatrix(labels)
        fixed = fixed_class_prior(self.class_prior, problem.prior, K, labels)
        params, scale, n_sweeps = self._passes(problem, arrival, sweeps, fixed, probas)
        if fixed is None and isinstance(self.class_prior, str) and self.class_prior == "auto":
            shares = shares_of_vote_if_drifted(labels, params)
            if shares is not None:
                fixed = log_shares(shares)
                params, scale, n_sweeps = self._passes(problem, arrival, sweeps, fixed, probas)
        model = self._model(labels, fixed, probas)
        shards = problem.cut(labels.n_workers + K)
        states = shards.begin(model)
        stats = shards.collect(model, "answer", states, params, probas.store)
        objective = (model.objective(stats, params),)
        best = LoopResult(params, stats, states, objective, 1 + n_sweeps, True)
        return self._result(labels, model, best, probas.matrix()), scale

    def _passes(
        self,
        problem: Problem,
        arrival: Arrival,
        sweeps: int,
        fixed: Floats | None,
        probas: PosteriorMatrix,
    ) -> tuple[CoinParams, Floats, int]:
        """Return the parameters after new answers, the weights of tasks, and the sweeps."""
        data, K = problem.data, problem.data.n_classes
        stream, coin = stream_of(problem, arrival), as_coin_prior(self.prior)
        correct, total, mass = np.zeros(data.n_workers), np.zeros(data.n_workers), np.zeros(K)
        known = np.zeros(K) if fixed is None else fixed

        def recount() -> None:
            weight, per_task = contributions(stream)
            right = weight * stream.probas[stream.task, stream.label]
            correct[:] = np.bincount(stream.worker, right, len(correct))
            total[:] = np.bincount(stream.worker, weight, len(total))
            mass[:] = (per_task[:, None] * stream.probas).sum(axis=0)

        def update(kernels: Any, order: NDArray[np.int64]) -> float:
            return float(kernels.coin_updates(
                order, stream, (coin.a, coin.b), correct, total, mass, known, fixed is not None
            ))  # fmt: skip

        n_sweeps = run_passes(arrival, stream, sweeps, update, recount, mass)
        recount()
        model = replace(self._model(data, fixed, probas), weights=total)
        return model.global_step(CoinStats(correct, mass, 0.0), None), stream.scale, n_sweeps

    def _climb(
        self, problem: Problem, fixed: Floats | None, probas: PosteriorMatrix
    ) -> tuple[OneCoinModel, LoopResult, MemoryShards]:
        """Iterate from every start and return the model, the best run, and its shards."""
        J, K = problem.data.n_workers, problem.data.n_classes
        model = self._model(problem.data, fixed, probas)
        shards = problem.cut(J + K)
        states = shards.begin(model)
        first = self._first_params(model, shards, states, Start(problem.start))

        def attempt(number: int) -> LoopResult:
            params = first
            if number > 0:
                noise = problem.rng.uniform(1 / K, 1.0, size=J)
                params = model.params(0.5 * (first.accuracy + noise), first.log_class)
            return iterate(
                model, shards, params, states,
                max_iter=self.max_iter, tol=self.tol, accelerate=self.accelerate,
            )  # fmt: skip

        return model, best_of(attempt, self.n_init), shards

    def _model(
        self, labels: CrowdLabels, fixed: Floats | None, probas: PosteriorMatrix
    ) -> OneCoinModel:
        return OneCoinModel(
            coin=as_coin_prior(self.prior),
            weights=worker_weights(labels),
            n_classes=labels.n_classes,
            fixed_class=fixed,
            by_frequency=probas.by_frequency,
        )

    def _first_params(
        self, model: OneCoinModel, shards: MemoryShards, states: list[CoinState], start: Start
    ) -> CoinParams:
        """Return the initial parameters: the M-step from a starting posterior."""
        return model.global_step(shards.map_reduce(model, "first", states, start)[1], None)

    def _result(
        self, labels: CrowdLabels, model: OneCoinModel, best: LoopResult, probas: Any
    ) -> Fit:
        params: CoinParams = best.params
        class_prior = np.exp(params.log_class - params.log_class.max())
        small = labels.n_workers * labels.n_classes**2 <= CONFUSION_LIMIT
        return Fit(
            probas,
            params.accuracy,
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
        """Return posteriors and log-likelihood under the fitted parameters."""
        labels, accuracy = problem.data, self.accuracy_
        if labels.n_workers > len(accuracy):  # one more row, for unknown workers
            accuracy = np.append(accuracy, 1 / labels.n_classes)
        log_class = known_class_prior(self.class_prior, problem.prior, self.class_prior_)
        probas = PosteriorMatrix(labels)
        model = self._model(labels, log_class, probas)
        params = model.params(accuracy, log_class)
        shards = problem.cut(labels.n_workers + labels.n_classes)
        stats = shards.collect(model, "answer", shards.begin(model), params, probas.store)
        return probas.matrix(), model.log_likelihood(stats, params)


def shares_of_vote_if_drifted(
    labels: CrowdLabels | PackedCrowd, params: CoinParams
) -> Floats | None:
    """Return the class shares (K,) of the vote if the fit contradicts them, else None.

    Estimated class frequencies absorb errors that one accuracy per worker cannot explain. With
    these frequencies and accuracies the vote would then have other shares than it has.
    """
    if isinstance(labels, PackedCrowd):
        labels = labels.sample(ENOUGH)
    labels, K = subsample_tasks(labels), labels.n_classes
    if K == 1 or labels.n_tasks * K > MOST_VOTES:
        return None
    votes = vote_table(labels, weighted=True)
    votes = votes[votes.sum(axis=1) > 0]
    won = votes >= votes.max(axis=1, keepdims=True) - TIE
    shares = np.asarray((won / won.sum(axis=1, keepdims=True)).mean(axis=0))
    right = expected_vote_accuracy(labels, params.accuracy)
    frequency = np.exp(params.log_class)
    expected = frequency * right + (1 - frequency) * (1 - right) / (K - 1)
    error = np.sqrt(expected * (1 - expected) / len(votes))
    drift = np.abs(shares - expected)
    return shares if (drift > np.maximum(DRIFT, DRIFT_Z * error)).any() else None


def expected_vote_accuracy(labels: CrowdLabels, accuracy: Floats) -> float:
    """Return the mean probability that a majority vote of the labels' workers is right.

    The lead of the true class over another one is taken for normal, and leads for independent.

    Examples
    --------
    Three workers who are right with probability .7: the exact value is .784.

    >>> labels = CrowdLabels.from_matrix([[0, 1, 1]])
    >>> round(expected_vote_accuracy(labels, np.full(3, 0.7)), 2)
    0.78
    """
    from scipy.special import ndtr

    rivals = labels.n_classes - 1
    wrong = (1 - accuracy) / rivals
    lead, variance = accuracy - wrong, accuracy + wrong - (accuracy - wrong) ** 2
    weight = np.ones(labels.n_annotations) if labels.weight is None else labels.weight
    counted = np.bincount(labels.task, weight, labels.n_tasks) > 0
    mean = np.bincount(labels.task, weight * lead[labels.worker], labels.n_tasks)
    spread = np.bincount(labels.task, weight * variance[labels.worker], labels.n_tasks)
    score = mean / np.sqrt(np.maximum(spread, SMALLEST_SPREAD))
    return float(np.mean(ndtr(score[counted]) ** rivals))


def log_odds(accuracy: Floats, n_classes: int) -> Floats:
    r"""Return :math:`\log p - \log\frac{1 - p}{K - 1}` (J,), the weight of a label."""
    if n_classes == 1:
        return np.zeros_like(accuracy)
    return safe_log(accuracy) - log_wrong(accuracy, n_classes)


def log_wrong(accuracy: Floats, n_classes: int) -> Floats:
    r"""Return :math:`\log\frac{1 - p}{K - 1}` (J,); zero for one class, where no label is wrong."""
    if n_classes == 1:
        return np.zeros_like(accuracy)
    return safe_log(1 - accuracy) - float(np.log(n_classes - 1))


def coin_confusion(accuracy: Floats, n_classes: int) -> Floats:
    """Return the (J, K, K) confusion matrices given by the accuracies."""
    off = (1 - accuracy) / max(n_classes - 1, 1)
    same = np.eye(n_classes, dtype=bool)
    return np.where(same, accuracy[:, None, None], off[:, None, None])


def given_start(
    shard: Shard, state: SparsePosterior, given: Floats, n_workers: int
) -> tuple[Floats, Floats]:
    """Return the correct labels (J,) and class mass (K,) of a given posterior (n_tasks, K)."""
    probas = condition(given[shard.tasks], shard)
    credit = probas[state.task, state.label][state.pair]
    if shard.weight is not None:
        credit = credit * shard.weight
    correct = np.bincount(shard.worker, weights=credit, minlength=n_workers)
    return correct.astype(np.float64), probas[shard.labelled].sum(axis=0)
