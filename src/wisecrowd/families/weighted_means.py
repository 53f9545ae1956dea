"""Iterated weighted means: weights of workers from distances, values from weights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.aggregator import Tags
from wisecrowd.core.numbers import CrowdNumbers
from wisecrowd.core.result import Fit
from wisecrowd.core.saved_attributes import NUMBER, Saved, number_between
from wisecrowd.families.number_aggregator import (
    NumberAggregator,
    NumberProblem,
    TaskEstimates,
    task_means,
    within_variance,
    worker_residuals,
)
from wisecrowd.families.number_facts import least_variance, overall_mean, overall_variance

Floats = NDArray[np.float64]
LEAST_SHARE = 1e-9  # smallest distance of a worker, as a share of the mean one


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


_SIZES = ("noise_variance", "level", "spread")
