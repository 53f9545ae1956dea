r"""BWA: labels as numbers, workers as precisions, truths as weighted averages.

.. math::
    x_{ik} = \frac{\lambda m_{ik} + \sum_j v_{jk} 1\{y_{ij} = k\}}{\lambda + \sum_j v_{jk}}

with a precision :math:`v_{jk}` per worker and class. One pass is O(annotations × classes).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np

from wisecrowd.core.aggregator import Aggregator, Tags
from wisecrowd.core.footprint import Footprint
from wisecrowd.core.memory_check import require_memory
from wisecrowd.core.parameter_checks import Limits, Number
from wisecrowd.core.problem import Problem
from wisecrowd.core.result import Fit, choose_labels
from wisecrowd.core.saved_attributes import Saved, SavedArray
from wisecrowd.core.types import Floats
from wisecrowd.inference.engine import MemoryShards, posterior_of, rows_into
from wisecrowd.inference.loop import LoopResult, best_of, first_params, iterate
from wisecrowd.kinds.classes.families.class_prior import fixed_class_prior
from wisecrowd.kinds.classes.families.posteriors import (
    Start,
    random_start,
    share_of,
    worker_weights,
)
from wisecrowd.kinds.classes.kernels.posteriors import soft_votes, sum_by
from wisecrowd.kinds.classes.shards import Shard

LEAST = 1e-5  # least variance of labels, so that no precision is infinite


class BWAStats(NamedTuple):
    """Additive statistics of one pass.

    Squared errors (J, K), the sum of truths minus their prior means and the number of such terms,
    both (K,), and the sum of squared distances from the prior means.
    """

    errors: Floats
    excess: Floats
    free: Floats
    distance: float


@dataclass(frozen=True, eq=False)
class BWAParams:
    """Worker precisions (J, K), and the class means minus the prior's means, (K,)."""

    precision: Floats
    shift: Floats


class Truths:
    """The truths (n, K) of a shard's tasks, with the labels as a sparse matrix.

    Parameters
    ----------
    shard : Shard
    n_workers : int
    fixed_class : (n_classes,) or None
        Log class prior.
    """

    def __init__(self, shard: Shard, n_workers: int, fixed_class: Floats | None) -> None:
        from scipy.sparse import csr_array

        rows = shard.prior_rows if fixed_class is None else shard.prior_rows + fixed_class
        means = prior_means(rows)
        self.worker, self.label, self.cell = shard.worker, shard.label, shard.cell
        self.weight = np.ones(len(self.label)) if shard.weight is None else shard.weight
        self.task = np.repeat(np.arange(shard.n_tasks), np.diff(shard.indptr))
        columns = (self.weight, self.worker, shard.indptr)
        self.votes = csr_array(columns, shape=(shard.n_tasks, n_workers))
        self.labelled = shard.labelled
        self.times = np.ones(shard.n_tasks) if shard.repeat is None else shard.repeat
        self.mean = np.broadcast_to(
            means[0] if shard.prior_index is None else means[shard.prior_index],
            (shard.n_tasks, means.shape[1]),
        )
        # Impossible classes and gold labels stay fixed.
        self.free = (self.mean > 0) & (self.mean < 1)
        self.x = np.array(self.mean)

    def update(self, params: BWAParams, task_strength: float) -> None:
        """Set the truths to their weighted averages."""
        n, K = self.x.shape
        each = self.weight * params.precision[self.worker, self.label]
        given = np.bincount(self.task * K + self.label, weights=each, minlength=n * K)
        above = task_strength * (self.mean + params.shift) + given.reshape(n, K)
        average = above / (task_strength + self.votes @ params.precision)
        self.x = np.where(self.free, average, self.mean)

    def stats(self, shift: Floats) -> BWAStats:
        """Return the additive statistics of the truths."""
        n_workers, K = self.votes.shape[1], self.x.shape[1]
        times = self.times[:, None]
        own = self.weight * self.times[self.task] * (1 - 2 * self.x[self.task, self.label])
        errors = np.bincount(self.cell, weights=own, minlength=n_workers * K)
        errors = self.votes.T @ (times * self.x**2) + errors.reshape(n_workers, K)
        counted = times * (self.free & self.labelled[:, None])
        excess = self.x - self.mean
        distance = float((counted * (excess - shift) ** 2).sum())
        # Rounding may make the sum of squares negative.
        return BWAStats(np.maximum(errors, 0), (counted * excess).sum(0), counted.sum(0), distance)


class Agreement(NamedTuple):
    """Additive: weight of each worker's labels that are the final ones, (J,)."""

    right: Floats


class VoteSpread(NamedTuple):
    """Sum of squared distances (K,) of one-hot labels from the soft vote, and total weight."""

    squares: Floats
    total: float


