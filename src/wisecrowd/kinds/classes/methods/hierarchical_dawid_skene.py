r"""Hierarchical Dawid-Skene: rates between one coin and a full confusion matrix.

.. math::
    p(y_{ij} = l \mid z_i = k, d) = (1 - \delta_d) \theta_{jkl} + \delta_d m_l, \qquad
    \theta_{jk} \sim Dir(c \, m_{jk})

Collapsed variational Bayes: each annotation is judged by counts from which its own contribution has
been removed. One pass is O(annotations × classes × levels).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np

from wisecrowd.core.aggregator import Aggregator, Tags
from wisecrowd.core.exceptions import ParameterError
from wisecrowd.core.memory_check import require_memory
from wisecrowd.core.parameter_checks import Limits, Number
from wisecrowd.core.problem import Problem
from wisecrowd.core.result import Fit
from wisecrowd.core.saved_attributes import NUMBER, Saved, SavedArray
from wisecrowd.core.types import Floats
from wisecrowd.inference.engine import posterior_and_more, rows_into
from wisecrowd.inference.loop import first_params, iterate
from wisecrowd.kernels import kernels_for
from wisecrowd.kernels.arguments import TaskPriors
from wisecrowd.kinds.classes.families.class_prior import fixed_class_prior, known_class_prior
from wisecrowd.kinds.classes.families.confusion import (
    ConfusionParams,
    Evidence,
    KnownConfusion,
    accuracy_of,
    as_confusion,
    as_table,
    safe_log,
)
from wisecrowd.kinds.classes.families.label_law import DifficultyLaw
from wisecrowd.kinds.classes.families.posteriors import Start, condition
from wisecrowd.kinds.classes.kernels.hierarchical import (
    CountSums,
    RatePrior,
    TaskBlock,
    TaskLevels,
    WorkerCounts,
)
from wisecrowd.kinds.classes.kernels.posteriors import sum_by
from wisecrowd.kinds.classes.shards import Shard

STRENGTHS = tuple(2.0**x for x in range(8))  # candidate pseudo-counts of a worker's accuracy
TYPICAL = 0.7  # accuracy that the population's pseudo-counts have
POPULATION = 50.0  # pseudo-count of each row of the population's confusion matrix
COIN = 10.0  # pseudo-count of the mean accuracy
EASY = 16.0  # additional pseudo-count of the easiest level; every level has one
FEW_MOVE = 200  # of so many tasks, one may still move
OVERSHOOT = 0.9  # over-relaxation of the shares of the difficulty levels; below one it is stable
VOTE = 0.5  # pseudo-count of the starting vote
LARGEST_ODDS = 1e15  # of one class alone, whose labels are always correct
COMPILE_EARLIER = 4  # factor on the usual limit, because a pass of the reference is slow
MOST_DIFFICULT = 0.999  # a level of 1 would make labels worthless


class HierarchicalStats(NamedTuple):
    """Additive statistics of a pass.

    Expected labels that follow their worker's rates (J·K, K) by cell, class mass (K,), level mass
    (D,), leave-one-out log score of the labels, and the number of tasks that still move.
    """

    cells: Floats
    mass: Floats
    levels: Floats
    score: float
    moving: int


@dataclass(frozen=True, eq=False)
class HierarchicalParams:
    """Worker counts, the population they shrink to, and the log priors of classes and levels."""

    counts: WorkerCounts
    population: RatePrior
    log_class: Floats
    levels: TaskLevels


@dataclass(frozen=True, eq=False, kw_only=True)
class HierarchicalModel:
    """Confusion matrices shrunk to the worker's coin and the population, with task difficulty.

    Attributes
    ----------
    n_workers, n_classes : int
    fixed_class : (n_classes,) log class prior, or None where it is estimated
    concentration : float
        Pseudo-count of each row of a confusion matrix.
    levels : (n_levels,) probabilities of a label at random
    shares : (n_classes,) the crowd's label shares
    total : float
        Total weight of the labels.
    tol : float
        Change of a posterior that counts as a move.
    strengths : tuple of float
        Candidate pseudo-counts of a worker's accuracy.
    """

    n_workers: int
    n_classes: int
    fixed_class: Floats | None
    concentration: float
    levels: Floats
    shares: Floats
    total: float
    tol: float
    strengths: tuple[float, ...] = STRENGTHS
    stateful: ClassVar[bool] = True  # a pass takes out what the one before it added

    def begin(self, shard: Shard) -> TaskBlock:
        """Return empty arrays."""
        # An annotation's own contribution follows from rates that lacked the previous one, so it
        # cannot be computed again from the parameters: it is stored, in single precision.
        own = np.zeros((len(shard.label), self.n_classes), np.float32)
        probas = np.empty((shard.n_tasks, self.n_classes))
        return TaskBlock(own, probas, np.zeros(shard.n_tasks))

    def first(
        self, shard: Shard, state: TaskBlock, start: Start
    ) -> tuple[TaskBlock, HierarchicalStats]:
        """Return the expected counts of a starting posterior, all labels following the rates."""
        q = smoothed_vote(shard, self.n_classes)
        q = start.posterior(shard, self.n_classes) if not start.is_vote else q
        task = np.repeat(np.arange(shard.n_tasks), np.diff(shard.indptr))
        times = shard.labelled * (1.0 if shard.repeat is None else shard.repeat)
        cells = np.empty((self.n_workers * self.n_classes, self.n_classes))
        for k in range(self.n_classes):
            own = q[task, k] if shard.weight is None else shard.weight * q[task, k]
            state.own[:, k] = own
            cells[:, k] = sum_by(shard.cell, state.own[:, k] * times[task], len(cells))
        state.probas[:] = q
        mass = (q * times[:, None]).sum(axis=0)
        return state, HierarchicalStats(cells, mass, np.zeros(len(self.levels)), 0.0, 0)

    def local_step(
        self, shard: Shard, state: TaskBlock, params: HierarchicalParams
    ) -> tuple[TaskBlock, HierarchicalStats]:
        """Update the posteriors of one shard and return its expected counts."""
        sums = CountSums(
            np.zeros_like(params.counts.cells),
            np.zeros(self.n_classes),
            np.zeros(len(self.levels)),
        )
        priors = TaskPriors(params.log_class, shard.prior_rows, shard.prior_index)
        kernels = kernels_for("hierarchical", COMPILE_EARLIER * shard.work)
        score, moving = kernels.hierarchical_step(
            shard.task_labels, priors, params.counts, params.population, params.levels, state,
            sums, self.tol, shard.repeat,
        )  # fmt: skip
        return state, HierarchicalStats(*sums, score, moving)

    def global_step(
        self, stats: HierarchicalStats, params: HierarchicalParams | None
    ) -> HierarchicalParams:
        """Update the population given the expected counts."""
        counts = self.counts_of(stats.cells)
        tasks = stats.levels + 1
        tasks[self.levels.argmin()] += EASY
        log_level = np.log(tasks) - np.log(tasks.sum())
        if params is not None:  # the shares of the levels converge slowly, from one side
            log_level = log_level + OVERSHOOT * (log_level - params.levels.log_prior)
            log_level -= np.logaddexp.reduce(log_level)
        log_class = self.fixed_class
        if log_class is None:
            log_class = np.log(stats.mass + 1) - np.log((stats.mass + 1).sum())
        levels = TaskLevels(self.levels, log_level)
        return HierarchicalParams(counts, self.population_of(counts), log_class, levels)

    def counts_of(self, cells: Floats) -> WorkerCounts:
        """Return the counts that annotations are judged by, from those by cell."""
        table = cells.reshape(self.n_workers, self.n_classes, self.n_classes)
        totals = table.sum(axis=1)
        # Labels of one worker are correlated, so many of them count for little more than a few.
        weights = np.minimum(1.0, (self.concentration + 1) / (self.concentration + totals))
        right = np.einsum("jk,jkk->j", weights, table)
        return WorkerCounts(cells, totals, weights, right, (weights * totals).sum(axis=1))

    def population_of(self, counts: WorkerCounts) -> RatePrior:
        """Return the population's rates, mean accuracy and spread of accuracies."""
        K, right = self.n_classes, counts.right
        table = counts.cells.reshape(self.n_workers, K, K)
        seen = np.einsum("jk,jlk->kl", counts.weights, table)
        rest = (1 - TYPICAL) / max(K - 1, 1)
        seen += POPULATION * (rest + (TYPICAL - rest) * np.eye(K))
        typical = float(self.shares @ (np.diagonal(seen) / seen.sum(axis=1)))
        np.fill_diagonal(seen, 0)
        wrong = (seen / np.where(K > 1, seen.sum(axis=1, keepdims=True), 1)).T
        coin = float((right.sum() + TYPICAL * COIN) / (counts.everything.sum() + COIN))
        false = np.maximum(counts.everything - right, 0)
        strength = best_strength(right, false, coin, self.strengths)
        odds = typical * (1 - coin) / max((1 - typical) * coin, 1 / LARGEST_ODDS)
        return RatePrior(
            np.ascontiguousarray(wrong), self.shares, odds, coin, strength, self.concentration
        )

    def rates_of(self, counts: WorkerCounts, population: RatePrior) -> Floats:
        """Return the posterior mean rates (J, K, L), true class second; no label is left out."""
        false = np.maximum(counts.everything - counts.right, 0)
        mean = prior_rates(population, counts.right, false)
        c = self.concentration
        above = c * mean + as_confusion(counts.cells)
        return np.asarray(above / (c + counts.totals)[:, :, None])

    def objective(self, stats: HierarchicalStats, params: HierarchicalParams) -> float:
        """Return the mean leave-one-out log score of a label."""
        return stats.score / max(self.total, 1e-300)

    def extrapolate(self, first: Any, second: Any, third: Any) -> None:
        """Return None: there is no acceleration."""

    def answer(
        self, shard: Shard, state: TaskBlock, params: HierarchicalParams
    ) -> tuple[tuple[Floats, Floats], Evidence]:
        """Return the expected difficulties (n,) and the posteriors (n, K) of the last pass."""
        return (state.difficulty, state.probas), Evidence(0.0)


