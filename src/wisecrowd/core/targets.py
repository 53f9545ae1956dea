"""What human judgement is estimated of: known answers of tasks beside their predictions.

A kind that can be estimated has a module ``targets`` with the names ``OF``, the quantities that it
offers, and ``targets``, a function of (data, known, fit, of) that returns :class:`Targets`. ``fit``
is a function without arguments that returns a fit which has not seen the known answers.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from wisecrowd.core.attributes import Groups
from wisecrowd.core.types import Floats, Ints, Mask


class Targets(NamedTuple):
    """Known answers and predictions of rows; a row is a task, or one side of a task.

    Attributes
    ----------
    quantities : tuple of str
        Names of the columns, such as the classes.
    answer : (n_rows, n_columns)
        What the person says, NaN where nobody was asked.
    prediction : (n_rows, n_columns) array or sparse
        What the labels say, without the known answers.
    share : bool
        Whether means of the answers are shares, between 0 and 1.
    task : (n_rows,)
        Code of the task of each row.
    copies : (n_annotations,)
        Whether a label equals the known answer of its task.
    groups : Groups, optional
        Groups of the rows that the kind itself knows, such as the items of pairs.
    """

    quantities: tuple[str, ...]
    answer: Floats
    prediction: Any
    share: bool
    task: Ints
    copies: Mask
    groups: Groups | None = None