@dataclass(frozen=True, eq=False)
class BWAModel:
    """Gaussian labels around truths, by coordinate ascent.

    Attributes
    ----------
    strength, task_strength : float
        Prior weight of the worker precisions and of the truths.
    total : (n_workers,) total weight of each worker's labels
    fixed_class : (n_classes,) log class prior, or None where it is estimated
    rate : (n_classes,)
        Prior sum of squared errors of a worker; zeros until it is estimated.
    class_totals : (n_classes,)
        Total weight of the labels of each class, which decides between equal classes.
    """

    strength: float
    task_strength: float
    total: Floats
    fixed_class: Floats | None
    rate: Floats
    class_totals: Floats

    def begin(self, shard: Shard) -> Truths:
        """Return truths at their prior means."""
        return Truths(shard, len(self.total), self.fixed_class)

    def spread(self, shard: Shard, state: Truths, params: None) -> tuple[Truths, VoteSpread]:
        """Return the squared distance of one-hot labels from the soft vote."""
        votes = soft_votes(shard.indptr, shard.label, shard.weight, len(self.rate))
        weight = np.diff(shard.indptr).astype(np.float64)
        if shard.weight is not None:
            weight = sum_by(state.task, shard.weight, shard.n_tasks)
        weight = weight * state.times
        return state, VoteSpread(weight @ (votes * (1 - votes)), float(weight.sum()))

    def first(self, shard: Shard, state: Truths, start: Start) -> tuple[Truths, BWAStats]:
        """Set the truths to a starting posterior."""
        state.x = start.posterior(shard, len(self.rate))
        return state, state.stats(np.zeros_like(self.rate))

    def local_step(self, shard: Shard, state: Truths, params: BWAParams) -> tuple[Truths, BWAStats]:
        """Update the truths of one shard, and return the squared errors of its labels."""
        state.update(params, self.task_strength)
        return state, state.stats(params.shift)

    def global_step(self, stats: BWAStats, params: BWAParams | None) -> BWAParams:
        """Update precisions given the errors, and class means given the truths."""
        precision = (self.strength + self.total[:, None]) / (self.rate + stats.errors)
        if self.fixed_class is not None:
            return BWAParams(precision, np.zeros_like(stats.excess))
        return BWAParams(precision, stats.excess / np.maximum(stats.free, 1.0))

    def objective(self, stats: BWAStats, params: BWAParams) -> float:
        """Return the log posterior density of the truths, up to a constant."""
        half = 0.5 * (self.strength + self.total)
        evidence = (half[:, None] * np.log(self.rate / (self.rate + stats.errors))).sum()
        return float(evidence - 0.5 * self.task_strength * stats.distance)

    def extrapolate(
        self, first: BWAParams, second: BWAParams, third: BWAParams
    ) -> BWAParams | None:
        """Return None: there is no acceleration."""
        return None

    def answer(self, shard: Shard, state: Truths, params: BWAParams) -> tuple[Floats, Agreement]:
        """Return the truths (n, K), normalised; the prior means where all are zero."""
        state.update(params, self.task_strength)
        x = np.maximum(state.x, 0)
        total = x.sum(axis=1, keepdims=True)
        rows = np.where(total > 0, x / np.where(total > 0, total, 1.0), state.mean)
        chosen, _ = choose_labels(rows, self.class_totals)
        right = state.weight * state.times[state.task] * (chosen[state.task] == state.label)
        return rows, Agreement(sum_by(state.worker, right, len(self.total)))


