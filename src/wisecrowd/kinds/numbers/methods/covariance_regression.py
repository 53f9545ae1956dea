r"""CovarianceRegression: weights from covariances between workers, robust to shared errors.

With :math:`y_j = z + e_j` and :math:`\rho_j = \operatorname{Cov}(z, y_j)` the covariance of two
workers over tasks is

.. math:: C_{jl} = \rho_j + \rho_l - \tau^2 + \operatorname{Cov}(e_j, e_l).

Off the diagonal it is a sum of one number per worker, :math:`\alpha_j = \rho_j - \tau^2 / 2`,
except where workers share errors. Least absolute deviations fit the numbers and ignore these pairs.
The best linear estimate of a task then takes :math:`C^{-1} \rho` of its workers, with the observed
:math:`C`, which knows who shares errors.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.aggregator import Tags
from wisecrowd.core.exceptions import DataError
from wisecrowd.core.messages.option_spelling import for_reader
from wisecrowd.core.parameter_checks import SMALLEST_NUMBER, Limits, Number
from wisecrowd.core.result import Fit
from wisecrowd.core.saved_attributes import NUMBER, Saved, SavedArray, number_between
from wisecrowd.core.types import Floats
from wisecrowd.kinds.numbers.container import CrowdNumbers
from wisecrowd.kinds.numbers.methods.base import (
    NumberAggregator,
    NumberProblem,
    TaskEstimates,
    task_means,
)
from wisecrowd.kinds.numbers.methods.facts import least_variance

PSEUDO_LABELS = 5.0  # labels at the overall mean that a worker's mean counts with
LEAST_COMMON = 3  # common tasks of a pair that is used
MANY_COMMON = 10  # common tasks that at least half of all pairs need
MOST_WORKERS = 1000  # the regression solves for all workers at once
FLAT = 1e-3  # deviations below this share of the typical one count as equally small
ANCHOR = 1e-6  # weight of the ridge to equal numbers, as a share of the largest


class WorkerLabels(NamedTuple):
    """One number per task and worker (n,), the mean of repeated ones, and its weight."""

    task: NDArray[np.int64]
    worker: NDArray[np.int64]
    value: Floats
    weight: Floats


class Covariances(NamedTuple):
    """Covariance, weight and number of common tasks (J, J) of each pair of workers."""

    table: Floats
    weight: Floats
    common: NDArray[np.int64]


@dataclass(eq=False, repr=False, kw_only=True)
class CovarianceRegression(NumberAggregator):
    r"""The best linear combination of workers, some of whom may share errors.

    .. math::
        C_{jl} = \operatorname{Cov}(y_j, y_l) \approx \alpha_j + \alpha_l \;(j \ne l), \qquad
        \rho_j = \alpha_j + \tau^2 / 2, \qquad
        \hat z_i = \mu + \rho_M^T (C_{MM} + \lambda I)^{-1} (y_M - \bar y_M)

    for the workers :math:`M` of task :math:`i`. The :math:`\alpha_j` minimise the sum of absolute
    deviations, so that pairs of workers with a shared error hardly count.

    Use it when every worker labels most tasks, such as several language models, and some of them
    make the same errors. Cost: O(tasks × workers² + iterations × workers³), at most 1000 workers.

    Parameters
    ----------
    truth_variance : float or None
        :math:`\tau^2`, on the scale of the method. None takes the median covariance of two workers,
        which is :math:`\tau^2` if their errors are independent of each other and of the truth.
    ridge : float
        :math:`\lambda` as a share of the mean variance of the workers.
    max_iter, tol : int, float
        Maximum number of reweighted least-squares rounds; largest change of an
        :math:`\alpha_j`, in standard deviations of the labels squared, that counts as converged.
    scale : {"linear", "log"}
        With "log" the method works on the logarithms of the labels.

    Attributes
    ----------
    values_, variance_, low_, high_ : (n_tasks,)
        Estimate, its variance :math:`\tau^2 - \rho_M^T w_M`, and 95% interval.
    covariance_ : (n_workers, n_workers)
        :math:`C`, with :math:`\alpha_j + \alpha_l` where a pair has fewer than three common tasks.
    truth_covariance_ : (n_workers,)
        :math:`\rho_j`.
    worker_mean_, bias_ : (n_workers,)
        Mean of the worker's labels, shrunk to that of all, and its difference from it.
    noise_ : (n_workers,)
        Standard deviation of the worker's error.
    worker_weight_ : (n_workers,)
        Weights on a task with all workers, without negative ones, over their sum.
    truth_mean_, truth_variance_ : float
        :math:`\mu` and :math:`\tau^2`.

    Notes
    -----
    The paper assumes that :math:`\tau^2` is known. The estimate of a model with independent errors
    would contain the shared ones; the median is robust to a minority of pairs. Crowds in
    which fewer than half of the pairs of workers have ten common tasks are refused: covariances
    from few tasks make it worse than the mean. Repeated labels of a task by a worker count as one,
    their mean. Labels by workers without labels in the fit are ignored. There is no prior:
    ``task_prior`` is refused.

    References
    ----------
    Y. Tenzer, O. Dror, B. Nadler, E. Bilal and Y. Kluger (2022). Crowdsourcing regression: a
    spectral approach. AISTATS, PMLR 151, 5225-5242.

    Examples
    --------
    >>> from wisecrowd import simulate
    >>> made = simulate.numbers(200, 8, simulate.Dense(), clique=3, clique_error=2.0)
    >>> model = CovarianceRegression().fit(made.data)
    >>> from wisecrowd.aggregation import Mean
    >>> model.score(made.data, made.truth) > Mean().fit(made.data).score(made.data, made.truth)
    True
    """

    truth_variance: float | None = None
    ridge: float = 0.05
    max_iter: int = 100
    tol: float = 1e-9

    promises: ClassVar[Tags] = Tags(pooled=True)
    saves: ClassVar[dict[str, Saved]] = {
        "covariance_": SavedArray("J J"),
        "truth_covariance_": SavedArray("J"),
        "worker_mean_": SavedArray("J"),
        "truth_mean_": NUMBER,
        "truth_variance_": number_between(0.0, np.inf),
        "floor_": number_between(0.0, np.inf),
    }

    limits: ClassVar[Limits] = {
        "ridge": Number(SMALLEST_NUMBER),
        "truth_variance": Number(SMALLEST_NUMBER, none=True),
    }

    def _fit_numbers(self, problem: NumberProblem) -> Fit:
        data = problem.data
        labels = worker_labels(data)
        level = float(np.nanmean(task_means(data, data.weights)))
        means = _worker_means(labels, data.n_workers, level)
        pairs = covariances(labels, means, data.n_workers)
        _refuse_sparse(pairs, np.diag(pairs.common) > 0)
        floor = least_variance(data)
        variance = self.truth_variance or max(typical_covariance(pairs), floor)
        size = max(float(np.diag(pairs.table).max(initial=0.0)), floor)
        alpha, n_iter, converged = additive_fit(pairs, variance / 2, self.max_iter, self.tol * size)
        has_labels = np.diag(pairs.common) > 0
        rho = np.where(has_labels, alpha + variance / 2, 0.0)
        table = _completed(pairs, alpha)
        learned = {
            "covariance": table, "truth_covariance": rho, "worker_mean": means,
            "truth_mean": level, "truth_variance": variance, "floor": floor,
        }  # fmt: skip
        error = np.maximum(np.diag(table) - 2 * rho + variance, 0.0)
        everyone = np.maximum(np.linalg.solve(self._with_ridge(table, floor), rho), 0.0)
        worker = {
            "bias": means - level,
            "noise": np.sqrt(error),
            "worker_weight": everyone / max(float(everyone.sum()), 1e-300),
        }
        return Fit(
            self._estimates(labels, data.n_tasks, **learned),
            n_iter=n_iter, converged=converged, extra={**learned, **worker},
        )  # fmt: skip

    def _predict_numbers(self, problem: NumberProblem) -> TaskEstimates:
        labels = worker_labels(problem.data)
        known = labels.worker < len(self.worker_mean_)
        return self._estimates(
            WorkerLabels._make(column[known] for column in labels), problem.data.n_tasks,
            covariance=self.covariance_, truth_covariance=self.truth_covariance_,
            worker_mean=self.worker_mean_, truth_mean=self.truth_mean_,
            truth_variance=self.truth_variance_, floor=self.floor_,
        )  # fmt: skip

    def _with_ridge(self, table: Floats, floor: float) -> Floats:
        ridge = max(self.ridge * float(np.diag(table).mean()), floor)
        return table + ridge * np.eye(len(table))

    def _estimates(self, labels: WorkerLabels, n_tasks: int, **learned: Any) -> TaskEstimates:
        """Return the linear estimates, solving for all tasks with equally many labels at once."""
        table = self._with_ridge(learned["covariance"], learned["floor"])
        rho, total = learned["truth_covariance"], learned["truth_variance"]
        mean = np.full(n_tasks, learned["truth_mean"])
        variance = np.full(n_tasks, max(total, learned["floor"]))
        count = np.bincount(labels.task, minlength=n_tasks)
        first = np.cumsum(count) - count
        away = labels.value - learned["worker_mean"][labels.worker]
        for n in np.unique(count[count > 0]).tolist():
            tasks = np.flatnonzero(count == n)
            rows = first[tasks][:, None] + np.arange(n)
            workers = labels.worker[rows]
            weight = np.linalg.solve(
                table[workers[:, :, None], workers[:, None, :]], rho[workers][:, :, None]
            )[:, :, 0]
            mean[tasks] += (weight * away[rows]).sum(axis=1)
            left = total - (weight * rho[workers]).sum(axis=1)
            variance[tasks] = np.maximum(left, learned["floor"])
        return TaskEstimates(mean, variance)


# -------------------------------------------------------------------------------- covariances


def worker_labels(data: CrowdNumbers) -> WorkerLabels:
    """Return one number per task and worker; labels of weight 0 do not count."""
    kept = np.flatnonzero(data.weights > 0)
    pair = data.task[kept].astype(np.int64) * data.n_workers + data.worker[kept]
    is_first = np.append(True, pair[1:] != pair[:-1]) if len(pair) else np.empty(0, bool)
    place = np.cumsum(is_first) - 1
    weight = np.bincount(place, data.weights[kept]).astype(np.float64)
    value = np.bincount(place, data.weights[kept] * data.value[kept]) / weight
    pair = pair[is_first]
    return WorkerLabels(pair // data.n_workers, pair % data.n_workers, value, weight)


def _worker_means(labels: WorkerLabels, n_workers: int, level: float) -> Floats:
    """Return the mean (J,) of each worker's labels, shrunk to the level of all."""
    total = np.bincount(labels.worker, labels.weight, n_workers)
    sums = np.bincount(labels.worker, labels.weight * (labels.value - level), n_workers)
    return np.asarray(level + sums / (total + PSEUDO_LABELS))


