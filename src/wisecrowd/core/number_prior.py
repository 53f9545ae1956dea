"""Prior knowledge about numbers: a mean and a variance per task, with gold as variance zero."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.arrow import is_missing
from wisecrowd.core.exceptions import DataError
from wisecrowd.core.gold import as_pairs
from wisecrowd.core.messages.descriptions import suggestion
from wisecrowd.core.numbers import CrowdNumbers

Floats = NDArray[np.float64]


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