@dataclass(eq=False, repr=False, kw_only=True)
class BWA(Aggregator):
    r"""Bayesian weighted average: one-hot labels are Gaussian around a truth between 0 and 1.

    .. math::
        1\{y_{ij} = k\} \sim N(x_{ik}, v_{jk}^{-1}), \qquad x_{ik} \sim N(\mu_k, \lambda^{-1}),
        \qquad v_{jk} \sim Gamma(a / 2, b_k / 2), \\
        v_{jk} = \frac{a + n_j}{b_k + \sum_i (1\{y_{ij} = k\} - x_{ik})^2}, \qquad
        x_{ik} = \frac{\lambda\mu_k + \sum_j v_{jk} 1\{y_{ij} = k\}}{\lambda + \sum_j v_{jk}}

    Use it when every task has many labels, most workers are good, and the vote is hard to beat:
    workers get different weights, but never negative ones. Cost per iteration: O(annotations ×
    classes); memory: (tasks + workers) × classes.

    Parameters
    ----------
    strength : float
        :math:`a`, the weight of the precision prior, in labels per worker.
    task_strength : float
        :math:`\lambda`, the weight of the class means in a task's average.
    class_prior : "auto", "estimate", "uniform" or (n_classes,) probabilities
        The means :math:`\mu`. "auto" estimates them unless a task prior is given; then each task's
        mean is its prior.
    max_iter, tol : int, float
        Maximum number of iterations; relative gain that counts as converged.
    n_init : int
        Number of starts: the given one or the soft vote, then random ones; the best objective wins.
    random_state : int, Generator or None

    Attributes
    ----------
    probas_ : (n_tasks, n_classes)
        :math:`x`, normalised.
    precision_ : (n_workers, n_classes)
        :math:`E\,v`, the weight of a worker's label.
    class_mean_, class_prior_ : (n_classes,)
        :math:`\mu`, and the same normalised.
    worker_accuracy_ : (n_workers,)
        Agreement with the final labels.
    history_ : the log posterior density of the truths, precisions integrated out, up to a constant,
        after each pass; it never decreases

    Notes
    -----
    Each class is a separate regression. As in the paper :math:`b_k / a` is the variance of the
    labels around the vote, times :math:`4 (1 - 1 / K)`. The truth of a class that is impossible for
    a task is exactly 0, and that of a gold label is 1.

    References
    ----------
    Y. Li, B. I. P. Rubinstein and T. Cohn (2019). Truth inference at scale: a Bayesian model for
    adjudicating highly redundant crowd annotations. WWW, 1028-1038.

    Examples
    --------
    >>> from wisecrowd.kinds.classes.container import CrowdLabels
    >>> labels = CrowdLabels.from_matrix([[0, 0, 1], [1, 1, 0], [0, 0, 0], [1, 1, 1]])
    >>> model = BWA().fit(labels)
    >>> model.labels_
    array([0, 1, 0, 1])
    >>> model.precision_[:, 0].round(1)
    array([5.4, 5.4, 4.4])
    """

    strength: float = 15.0
    task_strength: float = 1.0
    class_prior: Any = "auto"
    max_iter: int = 500
    tol: float = 1e-8
    n_init: int = 1
    random_state: Any = 0

    saves: ClassVar[dict[str, Saved]] = {
        "precision_": SavedArray("J K", "positive"),
        "prior_precision_": SavedArray("K", "positive"),
        "class_mean_": SavedArray("K"),
        "class_prior_": SavedArray("K", "distribution"),
    }
    promises: ClassVar[Tags] = Tags(monotone=True, inductive=True, online=True, shardable=True)
    footprint = Footprint(label=59.8, cell=46.9)
    limits: ClassVar[Limits] = {"strength": Number(1e-12), "task_strength": Number(1e-12)}

    def _fit(self, problem: Problem) -> Fit:
        labels = problem.data
        K = labels.n_classes
        model, shards = self._model(problem)
        states = shards.begin(model)
        spread: VoteSpread = shards.map_reduce(model, "spread", states, None)[1]
        model = replace(model, rate=self.strength * vote_variance(spread))

        def attempt(number: int) -> LoopResult:
            start = Start(problem.start)
            if number > 0:
                start = random_start(labels, problem.start, problem.rng)
            states, params = first_params(model, shards, start)[::-1]
            return iterate(model, shards, params, states, max_iter=self.max_iter, tol=self.tol)

        best = best_of(attempt, self.n_init)
        probas, sink = posterior_of(labels)
        found: Agreement = shards.collect(model, "answer", best.states, best.params, sink)
        accuracy = share_of(found.right, model.total, 1 / K)
        known = np.full(K, 1 / K) if model.fixed_class is None else np.exp(model.fixed_class)
        mean = known / known.sum() + best.params.shift
        return Fit(
            probas,
            accuracy,
            class_prior=np.maximum(mean, 0) / np.maximum(mean, 0).sum(),
            n_iter=best.n_iter,
            converged=best.converged,
            history=best.history,
            extra={
                "precision": best.params.precision,
                "prior_precision": self.strength / model.rate,
                "class_mean": mean,
            },
        )

    def _model(self, problem: Problem) -> tuple[BWAModel, MemoryShards]:
        labels = problem.data
        J, K = labels.n_workers, labels.n_classes
        n_tasks = labels.n_tasks_in_memory
        require_memory(
            8 * K * (6 * n_tasks + 6 * J),
            f"BWA with {labels.n_tasks} tasks and {K} classes would",
            "use majority-vote or wawa, which need a few bytes per annotation",
        )
        fixed = fixed_class_prior(self.class_prior, problem.prior, K, labels)
        strengths = float(self.strength), float(self.task_strength)
        model = BWAModel(
            *strengths, worker_weights(labels), fixed, np.zeros(K), labels.class_totals
        )
        return model, problem.cut(J * K)

    def _predict(self, problem: Problem) -> Floats:
        labels, precision = problem.data, self.precision_
        if labels.n_workers > len(precision):  # unknown workers have the prior's
            precision = np.vstack([precision, self.prior_precision_])
        model, shards = self._model(problem)
        known = np.full(labels.n_classes, 1 / labels.n_classes)
        shift = self.class_mean_ - known if model.fixed_class is None else np.zeros(len(known))
        probas, params = np.empty((labels.n_tasks, len(known))), BWAParams(precision, shift)
        shards.collect(model, "answer", shards.begin(model), params, rows_into(probas))
        return probas


def prior_means(log_rows: Floats) -> Floats:
    """Return log priors (R, K) as probabilities: the prior means of truths."""
    rows = np.exp(log_rows - log_rows.max(axis=1, keepdims=True))
    return np.asarray(rows / rows.sum(axis=1, keepdims=True))


def vote_variance(spread: VoteSpread) -> Floats:
    r"""Return the variance (K,) of one-hot labels around the vote, times :math:`4 (1 - 1 / K)`."""
    scale = 4 * (1 - 1 / len(spread.squares))
    return np.maximum(scale * spread.squares / max(spread.total, 1e-300), LEAST)
