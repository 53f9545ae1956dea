"""Averages of each task's numbers, without a model of the workers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

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
    labels_by_task,
    within_variance,
    worker_residuals,
)
from wisecrowd.families.number_facts import least_variance, overall_mean, overall_variance

Floats = NDArray[np.float64]


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