@dataclass(eq=False, repr=False, kw_only=True)
class HierarchicalDawidSkene(Aggregator):
    r"""Confusion matrices shrunk to a coin per worker and a population, with task difficulty.

    .. math::
        z_i \sim Cat(\pi), \quad d_i \sim Cat(\rho), \qquad
        p(y_{ij} = l \mid k, d) = (1 - \delta_d) \theta_{jkl} + \delta_d m_l, \\
        \theta_{jk} \sim Dir(c \, m_{jk}), \qquad m_{jkk} = p_j, \quad
        m_{jkl} = (1 - p_j) \nu_{kl}

    with the label shares :math:`m`, a coin :math:`p_j` per worker and the population's confusions
    :math:`\nu`. Use it when nothing is known about the crowd, or when it is small: with few labels
    a worker's rates are those of one coin or of the population, with many a full confusion matrix.
    Cost per iteration: O(annotations × classes × levels); memory: workers × classes² and four bytes
    per annotation × class.

    Parameters
    ----------
    concentration : float
        :math:`c`, the pseudo-count of each row of a worker's confusion matrix.
    difficulties : sequence of numbers from 0 to below 1
        The levels :math:`\delta`: probabilities that a task gets a label at random, from the
        crowd's label shares. ``(0,)`` makes all tasks equally difficult.
    class_prior : "auto", "estimate", "uniform" or (n_classes,) probabilities
        "auto" estimates the class frequencies unless a task prior is given.
    max_iter, tol : int, float
        Maximum number of iterations; change of a posterior that counts as converged. One task in
        200 may still change more.

    Attributes
    ----------
    confusion_ : (n_workers, n_classes, n_classes)
        ``confusion_[j, k, l]`` = p(label l | class k, worker j) on a new task, difficulty averaged.
    class_prior_, label_shares_ : (n_classes,)
    difficulty_ : (n_tasks,)
        Expected probability of a label at random.
    difficulty_prior_ : (n_levels,)
        Share of tasks at each level.
    unknown_worker_ : (n_classes, n_classes)
        Confusion matrix of a worker without labels, on a new task.
    held_out_score_ : float
        Mean log-probability of a label given all others.
    history_ : ``held_out_score_`` after each pass; it may fall

    Notes
    -----
    Collapsed variational Bayes. Each annotation is judged by counts without its own contribution,
    so a worker with one label has exactly the population's rates. The posterior of a new task
    uses all counts; on the training labels it is therefore not the fit.

    References
    ----------
    Y. W. Teh, D. Newman and M. Welling (2006). A collapsed variational Bayesian inference algorithm
    for latent Dirichlet allocation. NeurIPS 19, 1353-1360.

    H.-C. Kim and Z. Ghahramani (2012). Bayesian classifier combination. AISTATS, 619-627.

    Examples
    --------
    >>> from wisecrowd.kinds.classes.container import CrowdLabels
    >>> labels = CrowdLabels.from_matrix([[0, 0, 1], [1, 1, 0], [0, 0, 0], [1, 1, 1]])
    >>> model = HierarchicalDawidSkene().fit(labels)
    >>> model.labels_
    array([0, 1, 0, 1])
    """

    concentration: float = 4.0
    difficulties: Any = (0.0, 0.3, 0.6, 0.9)
    class_prior: Any = "auto"
    max_iter: int = 50
    tol: float = 1e-3

    saves: ClassVar[dict[str, Saved]] = {
        "class_prior_": SavedArray("K", "distribution"),
        "confusion_": SavedArray("J K K", "distribution"),
        "unknown_worker_": SavedArray("K K", "distribution"),
        "label_shares_": SavedArray("K", "distribution"),
        "difficulty_": SavedArray("N", "probability"),
        "difficulty_prior_": SavedArray("levels", "distribution"),
        "held_out_score_": NUMBER,
    }
    promises: ClassVar[Tags] = Tags(
        inductive=False, predicts=True, likelihood=True, confusion=True, exact_replication=False,
        pooled=True, online=True, shardable=True,
    )  # fmt: skip

    limits: ClassVar[Limits] = {"concentration": Number(0.001)}

    def _validate_parameters(self) -> None:
        super()._validate_parameters()
        self._levels()

    def _levels(self) -> Floats:
        """Return the difficulty levels (n_levels,)."""
        try:
            levels = np.array(self.difficulties, dtype=np.float64)
        except (TypeError, ValueError, OverflowError):
            levels = np.empty(0)
        if (
            levels.ndim != 1
            or not len(levels)
            or not ((levels >= 0) & (levels <= MOST_DIFFICULT)).all()
        ):
            raise ParameterError(
                f"difficulties is {self.difficulties!r}; give one or more numbers from 0 to "
                f"{MOST_DIFFICULT}, such as (0, 0.3, 0.6, 0.9)."
            )
        return levels

    # ------------------------------------------------------------------------------------- fit

    def _fit(self, problem: Problem) -> Fit:
        labels = problem.data
        J, K = labels.n_workers, labels.n_classes
        probas, sink, difficulty = posterior_and_more(labels)
        of_tasks = 0 if difficulty is None else 32 * K * labels.n_tasks
        of_labels = 0 if difficulty is None else (4 * K + 42) * labels.n_annotations
        require_memory(
            64 * J * K * K + of_tasks + of_labels,
            f"{type(self).__name__} with {J} workers and {K} classes would",
            "use one-coin or majority-vote, which need a few bytes per annotation",
        )
        model = self._model(problem)
        shards = problem.cut(J * K * K)
        params, states = first_params(model, shards, Start(problem.start))
        run = iterate(
            model, shards, params, states,
            max_iter=self.max_iter, tol=self.tol,
            settled=lambda stats, _: stats.moving <= round(stats.mass.sum()) // FEW_MOVE,
        )  # fmt: skip
        shards.collect(model, "answer", run.states, run.params, sink)
        final = model.global_step(run.stats, run.params)
        rates = model.rates_of(final.counts, final.population)
        class_prior = np.exp(final.log_class - np.logaddexp.reduce(final.log_class))
        level_prior = np.exp(final.levels.log_prior)
        chance = float(level_prior @ model.levels)
        accuracy = accuracy_of(rates, class_prior)
        nobody = prior_rates(final.population, np.zeros(1), np.zeros(1))[0]
        return Fit(
            probas,
            (1 - chance) * accuracy + chance * float(class_prior @ model.shares),
            class_prior=class_prior,
            confusion=with_chance(rates, chance, model.shares),
            n_iter=run.n_iter,
            converged=run.converged,
            history=run.history,
            extra=({} if difficulty is None else {"difficulty": difficulty})
            | {
                "difficulty_prior": level_prior,
                "label_shares": model.shares,
                "unknown_worker": with_chance(nobody, chance, model.shares),
                "held_out_score": run.history[-1],
            },
        )

    def _model(self, problem: Problem) -> HierarchicalModel:
        """Return the model of a fit."""
        K, totals = problem.data.n_classes, problem.data.class_totals
        total = float(totals.sum())
        return HierarchicalModel(
            n_workers=problem.data.n_workers,
            n_classes=K,
            fixed_class=fixed_class_prior(self.class_prior, problem.prior, K, problem.data),
            concentration=float(self.concentration),
            levels=self._levels(),
            shares=totals / total if total > 0 else np.full(K, 1 / K),
            total=total,
            tol=float(self.tol),
        )

    # --------------------------------------------------------------------------------- predict

    def _predict(self, problem: Problem) -> Floats:
        return self._known(problem)[0]

    def _log_likelihood(self, problem: Problem) -> float:
        return self._known(problem)[1]

    def _known(self, problem: Problem) -> tuple[Floats, float]:
        """Return posteriors and log-likelihood of new tasks: each class × level is a class."""
        labels, levels = problem.data, self._levels()
        J, K, D = labels.n_workers, labels.n_classes, len(levels)
        rates = self._rates(self.confusion_)
        if len(rates) < J:  # one more row, for unknown workers
            rates = np.concatenate([rates, self._rates(self.unknown_worker_)[None]])
        each = [as_table(with_chance(rates, level, self.label_shares_)) for level in levels]
        table = safe_log(np.stack(each, axis=2).reshape(len(rates) * K, K * D))
        log_class = known_class_prior(self.class_prior, problem.prior, self.class_prior_)
        joint = (log_class[:, None] + safe_log(self.difficulty_prior_)).ravel()
        model = LevelModel(n_workers=len(rates), n_classes=K * D, fixed_class=joint)
        shards, probas = problem.cut(table.size), np.empty((labels.n_tasks, K))
        params = ConfusionParams(table, joint, 0.0, {"n_levels": D})
        found = shards.collect(model, "answer", shards.begin(model), params, rows_into(probas))
        return probas, found.log_likelihood

    def _rates(self, confusion: Floats) -> Floats:
        """Return confusion matrices without the labels at random."""
        chance = float(self.difficulty_prior_ @ self._levels())
        rates = np.maximum(confusion - chance * self.label_shares_, 0) / (1 - chance)
        return np.asarray(rates)

    def _label_law(self) -> DifficultyLaw:
        """Return the law at the tasks' expected difficulty; new tasks have the mean difficulty."""
        chance = float(self.difficulty_prior_ @ self._levels())
        difficulty = np.append(self.difficulty_, chance)
        rates = self._rates(self.confusion_)
        return DifficultyLaw(self.class_prior_, rates, self.label_shares_, difficulty)

    def _axis_sizes(self, sizes: Mapping[str, int]) -> dict[str, int]:
        return {"levels": len(self._levels())}


