"""CrowdNumbers: numeric labels by worker and task, and how columns become checked numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np

from wisecrowd.core.annotations import Annotations, Payload
from wisecrowd.core.exceptions import DataError
from wisecrowd.core.ids.encoding import encode
from wisecrowd.core.types import Codes, Floats

VALUE_NAMES = (
    "value", "number", "label", "rating", "score", "grade", "answer", "response", "estimate",
)  # fmt: skip


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class CrowdNumbers(Annotations):
    """One finite number per annotation, such as a price, an age or a score.

    :meth:`from_frame` and :meth:`from_arrays` check their arguments; the constructor does not.

    Attributes
    ----------
    value : (n_annotations,) float64
        The numbers, in the user's units.
    task, worker, tasks, workers, weight, columns, notes
        As in :class:`~wisecrowd.core.annotations.Annotations`. The column ``question`` groups
        tasks: each question has its own location and spread.

    Examples
    --------
    >>> numbers = CrowdNumbers.from_arrays(["t1", "t1", "t2"], ["ann", "bob", "ann"], [3, 4.5, 1])
    >>> numbers
    CrowdNumbers(2 tasks, 2 workers, 3 annotations)
    >>> numbers.value.tolist()
    [3.0, 4.5, 1.0]
    """

    kind: ClassVar[str] = "numbers"
    payload: ClassVar[tuple[Payload, ...]] = (Payload("value", usual=VALUE_NAMES),)

    numeric: ClassVar[bool] = True

    value: Floats

    def distance(self, row: int, others: Sequence[str]) -> float:
        """Return how far a number is from the median of others."""
        return abs(float(self.value[row]) - float(np.median([float(text) for text in others])))

    def inspected(self) -> dict[str, Any]:
        """Return the range of the numbers and their median."""
        ends = {"min": self.value.min(), "median": np.median(self.value), "max": self.value.max()}
        return {"numbers": {name: float(one) for name, one in ends.items()}}

    @cached_property
    def questions(self) -> tuple[tuple[str, ...], Codes | None]:
        """Names of the questions, and that of each task (n_tasks,), -1 without labels.

        Without a column ``question`` there are no names and no codes.
        """
        column = self.columns.get("question")
        if column is None:
            return (), None
        found = encode(column, "question")
        if (found.codes < 0).any():
            task = self.tasks[self.task[int(np.argmax(found.codes < 0))]]
            raise DataError(
                f"The question of a label of task {task!r} is missing; fill in the question column "
                "or leave it out."
            )
        code = np.full(self.n_tasks, -1, dtype=np.int32)
        code[self.task] = found.codes
        differs = code[self.task] != found.codes
        if differs.any():
            e = int(np.argmax(differs))
            raise DataError(
                f"Task {self.tasks[self.task[e]]!r} has labels for two questions, {column[e]!r} "
                "and another; make task and question together the task."
            )
        return tuple(map(str, found.vocabulary.tolist())), code

    def in_fitted_ids(self, fitted: Any, *, stacklevel: int = 3) -> Self:
        """Express annotations in the ids of a fit; the questions stay with them."""
        found = super().in_fitted_ids(fitted, stacklevel=stacklevel + 1)
        if "question" not in self.columns:
            return found
        return replace(found, columns={"question": self.columns["question"]})

    def annotation_text(self, e: int) -> str:
        """Return one annotation as text, for examples."""
        return f"{self.value[e]:.6g}"
