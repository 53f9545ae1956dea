"""What known classes and hidden labels say about a change, such as the removal of workers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.result import dense_rows
from wisecrowd.core.types import Ints, Mask
from wisecrowd.inference.held_out import ScoringPlan

CLEAR = 2.0  # standard errors that count as a clear difference


@dataclass(frozen=True)
class Support:
    """Hidden labels on tasks whose label changes: which of both labels they equal.

    A posterior that is only more confident predicts hidden labels better, too. These counts depend
    on the changed labels alone.

    Attributes
    ----------
    new, old : int
        Hidden labels that equal the label after the change, and the one before it.
    error : float
        Standard error of their difference, over tasks.
    """

    new: int
    old: int
    error: float

    @property
    def clear(self) -> bool:
        """Whether the new labels are clearly supported."""
        return self.new - self.old > CLEAR * self.error

    def __str__(self) -> str:
        return (
            f"hidden labels of changed tasks equal the new label {self.new} times and the old one "
            f"{self.old} times"
        )


def label_support(
    plan: ScoringPlan, before: Sequence[Ints], after: Sequence[Ints], keep: Mask | None = None
) -> Support:
    """Return what hidden labels say about the labels of two fits of each fold.

    Parameters
    ----------
    plan : ScoringPlan
    before, after : sequence of (n_tasks,) int
        Labels of the fits without each hidden fold, -1 for tasks without labels.
    keep : (n_hidden,) bool, optional
        Hidden labels that count, in the order of a held-out score; by default all.

    Examples
    --------
    >>> from wisecrowd import CrowdLabels
    >>> labels = CrowdLabels.from_arrays(list("aab"), list("xyx"), [0, 1, 1])
    >>> plan = ScoringPlan(labels, np.array([0, -1, -1], dtype=np.int8), 1)
    >>> label_support(plan, [np.array([1, 1])], [np.array([0, 1])])
    Support(new=1, old=0, error=1.0)
    """
    folds, labels = plan.folds, plan.labels
    used = [fold for fold in range(plan.n_folds_used) if (folds == fold).any()]
    new, old = np.zeros((2, labels.n_annotations), dtype=bool)
    for fold, first, second in zip(used, before, after, strict=True):
        rows = np.flatnonzero(folds == fold)
        task, label = labels.task[rows], labels.label[rows]
        moved = (first != second) & (first >= 0) & (second >= 0)
        new[rows] = moved[task] & (label == second[task])
        old[rows] = moved[task] & (label == first[task])
    scored = np.flatnonzero(plan.scored)
    scored = scored if keep is None else scored[keep]
    difference = new[scored].astype(np.float64) - old[scored]
    by_task = np.bincount(labels.task[scored], difference, labels.n_tasks)
    return Support(
        int(new[scored].sum()), int(old[scored].sum()), float(np.sqrt(by_task @ by_task))
    )


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
