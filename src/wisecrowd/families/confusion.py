r"""Methods with a confusion matrix per worker, fitted by EM.

.. math::
    z_i \sim Cat(\pi), \qquad y_{ij} \mid z_i = k \sim Cat(\theta_{jk\cdot})

A method is one hook: expected counts to log confusion matrices.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.base import Aggregator
from wisecrowd.core.labels import CrowdLabels
from wisecrowd.core.memory import require_memory
from wisecrowd.core.parameters import check_flag
from wisecrowd.core.problem import Problem
from wisecrowd.core.result import FitResult
from wisecrowd.core.saved_attributes import Saved, SavedArray
from wisecrowd.engines.memory import Block, MemoryShards
from wisecrowd.inference.class_prior import fixed_class_prior, known_class_prior, log_shares
from wisecrowd.inference.initial import condition, perturbed, vote_posterior
from wisecrowd.inference.loop import Run, best_of, run, squarem

Floats = NDArray[np.float64]
TINY = 1e-300  # a probability of zero, with a finite logarithm
CHUNK = 1 << 16  # annotations that are looked at together


def safe_log(probabilities: Floats) -> Floats:
    """Return the logarithm, with zero taken as 1e-300: finite, and impossible all the same."""
    return np.log(np.maximum(probabilities, TINY))


class Stats(NamedTuple):
    """Additive statistics of a pass: counts (J·K, K) by cell, class mass (K,), log-likelihood."""

    counts: Floats
    mass: Floats
    log_likelihood: float


class Evidence(NamedTuple):
    """Additive statistics of a pass that only fills posteriors."""

    log_likelihood: float


@dataclass(frozen=True, eq=False)
class Params:
    """Worker and class parameters; ``table`` (J·K, K) is the log confusion, true class last."""

    table: Floats
    log_class: Floats
    log_prior: float
    extra: dict[str, Any]


class ConfusionEM(Aggregator):
    """EM for confusion-matrix models; subclasses say how counts become matrices.

    Parameters
    ----------
    class_prior : "auto", "estimate", "uniform" or (n_classes,) probabilities
        "auto" estimates the class frequencies unless a task prior is given.
    max_iter, tol : int, float
        Stop after so many passes, or when the objective gains less than ``tol`` times its size.
    n_init : int
        Number of starts: the given one or the soft vote, then random ones; the best objective wins.
    accelerate : bool
        Extrapolate (SQUAREM) with a safeguard that keeps the objective from falling.
    random_state : int, Generator or None
    """

    class_prior: Any = "auto"
    max_iter: int = 100
    tol: float = 1e-6
    n_init: int = 1
    accelerate: bool = False
    random_state: Any = 0

    _hard = False  # whether the E-step takes the most probable class instead of the posterior
    _trial: int | None = None  # passes of several starts after which only the best one goes on

    saves: ClassVar[dict[str, Saved]] = {
        "class_prior_": SavedArray("K", "distribution"),
        "confusion_": SavedArray("J K K", "distribution"),
    }

    # -------------------------------------------------------------------------------- the hook

    def _worker_update(
        self, counts: Floats, previous: dict[str, Any] | None
    ) -> tuple[Floats, float, dict[str, Any]]:
        """Return the M-step: (log confusion (J, K, L), log prior density, extra parameters).

        ``counts[j, k, l]`` is the expected number of labels ``l`` by worker ``j`` on class ``k``;
        ``previous`` holds the extra parameters of the iteration before, None at the start.
        """
        raise TypeError(f"{type(self).__name__} must define _worker_update.")

    def _prepare(self, workers: NDArray[Any], n_classes: int) -> None:
        """Set up what the hook needs once per fit or prediction, such as its pseudo-counts."""

    # -------------------------------------------------------------------------- inference contract

    def local_step(self, block: Block, state: Any, params: Params) -> tuple[Any, Stats]:
        """E-step and expected counts of one block; ``state`` is where posteriors go, or None."""
        counts, mass = np.zeros_like(params.table), np.zeros_like(params.log_class)
        value = block.kernels("confusion").confusion_step(
            block.indptr, block.cell, block.weight, params.table, params.log_class,
            block.prior_rows, block.prior_index, counts, mass, state, self._hard,
        )  # fmt: skip
        return state, Stats(counts, mass, value)

    def global_step(self, stats: Stats, params: Params | None) -> Params:
        """M-step."""
        n_classes = len(stats.mass)
        by_class = stats.counts.reshape(-1, n_classes, n_classes).transpose(0, 2, 1)
        previous = None if params is None else params.extra
        log_confusion, log_prior, extra = self._worker_update(by_class, previous)
        return Params(as_table(log_confusion), self._class_update(stats.mass), log_prior, extra)

    def objective(self, stats: Stats, params: Params) -> float:
        """Log-likelihood plus log prior density, both at ``params``."""
        return stats.log_likelihood + params.log_prior

    def extrapolate(self, first: Params, second: Params, third: Params) -> Params | None:
        """Extrapolate in the log domain and make it probabilities again."""
        return None

    def _class_update(self, mass: Floats) -> Floats:
        if self._fixed_class is not None:
            return self._fixed_class
        return log_shares(mass)

    # ------------------------------------------------------------------------------------- fit

    def _validate_parameters(self) -> None:
        super()._validate_parameters()
        check_flag("accelerate", self.accelerate)

    def _fit(self, problem: Problem) -> FitResult:
        labels, prior, rng = problem.data, problem.prior, problem.rng
        J, K = labels.n_workers, labels.n_classes
        require_memory(
            8 * (4 * J * K * K + 2 * labels.n_tasks * K),
            f"{type(self).__name__} with {J} workers and {K} classes would",
            "use one-coin or majority-vote, which need a few bytes per annotation",
        )
        self._class_ids = labels.classes
        self._prepare(labels.workers, K)
        self._fixed_class = fixed_class_prior(self.class_prior, prior, K)
        engine = problem.cut(J * K * K)

        def go(params: Params | None, most: int, after: Run | None = None) -> Run:
            room = np.empty((labels.n_tasks, K))  # costs nothing until it is written
            return run(
                self, engine, params,
                max_iter=most, tol=self.tol, accelerate=self.accelerate, after=after,
                last_states=None if self._hard else [room[b.tasks] for b in engine.shards()],
            )  # fmt: skip

        def attempt(number: int) -> Run:
            noise = rng if number > 0 else None
            return go(self._first_params(engine, J, K, problem.start, noise), most)

        several = self.n_init > 1 and self._trial is not None
        most = min(self.max_iter, self._trial or 0) if several else self.max_iter
        best = best_of(attempt, self.n_init)
        if not best.converged and most < self.max_iter:
            best = go(None, self.max_iter, after=best)
        if best.states[0] is not None:
            probas = best.states[0].base
        else:
            probas, _ = posterior(engine, best.params, K)
        return self._result(labels, best, probas)

    def _first_params(
        self,
        engine: MemoryShards,
        n_workers: int,
        n_classes: int,
        given: Floats | None,
        rng: np.random.Generator | None,
    ) -> Params:
        """M-step from a starting posterior: given, soft vote, or a random one."""
        counts = np.zeros((n_workers * n_classes, n_classes))
        mass = np.zeros(n_classes)
        for block in engine.shards():
            if given is None and rng is None and not block.prior_rows.any():
                block.kernels("confusion").add_vote_counts(
                    block.indptr, block.label, block.cell, block.weight, counts, mass
                )
                continue
            if given is None:
                q = vote_posterior(block, n_classes)
            else:
                q = condition(given[block.tasks], block)
            if rng is not None:
                q = condition(perturbed(q, rng), block)
            block.kernels("confusion").add_counts(block.indptr, block.cell, block.weight, q, counts)
            mass += q[np.diff(block.indptr) > 0].sum(axis=0)
        return self.global_step(Stats(counts, mass, 0.0), None)

    def _result(self, labels: CrowdLabels, best: Run, probas: Floats) -> FitResult:
        params: Params = best.params
        confusion = self._confusion_of(params)
        class_prior = np.exp(params.log_class)
        class_prior = class_prior / class_prior.sum()
        counts = as_confusion(best.stats.counts)
        accuracy, error = accuracy_fitted(labels, probas, confusion, class_prior, counts)
        return FitResult(
            probas,
            accuracy,
            error,
            class_prior=class_prior,
            confusion=confusion,
            n_iter=best.n_iter,
            converged=best.converged,
            history=best.history,
            extra=params.extra,
        )

    def _confusion_of(self, params: Params) -> Floats:
        """Return the (J, K, L) confusion matrices to publish; rows sum to one."""
        return np.exp(as_confusion(params.table))

    # --------------------------------------------------------------------------------- predict

    def _predict(self, problem: Problem) -> Floats:
        engine, params = self._known_params(problem, self._known_log_confusion())
        return posterior(engine, params, problem.data.n_classes)[0]

    def _log_likelihood(self, problem: Problem) -> float:
        engine, params = self._known_params(problem, safe_log(self.confusion_))
        return posterior(engine, params, problem.data.n_classes)[1]

    def _known_params(self, problem: Problem, log_confusion: Floats) -> tuple[MemoryShards, Params]:
        if problem.data.n_workers > len(log_confusion):  # one more: the unknown worker
            log_confusion = np.concatenate([log_confusion, safe_log(self._unknown_worker())])
        log_class = known_class_prior(self.class_prior, problem.prior, self.class_prior_)
        engine = problem.cut(log_confusion.size)
        return engine, Params(as_table(log_confusion), log_class, 0.0, {})

    def _known_log_confusion(self) -> Floats:
        """Return the fitted log confusion (J, K, L) that the E-step of new tasks uses."""
        return safe_log(self.confusion_)

    def _unknown_worker(self) -> Floats:
        """Return the (1, K, K) confusion of a worker without labels: uninformative."""
        n_classes = len(self.classes_)
        return np.full((1, n_classes, n_classes), 1 / n_classes)


def as_table(log_confusion: Floats) -> Floats:
    """(J, K, L) true class second → (J·L, K) true class last, contiguous."""
    n_classes = log_confusion.shape[1]
    return np.ascontiguousarray(log_confusion.transpose(0, 2, 1)).reshape(-1, n_classes)


def as_confusion(table: Floats) -> Floats:
    """(J·L, K) → (J, K, L)."""
    n_classes = table.shape[1]
    return np.ascontiguousarray(table.reshape(-1, n_classes, n_classes).transpose(0, 2, 1))


def posterior(engine: MemoryShards, params: Params, n_classes: int) -> tuple[Floats, float]:
    """Return the (n_tasks, n_classes) posterior under ``params`` and the log-likelihood.

    Always the soft one: a method that takes hard steps still owes honest probabilities.
    """
    probas = np.empty((engine.n_tasks, n_classes))

    def fill(block: Block, state: Any, params: Params) -> tuple[None, Evidence]:
        value = block.kernels("confusion").confusion_step(
            block.indptr, block.cell, block.weight, params.table, params.log_class,
            block.prior_rows, block.prior_index, None, None, probas[block.tasks], False,
        )  # fmt: skip
        return None, Evidence(value)

    _, evidence = engine.map_reduce(fill, [None] * len(engine.shards()), params)
    return probas, evidence.log_likelihood


def dirichlet_update(counts: Floats, alpha: Floats) -> tuple[Floats, float]:
    r"""Return the log confusion from (pseudo-)counts, and :math:`\sum \alpha \log\theta`."""
    smoothed = counts + alpha
    total = smoothed.sum(axis=2, keepdims=True)
    # A class that a worker never met, without a prior: nothing is known, so uniform.
    confusion = np.where(total > 0, smoothed / np.where(total > 0, total, 1), 1 / counts.shape[1])
    log_confusion = safe_log(confusion)
    return log_confusion, float((alpha * log_confusion).sum())


def naive_bayes(problem: Problem, confusion: Floats, class_prior: Floats) -> Floats:
    """Return the posterior (n_tasks, n_classes) of new tasks under known confusion matrices.

    Workers beyond those that ``confusion`` (J, K, K) has are unknown, and their labels say nothing.
    """
    return known_mixture(problem, confusion, class_prior)[0]


def known_mixture(problem: Problem, confusion: Floats, class_prior: Floats) -> tuple[Floats, float]:
    """Return the posterior of :func:`naive_bayes` and the log-likelihood."""
    labels = problem.data
    extra = max(labels.n_workers - len(confusion), 0)
    unknown = np.full((extra, *confusion.shape[1:]), 1 / labels.n_classes)
    table = as_table(safe_log(np.concatenate([confusion, unknown])))
    log_class = np.zeros(labels.n_classes) if problem.prior.given else safe_log(class_prior)
    engine = problem.cut(table.size)
    return posterior(engine, Params(table, log_class, 0.0, {}), labels.n_classes)


def accuracy_of(confusion: Floats, class_prior: Floats, per_class: Floats) -> tuple[Floats, Floats]:
    r"""Worker accuracy :math:`\sum_k \pi_k \theta_{jkk}` and its standard error (delta method).

    The variance of :math:`\theta_{jkk}` is :math:`\theta (1 - \theta) / (n_{jk} + 1)`, with
    :math:`n_{jk}` the expected number of labels on class ``k``, and 1/4 at most where there are
    none.
    """
    diagonal = np.diagonal(confusion, axis1=1, axis2=2)  # (J, K)
    spread = np.maximum(diagonal * (1 - diagonal), 1 / (per_class + 4))  # never claim certainty
    variance = np.minimum(spread / (per_class + 1), 0.25)
    accuracy = diagonal @ class_prior
    return accuracy, np.sqrt(variance @ class_prior**2)


def accuracy_fitted(
    labels: CrowdLabels, probas: Floats, confusion: Floats, class_prior: Floats, counts: Floats
) -> tuple[Floats, Floats]:
    r"""Worker accuracy and its standard error where the classes are themselves only believed.

    A label that is right with probability :math:`r` says less of its worker than one whose class is
    known. Louis' formula for one accuracy :math:`a` per worker: of the information of ``n`` labels
    the share

    .. math:: 1 - \frac{1}{n} \sum \frac{r (1 - r)}{a (1 - a)}

    is there, and the rest is missing with the classes. To the variance comes the square of what the
    prior pulls the accuracy away from that of the expected counts alone.

    Parameters
    ----------
    labels : CrowdLabels
    probas : (n_tasks, n_classes) posterior
    confusion : (n_workers, n_classes, n_classes)
    class_prior : (n_classes,)
    counts : (n_workers, n_classes, n_classes)
        Expected labels of each worker, true class second.

    References
    ----------
    T. A. Louis (1982). Finding the observed information matrix when using the EM algorithm.
    Journal of the Royal Statistical Society B 44(2), 226-233.
    """
    per_class = counts.sum(axis=2)
    total = np.maximum(per_class.sum(axis=1), TINY)
    right = np.einsum("jkk->j", counts) / total
    expected = (per_class * np.diagonal(confusion, axis1=1, axis2=2)).sum(axis=1) / total
    spread = np.maximum(expected * (1 - expected), TINY)
    unsure = _unsure_labels(labels, probas) / total
    known = np.clip(1 - unsure / spread, 0.0, 1.0)
    accuracy, error = accuracy_of(confusion, class_prior, per_class * known[:, None])
    return accuracy, np.hypot(error, right - expected)


def _unsure_labels(labels: CrowdLabels, probas: Floats) -> Floats:
    """(n_workers,): sum of r (1 - r) over the labels of each worker, r their chance of being right.

    In chunks, so that a fit needs no more memory for it.
    """
    found, cells = np.zeros(labels.n_workers), probas.ravel()
    for start in range(0, labels.n_annotations, CHUNK):
        rows = slice(start, start + CHUNK)
        r = cells.take(labels.task[rows] * np.int64(labels.n_classes) + labels.label[rows])
        r *= 1 - r
        if labels.weight is not None:
            r *= labels.weight[rows]
        found += np.bincount(labels.worker[rows], r, labels.n_workers)
    return found


def extrapolate_tables(
    first: Params, second: Params, third: Params, fixed_class: Floats | None
) -> Params | None:
    """Extrapolate log confusion tables and class prior by SQUAREM, then normalise both.

    A class prior that is fixed stays as it is, normalised or not: the objective counts on it.
    """
    K = len(first.log_class)
    flat = [np.concatenate([p.table.ravel(), p.log_class]) for p in (first, second, third)]
    if max(np.abs(x).max() for x in flat) > 100:
        return None  # probabilities of practically zero: the log domain no longer extrapolates
    moved = squarem(*flat)
    if moved is None or not np.isfinite(moved).all():
        return None
    table = moved[:-K].reshape(-1, K, K)  # (J, L, K)
    table = table - np.logaddexp.reduce(table, axis=1, keepdims=True)
    shares = moved[-K:] - np.logaddexp.reduce(moved[-K:])
    log_class = shares if fixed_class is None else fixed_class
    return Params(table.reshape(-1, K), log_class, 0.0, third.extra)