class LevelModel(KnownConfusion):
    """Known parameters, with each pair of class and difficulty level as one class."""

    def answer(self, shard: Shard, state: Any, params: ConfusionParams) -> tuple[Floats, Evidence]:
        """Return the posteriors (n, K) of the classes, and the log-likelihood."""
        D = params.extra["n_levels"]
        rows = np.repeat(shard.prior_rows, D, axis=1)
        joint, evidence = super().answer(replace(shard, prior_rows=rows), state, params)
        return joint.reshape(shard.n_tasks, -1, D).sum(axis=2), evidence


def smoothed_vote(shard: Shard, n_classes: int) -> Floats:
    """Return the vote (n, K) with half a pseudo-vote, times the task prior."""
    n = shard.n_tasks
    index = np.repeat(np.arange(n), np.diff(shard.indptr)) * n_classes + shard.label
    votes = np.bincount(index, shard.weight, n * n_classes).reshape(n, n_classes)
    q = (votes + VOTE / n_classes) / (votes.sum(axis=1, keepdims=True) + VOTE)
    return condition(q, shard) if shard.prior_rows.any() else q


def best_strength(right: Floats, false: Floats, coin: float, strengths: tuple[float, ...]) -> float:
    """Return the pseudo-count of the accuracies with the best beta-binomial evidence."""
    if len(strengths) == 1:
        return strengths[0]
    from scipy.special import betaln, gammaln

    s = np.array(strengths)
    favour, against = s * coin, s * (1 - coin)
    evidence = gammaln(right[:, None] + favour) + gammaln(false[:, None] + against)
    evidence -= gammaln((right + false)[:, None] + s)
    evidence = evidence.sum(axis=0) - len(right) * betaln(favour, against)
    return strengths[int(np.argmax(evidence))]


def prior_rates(population: RatePrior, right: Floats, false: Floats) -> Floats:
    """Return the prior mean rates (J, K, L) of workers with these correct and wrong labels."""
    favour = population.odds * (right + population.strength * population.coin)
    accuracy = favour / (favour + false + population.strength * (1 - population.coin))
    rates = (1 - accuracy)[:, None, None] * population.wrong.T
    each = np.arange(rates.shape[1])
    rates[:, each, each] = accuracy[:, None]
    return rates


def with_chance(rates: Floats, chance: float, shares: Floats) -> Floats:
    """Mix rates (..., K) with labels at random."""
    return np.asarray((1 - chance) * rates + chance * shares)
