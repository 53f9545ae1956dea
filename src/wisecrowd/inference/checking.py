"""How answers of a person are compared with results: what each kind of label tells a check list.

The module ``scorer`` of a kind names a subclass as ``CHECKING``, if its results can be checked.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple

import numpy as np

from wisecrowd.core.types import Floats, Mask


class Compared(NamedTuple):
    """Results beside answers of a person: the score is the sum of ``top`` over that of ``bottom``.

    Attributes
    ----------
    known : (n_tasks,) bool
        Tasks with an answer.
    top, bottom : (n_tasks,)
        Used only where ``known``.
    wrong : (n_tasks,) bool
        Tasks with any error.
    """

    known: Mask
    top: Floats
    bottom: Floats
    wrong: Mask


class Checking:
    """How results of one kind are checked; every kind that can be has a subclass.

    Attributes
    ----------
    measure : str
        Name of the score: "accuracy" if a result is right or wrong.
    heading : str
        What sentences call the score.
    limits : pair of numbers
        Smallest and largest score.
    best : number
        The score without any error.
    sureness : str
        What the strata are made of, for names of columns.
    columns : tuple of str
        Columns that the person fills in; several have one row for each part of an answer.
    empty_counts : bool
        Whether an empty answer is an answer, so that the list has a column ``done``.
    """

    measure: ClassVar[str] = "accuracy"
    heading: ClassVar[str] = "accuracy"
    limits: ClassVar[tuple[float, float]] = (0.0, 1.0)
    best: ClassVar[float] = 1.0
    sureness: ClassVar[str] = "confidence"
    columns: ClassVar[tuple[str, ...]] = ("label",)
    empty_counts: ClassVar[bool] = False

    def confidence(self, fit: Any, data: Any) -> Floats:
        """Return how sure each result is (n_tasks,); larger is surer."""
        return np.asarray(fit.confidence_, dtype=np.float64)

    def spread(self, confidence: Floats) -> Floats:
        """Return the standard deviation of the score of a task with this mean confidence."""
        return np.sqrt(np.maximum(confidence * (1 - confidence), 0.0))

    def compare(self, fit: Any, data: Any, answers: Mapping[Any, Any]) -> Compared:
        """Compare the results of a fit with answers by task."""
        raise TypeError(f"{type(self).__name__} must define compare.")
