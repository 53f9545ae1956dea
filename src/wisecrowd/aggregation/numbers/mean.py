"""Mean: the weighted mean of each task's numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from wisecrowd.core.aggregator import Aggregator
from wisecrowd.core.number_answers import NumberAnswers
from wisecrowd.core.number_prior import NumberPrior
from wisecrowd.core.numbers import CrowdNumbers
from wisecrowd.core.problem import Problem
from wisecrowd.core.result import Fit


@dataclass(eq=False, repr=False, kw_only=True)
class Mean(Aggregator):
    r"""The weighted mean of the numbers of each task.

    Use it when workers are about equally good, as a baseline. Cost: O(annotations).

    References
    ----------
    C. F. Gauss (1809). Theoria motus corporum coelestium.

    Examples
    --------
    >>> Mean().fit((["t1", "t1", "t2"], ["ann", "bob", "ann"], [1.0, 2.0, 5.0])).values_
    array([1.5, 5. ])
    """

    takes: ClassVar[str] = "numbers"

    def _fit(self, problem: Problem[CrowdNumbers, NumberPrior]) -> Fit:
        return Fit(self._predict(problem))

    def _predict(self, problem: Problem[CrowdNumbers, NumberPrior]) -> NumberAnswers:
        data, weight = problem.data, problem.data.weights
        total = np.bincount(data.task, weight, data.n_tasks)
        sums = np.bincount(data.task, weight * data.value, data.n_tasks)
        overall = float(np.average(data.value, weights=weight))
        mean = np.where(total > 0, sums / np.maximum(total, 1e-300), overall)
        return NumberAnswers.normal(mean, np.zeros(data.n_tasks))
