"""NumberAnswers: a number with an interval for every task."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.answers import Answers, Columns, Learned
from wisecrowd.core.number_prior import known_numbers
from wisecrowd.core.saved_attributes import Saved, SavedArray

Floats = NDArray[np.float64]
TWO_SIDED_95 = 1.959963984540054  # quantile .975 of the standard normal
SCALES = ("linear", "log")


@dataclass(frozen=True, eq=False)
class NumberAnswers(Answers):
    """One number per task, its variance and a 95% interval.

    Attributes
    ----------
    values : (n_tasks,) float64
        The estimates, in the units of the labels.
    variance : (n_tasks,) float64
        Posterior variance; of the logarithm if the method works on a log scale.
    low, high : (n_tasks,) float64
        Limits of the 95% interval. It covers the disagreement between workers, and not errors that
        all workers share.
    """

    values: Floats
    variance: Floats
    low: Floats
    high: Floats

    alone: ClassVar[str] = "intervals are a guess"
    shown: ClassVar[tuple[str, ...]] = ("value", "low", "high")
    saves: ClassVar[Mapping[str, Saved]] = {
        "values_": SavedArray("N"),
        "variance_": SavedArray("N", "amount"),
        "low_": SavedArray("N"),
        "high_": SavedArray("N"),
        "bias_": SavedArray("J", optional=True),
        "noise_": SavedArray("J", "amount", optional=True),
        "worker_weight_": SavedArray("J", "amount", optional=True),
    }

    @classmethod
    def normal(
        cls, mean: Floats, variance: Floats, scale: str = "linear", factor: float = 1.0
    ) -> Self:
        """Return answers from normal posteriors; on a log scale they are of the logarithm.

        Parameters
        ----------
        mean, variance : (n_tasks,) float64
        scale : {"linear", "log"}
        factor : float
            Factor on the standard deviations, estimated on gold.
        """
        low, high = normal_interval(mean, variance, scale, TWO_SIDED_95 * factor)
        return cls(np.exp(mean) if scale == "log" else mean, variance, low, high)

    @classmethod
    def of_fit(cls, learned: Learned, rows: NDArray[np.integer[Any]]) -> Self:
        """Return the answers that a fit has published, for some of its tasks."""
        return cls(*(learned[name][rows] for name in ("values_", "variance_", "low_", "high_")))

    def attributes(self, known: Learned) -> dict[str, Any]:
        """Return values, variances and limits of intervals."""
        return {
            "values_": self.values, "variance_": self.variance, "low_": self.low,
            "high_": self.high,
        }  # fmt: skip

    def score(self, truth: Any, data: Any, known: Learned) -> float:
        """Return R², the share of the variance of the truth that the values explain."""
        wanted = known_numbers(truth, data, "truth")
        scored = ~np.isnan(wanted)
        error = np.mean((self.values[scored] - wanted[scored]) ** 2)
        spread = np.var(wanted[scored])
        return float(1 - error / spread) if spread > 0 else -float(error)

    @classmethod
    def task_columns(cls, learned: Learned) -> Columns:
        """Return the value and the limits of its interval."""
        return {"value": learned["values_"], "low": learned["low_"], "high": learned["high_"]}

    @classmethod
    def worker_columns(cls, learned: Learned) -> Columns:
        """Return bias, noise and weight, if the method estimates them."""
        names = {"bias": "bias_", "noise": "noise_", "weight": "worker_weight_"}
        return {column: learned[name] for column, name in names.items() if name in learned}


def normal_interval(
    mean: Floats, variance: Floats, scale: str, width: float
) -> tuple[Floats, Floats]:
    """Return mean ± width standard deviations, or its exponential on a log scale."""
    half = width * np.sqrt(variance)
    low, high = mean - half, mean + half
    return (np.exp(low), np.exp(high)) if scale == "log" else (low, high)
