"""Support of hidden labels for the labels that an action changes, such as removing workers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from wisecrowd.inference.held_out_labels import ScoringPlan

Codes = NDArray[np.integer]
Mask = NDArray[np.bool_]

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
    plan: ScoringPlan, before: Sequence[Codes], after: Sequence[Codes], keep: Mask | None = None
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
    scored = np.flatnonzero((folds >= 0) & (folds < plan.n_folds_used))
    scored = scored if keep is None else scored[keep]
    difference = new[scored].astype(np.float64) - old[scored]
    by_task = np.bincount(labels.task[scored], difference, labels.n_tasks)
    return Support(
        int(new[scored].sum()), int(old[scored].sum()), float(np.sqrt(by_task @ by_task))
    )
