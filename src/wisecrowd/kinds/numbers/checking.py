"""How numbers are compared with those of a person."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from wisecrowd.core.types import Floats
from wisecrowd.inference.checking import Checking, Compared
from wisecrowd.kinds.numbers.answers import TWO_SIDED_95, known_numbers
from wisecrowd.kinds.numbers.container import CrowdNumbers


class NumberChecking(Checking):
    """Mean absolute error; the surest values have the smallest standard deviation."""

    measure: ClassVar[str] = "mean_absolute_error"
    heading: ClassVar[str] = "mean absolute error"
    limits: ClassVar[tuple[float, float]] = (0.0, np.inf)
    best: ClassVar[float] = 0.0
    sureness: ClassVar[str] = "minus_deviation"

    def confidence(self, fit: Any, data: CrowdNumbers) -> Floats:
        """Return minus the standard deviations of the values, from their intervals."""
        return np.asarray((fit.low_ - fit.high_) / (2 * TWO_SIDED_95))

    def spread(self, confidence: Floats) -> Floats:
        """Return the standard deviation of the error."""
        return -confidence

    def compare(self, fit: Any, data: CrowdNumbers, answers: Mapping[Any, Any]) -> Compared:
        """Compare values with numbers by task."""
        true = known_numbers(answers, data, "check list")
        error = np.abs(fit.values_ - true)
        return Compared(~np.isnan(true), error, np.ones(data.n_tasks), error > 0)


CHECKING = NumberChecking
