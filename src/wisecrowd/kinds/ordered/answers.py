"""OrderedAnswers: one of several ordered classes for every task."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.answers import Columns, Learned
from wisecrowd.core.ids.encoding import lookup
from wisecrowd.core.result import choose_labels, confidence_of, dense_rows
from wisecrowd.core.saved_attributes import Saved, SavedArray
from wisecrowd.core.types import Codes
from wisecrowd.kinds.classes.answers import ClassAnswers
from wisecrowd.kinds.classes.truth import as_truth

DECISIONS = ("median", "mode", "mean")


@dataclass(frozen=True, eq=False)
class OrderedAnswers(ClassAnswers):
    """One class per task, chosen by the median, mode or mean of the posterior.

    Attributes
    ----------
    probas : (n_tasks, n_classes) array
        Posterior of each task; classes are in their order.
    decide : {"median", "mode", "mean"}
        The median minimises the mean absolute error, the mode the number of errors, and the rounded
        mean the squared error, with classes counted 0, 1, 2, ...
    """

    decide: str = "median"

    saves: ClassVar[Mapping[str, Saved]] = {
        **ClassAnswers.saves,
        "worker_accuracy_": SavedArray("J", "probability", optional=True),
        "worker_accuracy_error_": SavedArray("J", "amount", optional=True),
        "grade_": SavedArray("N", "amount"),
        "bias_": SavedArray("J", optional=True),
        "spread_": SavedArray("J", "amount", optional=True),
    }

    @classmethod
    def codes(cls, learned: Learned, data: Any) -> Codes:
        """Return the codes of the labels, which need not be the most probable classes."""
        return lookup(learned["labels_"], data.classes).astype(np.int32)

    @classmethod
    def of_fit(cls, learned: Learned, rows: NDArray[np.integer[Any]]) -> Self:
        """Return the posterior of some tasks of the fit, with its decision rule."""
        return cls(learned["probas_"][rows], learned.get("decide", "median"))

    def attributes(self, known: Learned) -> dict[str, Any]:
        """Return labels by the decision, posterior, confidence, ties and the mean grade."""
        codes, ties = decided(self.probas, known["class_totals_"], self.decide)
        return {
            "labels_": known["classes_"][codes],
            "probas_": self.probas,
            "confidence_": confidence_of(self.probas, codes),
            "ties_": ties,
            "grade_": mean_grade(self.probas),
        }

    def score(self, truth: Any, data: Any, known: Learned) -> float:
        """Return the accuracy of the decisions on the tasks whose class is known."""
        codes = as_truth(truth, data)
        chosen, _ = decided(self.probas, known["class_totals_"], self.decide)
        return float(np.mean(chosen[codes >= 0] == codes[codes >= 0]))

    @classmethod
    def worker_columns(cls, learned: Learned) -> Columns:
        """Return agreement, bias, spread and the rates at each cut, if the method has them."""
        columns = super().worker_columns(learned) if "worker_accuracy_" in learned else {}
        names = {"bias": "bias_", "spread": "spread_"}
        columns |= {c: learned[name] for c, name in names.items() if name in learned}
        rates = [name for name in ("sensitivity", "specificity") if f"{name}_" in learned]
        below = learned["classes_"][:-1].tolist()
        columns |= {name: learned[f"{name}_"].mean(axis=1) for name in rates if below}
        for k, grade in enumerate(below):
            columns |= {f"{name}_above_{grade}": learned[f"{name}_"][:, k] for name in rates}
        return columns


def mean_grade(probas: Any) -> NDArray[np.float64]:
    """Return the mean class of each task, with classes counted 0, 1, 2, ..."""
    table = dense_rows(probas)
    return np.asarray(table @ np.arange(table.shape[1], dtype=np.float64))


def decided(
    probas: Any, class_totals: NDArray[np.float64], decide: str
) -> tuple[NDArray[np.int32], NDArray[np.bool_]]:
    """Return the class of each task by a decision rule, and whether it was a tie.

    Examples
    --------
    >>> probas = np.array([[0.4, 0.3, 0.3]])
    >>> [int(decided(probas, np.ones(3), rule)[0][0]) for rule in DECISIONS]
    [1, 0, 1]
    """
    if decide == "mode":
        return choose_labels(probas, class_totals)
    table = dense_rows(probas)
    if decide == "mean":
        grade = mean_grade(table)
        codes = np.floor(grade + 0.5)
        ties = np.abs(grade + 0.5 - codes) <= 1e-9
        return codes.astype(np.int32), ties & (codes > 0)
    below = np.cumsum(table, axis=1)
    codes = np.argmax(below >= 0.5 - 1e-9, axis=1).astype(np.int32)
    at = np.take_along_axis(below, codes[:, None], axis=1)[:, 0]
    ties = np.abs(at - 0.5) <= 1e-9  # any class up to the next one is a median
    return codes, ties
