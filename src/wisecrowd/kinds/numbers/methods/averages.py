"""Bases of the methods that average each task's numbers, with and without weights of workers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from wisecrowd.core.aggregator import Tags
from wisecrowd.core.result import Fit
from wisecrowd.core.saved_attributes import NUMBER, Saved, number_between
from wisecrowd.core.types import Floats
from wisecrowd.kinds.numbers.container import CrowdNumbers
from wisecrowd.kinds.numbers.methods.base import (
    NumberAggregator,
    NumberProblem,
    TaskEstimates,
    labels_by_task,
    task_means,
    within_variance,
    worker_residuals,
)
from wisecrowd.kinds.numbers.methods.facts import least_variance, overall_mean, overall_variance

LEAST_SHARE = 1e-9  # smallest distance of a worker, as a share of the mean one
_SIZES = ("noise_variance", "level", "spread")


@dataclass(eq=False, repr=False, kw_only=True)
class TaskAverage(NumberAggregator):
    """Base of averages: a method defines the average of each task and its variance factor.

    The variance of an average of ``n`` labels is the pooled variance of labels around their task's
    average over ``n``, times the factor. Tasks without labels get the mean and variance of all
    labels.

    Attributes
    ----------
    noise_variance_ : float
        Pooled variance of labels around their task's average; without tasks that have two labels,
        the variance of all labels.
    level_, spread_ : float
        Mean and variance of all labels.
    bias_, noise_ : (n_workers,)
        Mean of the worker's deviations from the averages, and root mean square around it.
    """

    promises: ClassVar[Tags] = Tags()
    saves: ClassVar[dict[str, Saved]] = {
        "noise_variance_": number_between(0.0, np.inf),
        "level_": NUMBER,
        "spread_": number_between(0.0, np.inf),
    }

    def _averages(self, data: CrowdNumbers) -> Floats:
        """Return the average (n_tasks,) of each task's labels, NaN without labels."""
        raise TypeError(f"{type(self).__name__} must define _averages.")

    def _variance_factor(self, n_labels: Floats) -> Floats:
        """Return the variance of the average of ``n`` normal labels, times ``n``."""
        return np.ones(len(n_labels))

    def _shares(self, data: CrowdNumbers) -> Floats | None:
        return data.weights

    def _fit_numbers(self, problem: NumberProblem) -> Fit:
        data, gold = problem.data, problem.prior.gold
        level, spread = overall_mean(data), max(overall_variance(data), least_variance(data))
        average = self._averages(data)
        known = average if gold is None else np.where(np.isnan(gold), average, gold)
        noise = within_variance(data, known, gold)
        estimates = self._estimates(data, average, noise, level, spread)
        extra = worker_residuals(data, known)
        return Fit(
            estimates,
            extra={**extra, "noise_variance": noise, "level": level, "spread": spread},
        )

    def _predict_numbers(self, problem: NumberProblem) -> TaskEstimates:
        data = problem.data
        known = self.noise_variance_, self.level_, self.spread_
        return self._estimates(data, self._averages(data), *known)

    def _estimates(
        self, data: CrowdNumbers, average: Floats, noise: float, level: float, spread: float
    ) -> TaskEstimates:
        n_labels = labels_by_task(data)
        has = n_labels > 0
        count = np.where(has, n_labels, 1.0)
        variance = noise * self._variance_factor(count) / count
        return TaskEstimates(np.where(has, average, level), np.where(has, variance, spread))


class Distances(NamedTuple):
    """Distances of workers from the values: sums and label counts (J,).

    They leave out tasks with one label, whose value is that label.
    """

    total: Floats
    n_labels: Floats

    def floored(self) -> Floats:
        """Return the sums, at least a small share of their mean over workers that have labels."""
        used = self.n_labels > 0
        mean = float(self.total[used].mean()) if used.any() else 0.0
        return np.maximum(self.total, LEAST_SHARE * mean if mean > 0 else 1.0)


