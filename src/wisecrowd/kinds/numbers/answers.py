"""NumberAnswers: a number with an interval for every task; gold, priors and truths, checked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.answers import Answers, Columns, Learned
from wisecrowd.core.arrow import is_missing
from wisecrowd.core.exceptions import DataError
from wisecrowd.core.gold import as_pairs
from wisecrowd.core.messages.descriptions import suggestion
from wisecrowd.core.saved_attributes import Saved, SavedArray
from wisecrowd.core.types import Floats
from wisecrowd.kinds.numbers.container import CrowdNumbers

TWO_SIDED_95 = 1.959963984540054  # quantile .975 of the standard normal
SCALES = ("linear", "log")


@dataclass(frozen=True, eq=False)
class NumberPrior:
    """Normal prior of each task, in the units of the labels.

    Attributes
    ----------
    mean, variance : (n_tasks,) float64, optional
        The user's prior. None means that the method estimates one normal for all tasks.
    gold : (n_tasks,) float64, optional
        Known numbers, NaN where unknown.
    """

    mean: Floats | None = None
    variance: Floats | None = None
    gold: Floats | None = None

    @property
    def given(self) -> bool:
        """Whether the user gave a prior besides gold."""
        return self.mean is not None


def number_prior(task_prior: Any, gold: Any, data: CrowdNumbers) -> NumberPrior:
    """Combine a (mean, variance) prior with gold into the prior of each task.

    Parameters
    ----------
    task_prior : None, (mean, variance) or (n_tasks, 2) array
        Each of mean and variance is one number or one per task.
    gold : mapping from task to number, (task, value) frame, (n_tasks,) array with NaN, or None
    data : CrowdNumbers
    """
    mean, variance = _mean_and_variance(task_prior, data)
    known = None if gold is None else known_numbers(gold, data, "gold")
    if known is not None and np.isnan(known).all():
        known = None
    return NumberPrior(mean, variance, known)


def _mean_and_variance(prior: Any, data: CrowdNumbers) -> tuple[Floats | None, Floats | None]:
    if prior is None:
        return None, None
    wrong = DataError(
        "The task prior is not a mean and a variance; give (mean, variance), each one number or "
        f"one per task ({data.n_tasks}), or an array of shape ({data.n_tasks}, 2)."
    )
    try:
        parts = list(prior) if isinstance(prior, tuple) else list(np.asarray(prior, float).T)
        if len(parts) != 2:
            raise wrong
        mean, variance = (
            np.array(np.broadcast_to(np.asarray(part, dtype=np.float64), data.n_tasks))
            for part in parts
        )
    except (TypeError, ValueError):
        raise wrong from None
    bad = ~(np.isfinite(mean) & np.isfinite(variance) & (variance > 0))
    if bad.any():
        raise DataError(
            f"The task prior of row {int(np.argmax(bad)) + 1} is not finite or its variance is not "
            "above zero; give a finite mean and a positive variance, and known numbers as gold."
        )
    return mean, variance


def known_numbers(values: Any, data: CrowdNumbers, what: str) -> Floats:
    """Return known numbers of tasks, NaN where unknown; gold of unknown tasks is an error.

    Examples
    --------
    >>> data = CrowdNumbers.from_arrays(["t1", "t2"], ["ann", "ann"], [1.0, 2.0])
    >>> known_numbers({"t2": 3}, data, "gold").tolist()
    [nan, 3.0]
    """
    codes, found = as_pairs(values, data, what)
    ids, listed = found if isinstance(found, tuple) else (data.tasks.tolist(), found)
    result = np.full(data.n_tasks, np.nan)
    for code, task, value in zip(codes.tolist(), ids, listed, strict=True):
        if is_missing(value):
            continue
        try:
            number = float(value)
        except (TypeError, ValueError):
            number = np.nan
        if not np.isfinite(number):
            raise DataError(
                f"The {what} gives task {task!r} the value {value!r}, which is not a finite "
                "number; correct it or leave it out."
            )
        if code < 0:
            if what == "gold":
                raise DataError(
                    f"Gold names task {task!r}, which has no row in the labels"
                    f"{suggestion(task, data.tasks)}; remove it from the gold or add the task."
                )
            continue
        if not np.isnan(result[code]) and result[code] != number:
            raise DataError(
                f"The {what} gives task {task!r} two values, {result[code]:g} and {number:g}; "
                "keep one."
            )
        result[code] = number
    if what != "gold" and np.isnan(result).all():
        hint = suggestion(ids[0], data.tasks) if len(ids) else ""
        raise DataError(f"The {what} names none of these tasks{hint}; there is nothing to score.")
    return result


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
    freedom : (n_tasks,) float64, optional
        Degrees of freedom of the variances; without them the intervals are normal.
    """

    values: Floats
    variance: Floats
    low: Floats
    high: Floats
    freedom: Floats | None = None

    alone: ClassVar[str] = "intervals are a guess"
    shown: ClassVar[tuple[str, ...]] = ("value", "low", "high")
    saves: ClassVar[Mapping[str, Saved]] = {
        "values_": SavedArray("N"),
        "variance_": SavedArray("N", "amount"),
        "low_": SavedArray("N"),
        "high_": SavedArray("N"),
        "freedom_": SavedArray("N", "positive", optional=True),
        "bias_": SavedArray("J", optional=True),
        "noise_": SavedArray("J", "amount", optional=True),
        "worker_weight_": SavedArray("J", "amount", optional=True),
    }

    @classmethod
    def normal(
        cls,
        mean: Floats,
        variance: Floats,
        scale: str = "linear",
        factor: float = 1.0,
        freedom: Floats | None = None,
    ) -> Self:
        """Return answers from normal posteriors; on a log scale they are of the logarithm.

        Parameters
        ----------
        mean, variance : (n_tasks,) float64
        scale : {"linear", "log"}
        factor : float
            Factor on the standard deviations, estimated on gold.
        freedom : (n_tasks,) float64, optional
            Degrees of freedom of the variances; the intervals are then those of t distributions.
        """
        width = TWO_SIDED_95 if freedom is None else t_quantiles(0.975, freedom)
        low, high = normal_interval(mean, variance, scale, width * factor)
        return cls(np.exp(mean) if scale == "log" else mean, variance, low, high, freedom)

    @classmethod
    def of_fit(cls, learned: Learned, rows: NDArray[np.integer[Any]]) -> Self:
        """Return the answers that a fit has published, for some of its tasks."""
        names = ["values_", "variance_", "low_", "high_"]
        return cls(*(learned[name][rows] for name in [*names, *({"freedom_"} & {*learned})]))

    def attributes(self, known: Learned) -> dict[str, Any]:
        """Return values, variances and limits of intervals."""
        found = {
            "values_": self.values, "variance_": self.variance, "low_": self.low,
            "high_": self.high,
        }  # fmt: skip
        return found if self.freedom is None else found | {"freedom_": self.freedom}

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


def t_quantiles(probability: float, freedom: Floats) -> Floats:
    """Return the quantile of the t distribution for each of these degrees of freedom."""
    from scipy.special import stdtrit

    return np.asarray(stdtrit(freedom, probability))


def normal_interval(
    mean: Floats, variance: Floats, scale: str, width: float | Floats
) -> tuple[Floats, Floats]:
    """Return mean ± width standard deviations, or its exponential on a log scale."""
    half = width * np.sqrt(variance)
    low, high = mean - half, mean + half
    return (np.exp(low), np.exp(high)) if scale == "log" else (low, high)