def covariances(labels: WorkerLabels, means: Floats, n_workers: int) -> Covariances:
    """Return the covariances of all pairs of workers over their common tasks."""
    from scipy.sparse import csr_array

    if n_workers > MOST_WORKERS:
        raise DataError(
            f"CovarianceRegression takes at most {MOST_WORKERS} workers, and there are "
            f"{n_workers}; use {for_reader('GaussianEM', '-m gaussian-em')}."
        )
    n_tasks = int(labels.task.max(initial=-1)) + 1

    def product(values: Floats) -> Floats:
        table = csr_array((values, (labels.task, labels.worker)), shape=(n_tasks, n_workers))
        return np.asarray((table.T @ table).toarray(), dtype=np.float64)

    away = labels.value - means[labels.worker]
    weight = product(labels.weight)
    table = product(labels.weight * away) / np.where(weight > 0, weight, 1.0)
    common = product(np.ones(len(away))).astype(np.int64)
    return Covariances(table, weight, common)


def _refuse_sparse(pairs: Covariances, has_labels: NDArray[np.bool_]) -> None:
    """Refuse crowds with too few common tasks; one worker has no pairs and is fine."""
    upper = np.triu(np.outer(has_labels, has_labels), 1)
    n_pairs, n_many = int(upper.sum()), int((upper & (pairs.common >= MANY_COMMON)).sum())
    if n_pairs and 2 * n_many < n_pairs:
        raise DataError(
            f"Only {n_many} of {n_pairs} pairs of workers have {MANY_COMMON} common tasks, and "
            "CovarianceRegression needs half of them; use "
            f"{for_reader('GaussianEM', '-m gaussian-em')}."
        )


