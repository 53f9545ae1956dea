r"""Dawid and Skene's confusion-matrix model, fitted by EM.

A task has a class with the frequencies :math:`\pi`, and worker ``j`` labels tasks of class ``k``
by row ``k`` of a matrix :math:`\theta_j`, whose prior are the pseudo-counts :math:`\alpha`.

.. math::
    \text{E-step:} \quad & q_i(k) \propto \pi_k \prod_j \theta_{jky_{ij}} \\
    \text{M-step:} \quad & \theta_{jkl} \propto \alpha_{kl} + \sum_{i: y_{ij} = l} q_i(k), \qquad
        \pi_k \propto \sum_i q_i(k) \\
    \text{objective:} \quad & \sum_i \log \sum_k \pi_k \prod_j \theta_{jky_{ij}}
        + \sum_{jkl} \alpha_{kl} \log \theta_{jkl}
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from wisecrowd.core.aggregator import Aggregator, Tags
from wisecrowd.core.footprint import Footprint
from wisecrowd.core.parameter_checks import Flag, Limits
from wisecrowd.core.saved_attributes import Saved, SavedArray
from wisecrowd.core.types import Floats
from wisecrowd.inference.engine import posterior_of
from wisecrowd.inference.loop import squarem
from wisecrowd.inference.priors import pseudo_counts
from wisecrowd.kinds.classes.families.class_prior import (
    fixed_class_prior,
    known_class_prior,
    log_shares,
)
from wisecrowd.kinds.classes.families.confusion import (
    ConfusionParams,
    ConfusionStats,
    KnownConfusion,
    as_confusion,
    as_table,
    climb,
    fit_of,
    known_posterior,
    repeated_rows_step,
    require_tables,
    safe_log,
)

if TYPE_CHECKING:
    from wisecrowd.core.problem import Problem
    from wisecrowd.core.result import Fit
    from wisecrowd.kinds.classes.shards import Shard


@dataclass(frozen=True, eq=False, kw_only=True)
class DirichletModel(KnownConfusion):
    """Confusion matrices with Dirichlet pseudo-counts, by EM.

    Attributes
    ----------
    alpha : (K, L) or (J, K, L)
    """

    alpha: Floats

    # ----------------------------------------------------------------------------------- E-step

    def local_step(
        self, shard: Shard, state: Any, params: ConfusionParams
    ) -> tuple[Any, ConfusionStats]:
        """Return the expected counts of one shard."""
        return state, self._pass(shard, params, None)

    def last_step(
        self, shard: Shard, state: Any, params: ConfusionParams
    ) -> tuple[Floats, ConfusionStats]:
        """Return the posteriors (n, K) of one shard, and the statistics of ``local_step``."""
        probas = np.empty((shard.n_tasks, len(params.log_class)))
        return probas, self._pass(shard, params, probas)

    def _pass(self, shard: Shard, params: ConfusionParams, probas: Floats | None) -> ConfusionStats:
        r"""Add the posteriors :math:`q_i(k) \propto \pi_k \prod_j \theta_{jky_{ij}}` to the counts.

        A kernel adds the logarithms of a task's labels, from ``params.table[cell]`` where a cell is
        a worker and a label, and normalises over the classes; the logarithms of the normalisers are
        the log-likelihood. ``probas`` (n, K) is filled if given.
        """
        if shard.repeat is not None and probas is None:  # rows that stand for several tasks
            return repeated_rows_step(shard, params, self.hard)
        counts, mass = np.zeros_like(params.table), np.zeros_like(params.log_class)
        log_likelihood = shard.kernels("confusion").confusion_step(
            shard.indptr, shard.cell, shard.weight, params.table, params.log_class,
            shard.prior_rows, shard.prior_index, counts, mass, probas, self.hard,
        )  # fmt: skip
        return ConfusionStats(counts, mass, log_likelihood)

    # ----------------------------------------------------------------------------------- M-step

    def global_step(self, stats: ConfusionStats, params: ConfusionParams | None) -> ConfusionParams:
        """Return the matrices and class frequencies that fit the expected counts best."""
        counts = stats.counts.reshape(-1, self.n_classes, self.n_classes).transpose(0, 2, 1)
        previous = None if params is None else params.extra
        log_confusion, log_prior, extra = self.worker_update(counts, previous)
        log_class = log_shares(stats.mass) if self.fixed_class is None else self.fixed_class
        return ConfusionParams(as_table(log_confusion), log_class, log_prior, extra)

    def worker_update(
        self, counts: Floats, previous: dict[str, Any] | None
    ) -> tuple[Floats, float, dict[str, Any]]:
        """Return the log of each row's share of expected counts plus pseudo-counts.

        ``counts[j, k, l]`` is the expected number of labels ``l`` by worker ``j`` on class ``k``.
        """
        return *dirichlet_update(counts, self.alpha), {}

    # -------------------------------------------------------------------------------- objective

    def objective(self, stats: ConfusionStats, params: ConfusionParams) -> float:
        """Return the log-likelihood plus log prior density, both at ``params``."""
        return stats.log_likelihood + params.log_prior

    def extrapolate(
        self, first: ConfusionParams, second: ConfusionParams, third: ConfusionParams
    ) -> ConfusionParams | None:
        """Extrapolate in the log domain and normalise."""
        moved = extrapolate_tables(first, second, third, self.fixed_class)
        if moved is None:
            return None
        return replace(moved, log_prior=float((self.alpha * as_confusion(moved.table)).sum()))


def dirichlet_update(counts: Floats, alpha: Floats) -> tuple[Floats, float]:
    r"""Return the log confusion from (pseudo-)counts, and :math:`\sum \alpha \log\theta`."""
    confusion = counts + alpha
    total = confusion.sum(axis=2, keepdims=True)
    unseen = total <= 0
    confusion /= np.where(unseen, 1, total)
    if unseen.any():  # without a prior, a class that a worker never saw has a uniform row
        confusion[unseen[:, :, 0]] = 1 / counts.shape[1]
    log_confusion = safe_log(confusion)
    return log_confusion, float((alpha * log_confusion).sum())


def extrapolate_tables(
    first: ConfusionParams,
    second: ConfusionParams,
    third: ConfusionParams,
    fixed_class: Floats | None,
) -> ConfusionParams | None:
    """Extrapolate log confusion tables and class prior by SQUAREM, then normalise both.

    A fixed class prior stays unchanged, normalised or not, because the objective uses it.
    """
    K = len(first.log_class)
    flat = [np.concatenate([p.table.ravel(), p.log_class]) for p in (first, second, third)]
    if max(np.abs(x).max() for x in flat) > 100:
        return None  # some probabilities are almost zero: do not extrapolate logarithms
    moved = squarem(*flat)
    if moved is None or not np.isfinite(moved).all():
        return None
    table = moved[:-K].reshape(-1, K, K)  # (J, L, K)
    table = table - table.max(axis=1, keepdims=True)
    table -= np.log(np.exp(table).sum(axis=1, keepdims=True))
    shares = moved[-K:] - np.logaddexp.reduce(moved[-K:])
    log_class = shares if fixed_class is None else fixed_class
    return ConfusionParams(table.reshape(-1, K), log_class, 0.0, third.extra)


@dataclass(eq=False, repr=False, kw_only=True)
class DawidSkene(Aggregator):
    r"""A full confusion matrix per worker, by maximum likelihood or maximum a posteriori EM.

    .. math::
        z_i \sim Cat(\pi), \qquad y_{ij} \mid z_i = k \sim Cat(\theta_{jk\cdot}), \qquad
        \theta_{jkl} \propto \sum_{i: y_{ij} = l} q_i(k) + \alpha_{kl}

    Use it when workers confuse particular classes and have a few dozen labels each. Cost per
    iteration: O(annotations × classes); memory: workers × classes².

    Parameters
    ----------
    prior : "weak", None, number, (n_classes, n_classes) array or prior object
        Pseudo-counts :math:`\alpha`. "weak" has 2 on the diagonal and 2 / n_classes elsewhere; None
        is maximum likelihood; :class:`~wisecrowd.inference.priors.History` uses a previous fit.
    class_prior, max_iter, tol, n_init, accelerate, random_state
        See :class:`~wisecrowd.kinds.classes.families.confusion.ConfusionEM`.

    Attributes
    ----------
    confusion_ : (n_workers, n_classes, n_classes)
        ``confusion_[j, k, l]`` = p(label l | class k, worker j).
    class_prior_ : (n_classes,)

    Notes
    -----
    The paper maximises the likelihood. On sparse crowds with many classes maximum likelihood
    degenerates, hence the weak default prior.

    References
    ----------
    A. P. Dawid and A. M. Skene (1979). Maximum likelihood estimation of observer error-rates using
    the EM algorithm. Applied Statistics 28(1), 20-28.

    Examples
    --------
    >>> from wisecrowd.kinds.classes.container import CrowdLabels
    >>> labels = CrowdLabels.from_matrix([[0, 0, 1], [1, 1, 0], [0, 0, 0], [1, 1, 1]])
    >>> DawidSkene().fit(labels).labels_
    array([0, 1, 0, 1])
    """

    prior: Any = "weak"
    class_prior: Any = "auto"
    max_iter: int = 200
    tol: float = 1e-6
    n_init: int = 1
    accelerate: bool = True
    random_state: Any = 0

    saves: ClassVar[dict[str, Saved]] = {
        "class_prior_": SavedArray("K", "distribution"),
        "confusion_": SavedArray("J K K", "distribution"),
    }
    promises: ClassVar[Tags] = Tags(
        monotone=True, inductive=True, likelihood=True, confusion=True, online=True, shardable=True
    )
    footprint = Footprint(label=14.0, task=13.6, cell=10.8, confusion=94.9)
    limits: ClassVar[Limits] = {"accelerate": Flag()}

    def _model(self, problem: Problem) -> DirichletModel:
        J, K = problem.data.n_workers, problem.data.n_classes
        fixed = fixed_class_prior(self.class_prior, problem.prior, K, problem.data)
        alpha = pseudo_counts(self.prior, problem.data)
        return DirichletModel(n_workers=J, n_classes=K, fixed_class=fixed, alpha=alpha)

    def _fit(self, problem: Problem) -> Fit:
        labels = problem.data
        probas, sink = posterior_of(labels)
        require_tables(labels, probas, type(self).__name__)
        model = self._model(problem)
        shards = problem.cut(labels.n_workers * labels.n_classes**2)
        best = climb(
            model, shards, problem, sink, max_iter=self.max_iter, tol=self.tol,
            n_init=self.n_init, accelerate=self.accelerate,
        )  # fmt: skip
        if not best.answered:
            shards.collect(model, "answer", best.states, best.params, sink)
        return fit_of(best, probas, np.exp(as_confusion(best.params.table)))

    def _predict(self, problem: Problem) -> Floats:
        return self._known(problem)[0]

    def _log_likelihood(self, problem: Problem) -> float:
        return self._known(problem)[1]

    def _known(self, problem: Problem) -> tuple[Floats, float]:
        """Return the posterior (n_tasks, n_classes) under the fit, and the log-likelihood."""
        log_class = known_class_prior(self.class_prior, problem.prior, self.class_prior_)
        return known_posterior(problem, safe_log(self.confusion_), log_class)


@dataclass(frozen=True, eq=False, kw_only=True)
class WorkerConfusionModel(DirichletModel):
    """A confusion matrix per worker, fitted by EM; subclasses turn counts into matrices."""

    alpha: Any = 0.0  # for subclasses with pseudo-counts

    def worker_update(
        self, counts: Floats, previous: dict[str, Any] | None
    ) -> tuple[Floats, float, dict[str, Any]]:
        """Return the M-step: (log confusion (J, K, L), log prior density, extra parameters).

        ``counts[j, k, l]`` is the expected number of labels ``l`` by worker ``j`` on class ``k``;
        ``previous`` holds the extra parameters of the previous iteration, None at the start.
        """
        raise TypeError(f"{type(self).__name__} must define worker_update.")

    def extrapolate(
        self, first: ConfusionParams, second: ConfusionParams, third: ConfusionParams
    ) -> ConfusionParams | None:
        """Return None: subclasses may accelerate."""
        return None
