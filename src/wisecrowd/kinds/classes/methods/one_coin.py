r"""One accuracy per worker, fitted by EM in O(annotations) per iteration for any number of classes.

.. math::
    \text{E-step:} \quad & q_i(k) \propto \pi_k \prod_{j: y_{ij} = k} p_j
        \prod_{j: y_{ij} \ne k} \frac{1 - p_j}{K - 1} \\
    \text{M-step:} \quad & p_j = \frac{\sum_i q_i(y_{ij}) + a}{n_j + a + b}, \qquad
        \pi_k \propto \sum_i q_i(k) \\
    \text{objective:} \quad & \sum_i \log \sum_k \pi_k \prod_j p(y_{ij} \mid k)
        + \sum_j \bigl( a \log p_j + b \log (1 - p_j) \bigr)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.aggregator import Aggregator, Tags
from wisecrowd.core.footprint import Footprint
from wisecrowd.core.memory_check import readable_bytes
from wisecrowd.core.parameter_checks import Flag, Limits
from wisecrowd.core.problem import Problem
from wisecrowd.core.result import Fit
from wisecrowd.core.saved_attributes import Saved, SavedArray
from wisecrowd.core.types import Floats
from wisecrowd.inference.engine import MemoryShards
from wisecrowd.inference.loop import LoopResult, best_of, iterate, squarem
from wisecrowd.inference.priors import OneCoinPrior, as_coin_prior
from wisecrowd.kinds.classes.container import CrowdLabels
from wisecrowd.kinds.classes.families.class_prior import (
    fixed_class_prior,
    known_class_prior,
    log_shares,
    shares_of_vote_if_drifted,
)
from wisecrowd.kinds.classes.families.confusion import safe_log
from wisecrowd.kinds.classes.families.posteriors import (
    PosteriorMatrix,
    SparsePosterior,
    Start,
    begin_posterior,
    coin_statistics,
    given_start,
    mass_outside,
    posterior_matrix,
    posterior_rows,
    row_totals,
    vote_statistics,
    worker_weights,
)
from wisecrowd.kinds.classes.kernels.sparse_posterior import (
    CoinOutput,
    NormalisedPriors,
    VoteOutput,
)
from wisecrowd.kinds.classes.shards import Shard

CONFUSION_LIMIT = 10_000_000  # numbers; larger confusion matrices are not stored


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

    limits: ClassVar[Limits] = {"accelerate": Flag(), "prior": as_coin_prior}

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


@dataclass(eq=False, repr=False, kw_only=True)
class OneCoin(OneCoinEM):
    r"""One accuracy per worker; wrong labels are spread evenly over the other classes.

    .. math::
        p(y_{ij} = l \mid z_i = k) = p_j \;\text{if}\; l = k, \quad (1 - p_j) / (K - 1)
        \;\text{otherwise}, \qquad p_j = \frac{\sum_{i} q_i(y_{ij}) + a}{n_j + a + b}

    Use it when workers have few labels each, or there are many classes: one parameter per worker
    instead of K². Cost per iteration: O(annotations) for any number of classes; memory: 20 to 50
    bytes per annotation and nothing that grows with tasks × classes.

    Parameters
    ----------
    prior : "weak", None, (a, b) or :class:`~wisecrowd.inference.priors.OneCoinPrior`
        Pseudo-counts :math:`a` of correct and :math:`b` of wrong labels. "weak" is (1, 0.5):
        slightly better than random, so that a worker with two labels is not treated as an
        adversary. None is maximum likelihood.
    class_prior : "auto", "estimate", "uniform" or (n_classes,) probabilities
        "auto" estimates the class frequencies unless a task prior is given, or fewer than a tenth
        of the tasks have labels by two workers; they are then equal. Frequencies that contradict
        the vote are replaced by its shares.
    max_iter, tol : int, float
        Maximum number of passes over the annotations; relative gain that counts as converged.
    n_init : int
        Number of starts: the given one or the soft vote, then random accuracies between chance and
        one; the best objective wins.
    accelerate : bool
        Extrapolate slow runs (SQUAREM). An extrapolation that lowers the objective is rejected,
        and counts as a pass.
    random_state : int, Generator or None

    Attributes
    ----------
    accuracy_ : (n_workers,)
        :math:`p_j`; a label by worker ``j`` weighs :math:`\log\frac{(K - 1) p_j}{1 - p_j}` votes.
    confusion_ : (n_workers, n_classes, n_classes)
        The confusion matrices given by the accuracies, if they have at most 10⁷ numbers.
    class_prior_ : (n_classes,)
    probas_ : (n_tasks, n_classes)
        Dense up to 5·10⁷ numbers. Beyond that, sparse (CSR) over the received labels of a task, its
        gold label and its most probable class; rows then sum to one minus the probability of all
        other classes, which is spread over them by their prior.
    history_ : tuple of float
        Log-likelihood plus :math:`\sum_j a \log p_j + b \log(1 - p_j)`; it never decreases.

    Notes
    -----
    This is Dawid and Skene's model with tied parameters, and has the same posterior. With K = 1
    every label is right and the accuracies are one. The most probable class is that of a weighted
    vote, with the log-odds as weights and the log class prior added.

    Estimated class frequencies can absorb errors that one parameter per worker cannot explain, as
    where workers miss one class more often than the others. "auto" compares them with the vote:
    if the fit expects a class to win a share of the votes that differs by more than .1 and by four
    standard errors, the frequencies are those of the vote. "estimate" keeps the estimate.

    References
    ----------
    Y. Zhang, X. Chen, D. Zhou and M. I. Jordan (2016). Spectral methods meet EM: a provably optimal
    algorithm for crowdsourcing. Journal of Machine Learning Research 17(102), 1-44.

    Examples
    --------
    >>> from wisecrowd.kinds.classes.container import CrowdLabels
    >>> labels = CrowdLabels.from_matrix([[0, 0, 1], [2, 2, 0], [1, 1, 1], [0, 0, 2]])
    >>> model = OneCoin().fit(labels)
    >>> model.labels_
    array([0, 2, 1, 0])
    >>> model.accuracy_.round(2)
    array([0.91, 0.91, 0.36])
    """

    prior: Any = "weak"
    class_prior: Any = "auto"
    max_iter: int = 1000
    tol: float = 1e-6
    n_init: int = 1
    accelerate: bool = False
    random_state: Any = 0

    promises: ClassVar[Tags] = Tags(
        monotone=True, inductive=True, likelihood=True, confusion=True, online=True, shardable=True
    )
    footprint = Footprint(label=14.8, task=16.3, dense=11.6)