def typical_covariance(pairs: Covariances) -> float:
    """Return the median covariance of two workers; with one worker, half of the variance."""
    used = np.triu(pairs.common >= LEAST_COMMON, 1)
    if not used.any():
        return float(np.diag(pairs.table).max(initial=0.0)) / 2
    return float(np.median(pairs.table[used]))


def additive_fit(
    pairs: Covariances, anchor: float, max_iter: int, tol: float
) -> tuple[Floats, int, bool]:
    r"""Return :math:`\alpha` that minimises the absolute deviations of pairs; rounds; convergence.

    Iteratively reweighted least squares, with a weak ridge to ``anchor`` that decides what the
    pairs leave open.
    """
    J = len(pairs.table)
    used = (pairs.common >= LEAST_COMMON) & ~np.eye(J, dtype=bool)
    alpha = np.full(J, anchor)
    if not used.any():
        return alpha, 1, True
    base = np.where(used, pairs.weight, 0.0)
    flat = FLAT * float(np.abs(pairs.table[used] - np.median(pairs.table[used])).mean())
    flat = max(flat, FLAT * abs(anchor), 1e-300)
    weight, converged = base, False
    for _n_iter in range(1, max_iter + 1):
        total = weight.sum(axis=1)
        ridge = ANCHOR * float(total.max())
        system = weight + np.diag(total + ridge)
        target = (weight * pairs.table).sum(axis=1) + ridge * anchor
        before, alpha = alpha, np.linalg.solve(system, target)
        if np.abs(alpha - before).max() <= tol:
            converged = True
            break
        rest = np.abs(pairs.table - alpha[:, None] - alpha)
        # Scaled, so that the weights of labels do not change their unit.
        weight = base * (flat / np.maximum(rest, flat))
    return alpha, _n_iter, converged


def _completed(pairs: Covariances, alpha: Floats) -> Floats:
    """Return the observed covariances with those of independent errors where pairs lack tasks.

    Negative eigenvalues, which pairwise covariances can have, become zero.
    """
    J = len(alpha)
    used = (pairs.common >= LEAST_COMMON) | np.eye(J, dtype=bool)
    table = np.where(used, pairs.table, alpha[:, None] + alpha)
    lonely = np.diag(pairs.common) == 0
    table[lonely], table[:, lonely] = 0.0, 0.0
    values, vectors = np.linalg.eigh(table)
    if values.min() < 0:
        table = np.asarray((vectors * np.maximum(values, 0.0)) @ vectors.T)
    # A worker without labels has the mean variance of the others, and no part in the estimates.
    diagonal = np.diag(table).copy()
    diagonal[lonely] = diagonal[~lonely].mean()
    np.fill_diagonal(table, diagonal)
    return table
