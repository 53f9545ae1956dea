"""Scores of two fits on tasks of known class, which neither has seen."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.result import dense_rows
from wisecrowd.inference.label_support import CLEAR

ENOUGH_KNOWN = 20  # tasks of known class that decide instead of held-out labels
WORSE = 0.01  # growth of the calibration error that is not due to rounding
LEAST_P = 1e-4  # probability below which a known class costs no more


class KnownScore(NamedTuple):
    """Scores of one fit on tasks of known class, which it has not seen.

    ``loss`` (n,) is the log loss of each task; ``gap`` is the absolute difference of the mean
    confidence and the accuracy.
    """

    loss: NDArray[np.float64]
    accuracy: float
    gap: float


@dataclass(frozen=True, eq=False)
class KnownScores:
    """Scores before and after an action on the same tasks of known class."""

    before: KnownScore
    after: KnownScore

    @property
    def n(self) -> int:
        """Number of tasks."""
        return len(self.before.loss)

    def __str__(self) -> str:
        return (
            f"{self.n} known classes by {self.loss_change:+.4f} ± {self.loss_error:.4f} (accuracy "
            f"{self.before.accuracy:.0%} to {self.after.accuracy:.0%})"
        )

    @property
    def loss_change(self) -> float:
        """Mean change of the log loss."""
        return float(np.mean(self.after.loss - self.before.loss))

    @property
    def loss_error(self) -> float:
        """Standard error of the change."""
        if self.n < 2:
            return float("inf")
        return float(np.std(self.after.loss - self.before.loss, ddof=1) / np.sqrt(self.n))

    @property
    def worse(self) -> bool:
        """Whether the action lowers the accuracy, or calibration becomes worse."""
        less = self.after.accuracy < self.before.accuracy
        return less or self.after.gap > self.before.gap + WORSE

    @property
    def decides(self) -> bool:
        """Whether the tasks are enough to decide, or speak against the action."""
        return self.worse or self.n >= ENOUGH_KNOWN

    @property
    def better(self) -> bool:
        """Whether the log loss is clearly lower, and neither accuracy nor calibration worse."""
        return not self.worse and -self.loss_change > CLEAR * self.loss_error


def known_score(probas: Any, codes: NDArray[Any], known: NDArray[Any]) -> KnownScore:
    """Return the scores of posteriors (n, K) with labels (n,) on tasks of known class (n,).

    Examples
    --------
    >>> known_score(np.array([[0.9, 0.1], [0.6, 0.4]]), np.array([0, 0]), np.array([0, 1])).accuracy
    0.5
    """
    rows = dense_rows(probas)
    accuracy = float(np.mean(codes == known))
    loss = -np.log(np.maximum(rows[np.arange(len(known)), known], LEAST_P))
    return KnownScore(loss, accuracy, abs(float(rows.max(axis=1).mean()) - accuracy))