@dataclass(eq=False, repr=False, kw_only=True)
class WeightedMeans(NumberAggregator):
    """Base of methods that alternate between worker weights and weighted means.

    A method defines where to start, the distance of a label, and the weights from distances.
    """

    max_iter: int = 200
    tol: float = 1e-6

    promises: ClassVar[Tags] = Tags(pooled=True)
    saves: ClassVar[dict[str, Saved]] = {
        "noise_variance_": number_between(0.0, np.inf),
        "level_": NUMBER,
        "spread_": number_between(0.0, np.inf),
        "typical_weight_": number_between(0.0, np.inf),
    }

    def _start(self, data: CrowdNumbers) -> Floats:
        """Return the values (n_tasks,) to start from."""
        return task_means(data, data.weights)

    def _units(self, data: CrowdNumbers) -> Floats:
        """Return the divisor (n_tasks,) of the squared distances of each task's labels."""
        return np.ones(data.n_tasks)

    def _weights(self, distances: Distances) -> Floats:
        """Return the weights (J,) of the workers, all above zero."""
        raise TypeError(f"{type(self).__name__} must define _weights.")

    def _shares(self, data: CrowdNumbers) -> Floats | None:
        return np.asarray(data.weights * self.worker_weight_[data.worker])

    def _fit_numbers(self, problem: NumberProblem) -> Fit:
        data, gold = problem.data, problem.prior.gold
        compared = np.bincount(data.task, data.weights > 0, data.n_tasks) > 1
        if gold is not None:
            compared |= ~np.isnan(gold)
        judged = np.where(compared[data.task], data.weights, 0.0)
        count = np.bincount(data.worker, judged, data.n_workers).astype(np.float64)
        unit = self._units(data)[data.task]
        size = np.sqrt(overall_variance(data))
        values = self._known(self._start(data), gold)
        converged, weight = False, np.ones(data.n_workers)
        for _n_iter in range(1, self.max_iter + 1):
            away = (data.value - values[data.task]) ** 2 / unit
            total = np.bincount(data.worker, judged * away, data.n_workers).astype(np.float64)
            weight = self._weights(Distances(total, count))
            before = values
            values = self._known(self._means(data, weight), gold)
            moved = np.abs(values - before)[compared].max(initial=0.0)
            if moved <= self.tol * size:
                converged = True
                break
        return self._result(data, gold, values, weight, count, _n_iter, converged)

    def _result(
        self,
        data: CrowdNumbers,
        gold: Floats | None,
        values: Floats,
        weight: Floats,
        count: Floats,
        n_iter: int,
        converged: bool,
    ) -> Fit:
        used = count > 0
        typical = float(np.median(weight[used])) if used.any() else 1.0
        weight = np.where(used, weight, typical)
        unit = float(weight[used].sum()) if used.any() else float(weight.sum())
        extra = {
            "noise_variance": within_variance(data, values, gold),
            "level": overall_mean(data),
            "spread": max(overall_variance(data), least_variance(data)),
        }
        weight, extra["typical_weight"] = weight / unit, typical / unit
        return Fit(
            self._estimates(data, weight, **{k: extra[k] for k in _SIZES}),
            n_iter=n_iter,
            converged=converged,
            extra={**extra, **worker_residuals(data, values), "worker_weight": weight},
        )

    def _predict_numbers(self, problem: NumberProblem) -> TaskEstimates:
        weight = np.full(problem.data.n_workers, self.typical_weight_)
        weight[: len(self.worker_weight_)] = self.worker_weight_
        sizes = {"noise_variance": self.noise_variance_, "level": self.level_}
        return self._estimates(problem.data, weight, spread=self.spread_, **sizes)

    def _estimates(
        self,
        data: CrowdNumbers,
        weight: Floats,
        noise_variance: float,
        level: float,
        spread: float,
    ) -> TaskEstimates:
        each = data.weights * weight[data.worker]
        total = np.bincount(data.task, each, data.n_tasks)
        squares = np.bincount(data.task, each * weight[data.worker], data.n_tasks)
        has = total > 0
        variance = noise_variance * squares / np.where(has, total, 1.0) ** 2
        return TaskEstimates(
            np.where(has, self._means(data, weight), level), np.where(has, variance, spread)
        )

    def _means(self, data: CrowdNumbers, weight: Floats) -> Floats:
        return task_means(data, data.weights * weight[data.worker])

    def _known(self, values: Floats, gold: Floats | None) -> Floats:
        return values if gold is None else np.where(np.isnan(gold), values, gold)
