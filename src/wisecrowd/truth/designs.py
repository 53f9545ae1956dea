r"""How the tasks that a person checks were drawn, so that they speak for all tasks.

A check list divides the tasks into strata of confidence, and draws :math:`n_h` of the :math:`N_h`
tasks of stratum h. Its columns ``stratum`` and ``weight``, which is :math:`N_h / n_h`, come back
with the answers. Known answers without them count as one simple random sample.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.annotations import Annotations
from wisecrowd.core.columns import guess, listed
from wisecrowd.core.exceptions import DataError
from wisecrowd.core.ids.encoding import lookup
from wisecrowd.core.types import Floats, Longs, Mask


@dataclass(frozen=True, eq=False)
class Design:
    """The strata of a sample of tasks.

    Attributes
    ----------
    stratum : (n_tasks,)
        Stratum of each drawn task, from 0; -1 for all others.
    sizes : (n_strata,)
        Tasks of the crowd in each stratum, drawn or not.
    """

    stratum: Longs
    sizes: Longs

    def weights(self) -> Floats:
        """Return the number of tasks (n_tasks,) that each drawn one stands for; 1 for others.

        Examples
        --------
        >>> Design(np.array([0, 1, 1, -1]), np.array([3, 4])).weights().tolist()
        [3.0, 2.0, 2.0, 1.0]
        """
        drawn = self.stratum >= 0
        count = np.bincount(self.stratum[drawn], minlength=len(self.sizes))
        each = self.sizes / np.maximum(count, 1)
        return np.where(drawn, each[np.maximum(self.stratum, 0)], 1.0)

    def strata_of(self, answered: Mask) -> Design:
        """Return the design of those drawn tasks that have an answer.

        A stratum without any joins its neighbour.

        Examples
        --------
        >>> drawn = Design(np.array([0, 0, 1, 2, -1]), np.array([2, 2, 1]))
        >>> found = drawn.strata_of(np.array([True, False, False, True, False]))
        >>> found.stratum.tolist(), found.sizes.tolist()
        ([0, -1, -1, 1, -1], [4, 1])
        """
        drawn = answered & (self.stratum >= 0)
        seen = np.bincount(self.stratum[drawn], minlength=len(self.sizes)) > 0
        place = np.maximum(np.cumsum(seen) - 1, 0)  # joins the one before, or the first
        sizes = np.bincount(place, self.sizes).astype(np.int64)
        return Design(np.where(drawn, place[np.maximum(self.stratum, 0)], -1), sizes)


def design_of(checked: Any, data: Annotations, known: Mask) -> Design:
    """Return how the checked tasks were drawn.

    Parameters
    ----------
    checked : mapping, frame or array
        Known answers. A frame may have the columns ``stratum`` and ``weight`` of a check list, and
        several rows of a task.
    data : Annotations
    known : (n_tasks,)
        Mask of tasks with an answer: the sample, unless the frame has the columns of a check list.
    """
    names = getattr(checked, "column_names", getattr(checked, "columns", ()))
    columns = {str(name).lower(): name for name in names}
    if not {"stratum", "weight"} <= set(columns):
        stratum = np.where(known, 0, -1).astype(np.int64)
        return Design(stratum, np.array([data.n_tasks], dtype=np.int64))
    import narwhals as nw

    frame = nw.from_native(checked, eager_only=True)
    codes = lookup(ids_as_in(frame[task_column(checked)].to_list(), data.tasks), data.tasks)
    weight = numbers_in(frame[columns["weight"]].to_list(), "weight")
    named = [str(value) for value in frame[columns["stratum"]].to_list()]
    rows = np.flatnonzero(codes >= 0)
    _, first = np.unique(codes[rows], return_index=True)
    rows = rows[np.sort(first)]  # one row of each task
    if not len(rows):
        raise DataError(
            "None of the checked tasks is in the labels; give the list that was made for them."
        )
    names_of_strata, place = np.unique([named[row] for row in rows], return_inverse=True)
    order = np.argsort([_number_first(name) for name in names_of_strata], kind="stable")
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    stratum = np.full(data.n_tasks, -1, dtype=np.int64)
    stratum[codes[rows]] = rank[place.ravel()]
    sizes = np.rint(np.bincount(rank[place.ravel()], weight[rows])).astype(np.int64)
    drawn = np.bincount(rank[place.ravel()])
    if (sizes < drawn).any() or sizes.sum() > 1.01 * data.n_tasks + len(sizes):
        raise DataError(
            f"The weights of the checked tasks add up to {weight[rows].sum():,.0f} of "
            f"{data.n_tasks:,} tasks; give the list as it was made for these labels."
        )
    return Design(stratum, sizes)


def task_column(checked: Any) -> str:
    """Return the name of the column of tasks of a frame of checked tasks."""
    names = [
        str(name) for name in getattr(checked, "column_names", getattr(checked, "columns", ()))
    ]
    exact = next((name for name in names if name.lower() == "task"), None)
    try:
        found = exact or guess("task", names)
    except DataError as error:
        raise DataError(f"The checked tasks: {error}") from None
    if found is None:
        raise DataError(
            f"The checked tasks have the columns {listed(names)} and none of tasks; call it task."
        )
    return found


def ids_as_in(values: list[Any], vocabulary: NDArray[Any]) -> list[Any]:
    """Return ids with the types of a vocabulary, because csv files turn numbers into texts.

    Examples
    --------
    >>> ids_as_in(["7", "x"], np.array([7, 8]))
    [7, 'x']
    """
    by_text = {str(one): one for one in vocabulary.tolist()}
    known = set(by_text.values())
    return [one if one in known else by_text.get(str(one), one) for one in values]


def numbers_in(values: list[Any], name: str) -> Floats:
    """Return a column of positive numbers; those of csv files are texts, some with a comma."""
    try:
        found = np.array([float(str(value).replace(",", ".")) for value in values])
    except (TypeError, ValueError):
        raise DataError(
            f"The column {name} of the checked tasks has an entry that is no number; keep the "
            "column as it was."
        ) from None
    if not (np.isfinite(found) & (found > 0)).all():
        raise DataError(
            f"The column {name} of the checked tasks must hold numbers above 0; keep the column "
            "as it was."
        )
    return found


def _number_first(name: str) -> float:
    """Return the number that a stratum is called, so that the tenth comes after the second."""
    try:
        return float(name)
    except ValueError:
        return float("inf")
