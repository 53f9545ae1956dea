"""BWA: labels as numbers, workers as precisions, truths as weighted averages."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.base import Aggregator, Tags
from wisecrowd.core.footprint import Footprint
from wisecrowd.core.memory import require_memory
from wisecrowd.core.parameters import check_number
from wisecrowd.core.problem import Problem
from wisecrowd.core.result import FitResult, choose_labels
from wisecrowd.core.saved_attributes import Saved, SavedArray
from wisecrowd.engines.memory import Block, MemoryShards
from wisecrowd.families.averaging import Params, Stats, Truths, prior_means, vote_variance
from wisecrowd.families.received import accuracy_error, share_of, worker_weights
from wisecrowd.inference.class_prior import fixed_class_prior
from wisecrowd.inference.initial import condition, perturbed, vote_posterior
from wisecrowd.inference.loop import Run, best_of, run

Floats = NDArray[np.float64]


@dataclass(eq=False, repr=False, kw_only=True)
class BWA(Aggregator):
    r"""Bayesian weighted average: one-hot labels are Gaussian around a truth between 0 and 1.

    .. math::
        1\{y_{ij} = k\} \sim N(x_{ik}, v_{jk}^{-1}), \qquad x_{ik} \sim N(\mu_k, \lambda^{-1}),
        \qquad v_{jk} \sim Gamma(a / 2, b_k / 2), \\
        v_{jk} = \frac{a + n_j}{b_k + \sum_i (1\{y_{ij} = k\} - x_{ik})^2}, \qquad
        x_{ik} = \frac{\lambda\mu_k + \sum_j v_{jk} 1\{y_{ij} = k\}}{\lambda + \sum_j v_{jk}}

    Use it when every task has many labels, most workers are good, and the vote is hard to beat: it
    weighs workers, and never turns against the majority. Cost per iteration: O(annotations ×
    classes); memory: (tasks + workers) × classes.

    Parameters
    ----------
    strength : float
        :math:`a`, how many labels the prior of a worker's precision is worth.
    task_strength : float
        :math:`\lambda`, how much the class means weigh in a task's average.
    class_prior : "auto", "estimate", "uniform" or (n_classes,) probabilities
        The means :math:`\mu`. "auto" estimates them unless a task prior is given, which is then
        the mean of each task.
    max_iter, tol : int, float
        Stop after so many passes, or when the objective gains less than ``tol`` times its size.
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
    Each class is a regression of its own. As in the paper :math:`b_k / a` is the variance of the
    labels around the vote, times :math:`4 (1 - 1 / K)`. Classes that are impossible for a task have
    a truth of exactly 0, and gold one of 1.

    References
    ----------
    Y. Li, B. I. P. Rubinstein and T. Cohn (2019). Truth inference at scale: a Bayesian model for
    adjudicating highly redundant crowd annotations. WWW, 1028-1038.

    Examples
    --------
    >>> from wisecrowd.core.labels import CrowdLabels
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
    promises: ClassVar[Tags] = Tags(monotone=True, inductive=True)
    footprint = Footprint(label=59.8, cell=46.9)

    def _validate_parameters(self) -> None:
        super()._validate_parameters()
        check_number("strength", self.strength, 1e-12)
        check_number("task_strength", self.task_strength, 1e-12)

    # -------------------------------------------------------------------------- inference contract

    def local_step(self, block: Block, state: Truths, params: Params) -> tuple[Truths, Stats]:
        """Truths of one block, and the squared errors of its labels."""
        state.update(params, self.task_strength)
        return state, state.stats(params.shift)

    def global_step(self, stats: Stats, params: Params | None) -> Params:
        """Update precisions given the errors, and class means given the truths."""
        precision = (self.strength + self._total[:, None]) / (self._rate + stats.errors)
        if self._fixed_class is not None:
            return Params(precision, np.zeros_like(stats.excess))
        return Params(precision, stats.excess / np.maximum(stats.free, 1.0))

    def objective(self, stats: Stats, params: Params) -> float:
        """Log posterior density of the truths, up to a constant, precisions integrated out."""
        half = 0.5 * (self.strength + self._total)
        evidence = (half[:, None] * np.log(self._rate / (self._rate + stats.errors))).sum()
        return float(evidence - 0.5 * self.task_strength * stats.distance)

    # -------------------------------------------------------------------------------------- fit

    def _fit(self, problem: Problem) -> FitResult:
        labels, prior, rng = problem.data, problem.prior, problem.rng
        K = labels.n_classes
        self._fixed_class = fixed_class_prior(self.class_prior, prior, K)
        engine, states = self._truths(problem, self._fixed_class)
        self._total = worker_weights(labels)
        self._rate = self.strength * vote_variance(engine, K)

        def attempt(number: int) -> Run:
            params = self._first_params(engine, states, problem.start, rng if number > 0 else None)
            return run(self, engine, params, max_iter=self.max_iter, tol=self.tol, states=states)

        best = best_of(attempt, self.n_init)
        probas = self._posterior(states, best.params)
        chosen, _ = choose_labels(probas, labels.class_totals)
        weight = 1.0 if labels.weight is None else labels.weight
        won = weight * (chosen[labels.task] == labels.label)
        right = np.bincount(labels.worker, won, labels.n_workers).astype(np.float64)
        accuracy = share_of(right, self._total, 1 / K)
        known = np.full(K, 1 / K) if self._fixed_class is None else np.exp(self._fixed_class)
        mean = known / known.sum() + best.params.shift
        return FitResult(
            probas,
            accuracy,
            accuracy_error(accuracy, self._total),
            class_prior=np.maximum(mean, 0) / np.maximum(mean, 0).sum(),
            n_iter=best.n_iter,
            converged=best.converged,
            history=best.history,
            extra={
                "precision": best.params.precision,
                "prior_precision": self.strength / self._rate,
                "class_mean": mean,
            },
        )

    def _truths(self, problem: Problem, fixed: Floats | None) -> tuple[MemoryShards, list[Truths]]:
        labels, prior = problem.data, problem.prior
        J, K = labels.n_workers, labels.n_classes
        require_memory(
            8 * K * (6 * labels.n_tasks + 6 * J),
            f"BWA with {labels.n_tasks} tasks and {K} classes would",
            "use majority-vote or wawa, which need a few bytes per annotation",
        )
        engine = problem.cut(J * K)
        means = prior_means(prior.rows if fixed is None else prior.rows + fixed)
        return engine, [Truths(block, J, means) for block in engine.shards()]

    def _first_params(
        self,
        engine: MemoryShards,
        states: list[Truths],
        given: Floats | None,
        rng: np.random.Generator | None,
    ) -> Params:
        """Update from the given truths, the soft vote, or a random mixture with either."""
        K = self._rate.shape[0]
        for block, state in zip(engine.shards(), states, strict=True):
            if given is None:
                state.x = vote_posterior(block, K)
            else:
                state.x = condition(given[block.tasks], block)
            if rng is not None:
                state.x = condition(perturbed(state.x, rng), block)

        def measure(block: Block, state: Truths, shift: Floats) -> tuple[Truths, Stats]:
            return state, state.stats(shift)

        return self.global_step(engine.map_reduce(measure, states, np.zeros(K))[1], None)

    def _posterior(self, states: list[Truths], params: Params) -> Floats:
        """Return the truths under ``params``, normalised; the prior means where all are zero."""
        for state in states:
            state.update(params, self.task_strength)
        x = np.concatenate([np.maximum(state.x, 0) for state in states])
        total = x.sum(axis=1, keepdims=True)
        mean = np.concatenate([state.mean for state in states])
        return np.where(total > 0, x / np.where(total > 0, total, 1.0), mean)

    # ---------------------------------------------------------------------------------- predict

    def _predict(self, problem: Problem) -> Floats:
        labels, prior = problem.data, problem.prior
        K = labels.n_classes
        fixed = fixed_class_prior(self.class_prior, prior, K)
        shift = self.class_mean_ - 1 / K if fixed is None else np.zeros(K)
        precision = self.precision_
        if labels.n_workers > len(precision):  # one more: a worker like any other beforehand
            precision = np.vstack([precision, self.prior_precision_])
        return self._posterior(self._truths(problem, fixed)[1], Params(precision, shift))
