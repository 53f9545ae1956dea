"""Attributes of tasks and workers, such as the race of a defendant: columns beside the labels.

Attributes are data for reports and metrics. They never enter a fit unless a method's parameter
names them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.annotations import Annotations
from wisecrowd.core.arrow import is_missing
from wisecrowd.core.exceptions import DataError, ParameterError
from wisecrowd.core.ids.encoding import lookup
from wisecrowd.core.messages.descriptions import describe_ids, suggestion

MOST_GROUPS = 100
Data = TypeVar("Data", bound=Annotations)


@dataclass(frozen=True, eq=False)
class Groups:
    """Groups of tasks.

    Attributes
    ----------
    code : (n_tasks,) int32
        Group of each task, -1 where the attribute is missing.
    names : tuple of str
    """

    code: NDArray[np.int32]
    names: tuple[str, ...]

    @property
    def n_missing(self) -> int:
        """Number of tasks without a group."""
        return int((self.code < 0).sum())

    def note(self, attribute: str) -> str:
        """Return a sentence on tasks without a group; empty if there are none."""
        if not self.n_missing:
            return ""
        return (
            f"{self.n_missing} of {len(self.code)} tasks have no {attribute} and are left out of "
            "the groups."
        )


def with_task_attributes(data: Data, table: Any) -> Data:
    """Return the annotations with more task columns.

    Parameters
    ----------
    data : annotations of any kind
    table : dataframe or mapping of column to values
        A column ``task`` with ids and one column per attribute.

    Raises
    ------
    DataError
        If the table names a task twice, or tasks that have no labels.

    Examples
    --------
    >>> from wisecrowd.kinds.classes.container import CrowdLabels
    >>> labels = CrowdLabels.from_arrays(["t1", "t2"], ["ann", "ann"], ["cat", "dog"])
    >>> known = with_task_attributes(labels, {"task": ["t2", "t1"], "city": ["Rome", "Oslo"]})
    >>> known.task_columns["city"].tolist()
    ['Oslo', 'Rome']
    """
    columns = aligned_columns(table, data.tasks, "task")
    return replace(data, task_columns={**data.task_columns, **columns})


def with_worker_attributes(data: Data, table: Any) -> Data:
    """Return the annotations with more worker columns; the table has a column ``worker``."""
    columns = aligned_columns(table, data.workers, "worker")
    return replace(data, worker_columns={**data.worker_columns, **columns})


def aligned_columns(table: Any, known: NDArray[Any], what: str) -> dict[str, NDArray[Any]]:
    """Return the columns of a table of attributes in the order of known ids; None is missing."""
    columns = _columns(table)
    if what not in columns:
        raise DataError(
            f"The attributes have the columns {', '.join(columns) or 'none'}; call the column with "
            f"the ids {what}."
        )
    ids = columns.pop(what)
    if not columns:
        raise DataError(f"The attributes have no column besides {what}; add one per attribute.")
    place = lookup(_like(ids, known), known)
    if (place < 0).any():
        unknown = ids[int(np.argmax(place < 0))]
        raise DataError(
            f"{int((place < 0).sum())} of {len(ids)} rows of the attributes name a {what} without "
            f"labels, such as {unknown!r}{suggestion(unknown, known)}; leave these rows out."
        )
    count = np.bincount(place, minlength=len(known))
    if (count > 1).any():
        raise DataError(
            f"The attributes name the {what} {known[int(count.argmax())]!r} "
            f"{int(count.max())} times; keep one row of each."
        )
    found = {}
    for name, values in columns.items():
        column = np.full(len(known), None, dtype=object)
        column[place] = [None if _is_blank(value) else value for value in values]
        found[str(name)] = column
    return found


def _columns(table: Any) -> dict[str, list[Any]]:
    if isinstance(table, Mapping):
        return {str(name): list(values) for name, values in table.items()}
    import narwhals as nw

    try:
        frame = nw.from_native(table, eager_only=True)
    except TypeError:
        raise ParameterError(
            f"The attributes are {type(table).__name__}; give a dataframe, or a mapping of column "
            "to values."
        ) from None
    return {str(name): frame[name].to_list() for name in frame.columns}


def _like(ids: list[Any], known: NDArray[Any]) -> list[Any]:
    """Return ids as texts if the known ones are texts: tables read numbers as numbers."""
    if len(known) and isinstance(known[0], str):
        return [str(one) for one in ids]
    return ids


def task_groups(data: Annotations, attribute: str) -> Groups:
    """Return the groups of tasks by an attribute.

    Raises
    ------
    ParameterError
        If there is no such attribute.
    DataError
        If it has one value only, or too many to be groups.

    Examples
    --------
    >>> from wisecrowd.kinds.classes.container import CrowdLabels
    >>> labels = CrowdLabels.from_arrays([1, 2, 3, 4], list("aaaa"), [0, 1, 0, 1])
    >>> known = with_task_attributes(labels, {"task": [1, 2, 3], "city": ["Rome", "Oslo", "Oslo"]})
    >>> groups = task_groups(known, "city")
    >>> groups.names, groups.code.tolist()
    (('Oslo', 'Rome'), [1, 0, 0, -1])
    """
    if attribute not in data.task_columns:
        named = [name for name, column in data.task_columns.items() if column.dtype == object]
        there = f"there are {', '.join(named)}" if named else "there are none"
        raise ParameterError(
            f"The tasks have no attribute {attribute!r}{suggestion(attribute, named)}; {there}."
        )
    return as_groups(data.task_columns[attribute], attribute)


def as_groups(values: Any, what: str = "attribute") -> Groups:
    """Return groups from one value per task; None and NaN are missing."""
    texts = [None if _is_blank(value) else _text(value) for value in values]
    names = sorted({text for text in texts if text is not None}, key=_in_order)
    if len(names) < 2:
        raise DataError(
            f"The {what} has {'one group only, ' + repr(names[0]) if names else 'no values'}; a "
            "comparison needs two groups."
        )
    if len(names) > min(MOST_GROUPS, max(2, len(texts) // 2)):
        raise DataError(
            f"The {what} has {len(names)} groups ({describe_ids(np.array(names, object))}) for "
            f"{len(texts)} values; give one with few groups, such as ranges of a number."
        )
    code = {name: number for number, name in enumerate(names)}
    codes = [-1 if text is None else code[text] for text in texts]
    return Groups(np.array(codes, dtype=np.int32), tuple(names))


def _is_blank(value: Any) -> bool:
    return bool(is_missing(value)) or (isinstance(value, str) and not value.strip())


def _text(value: Any) -> str:
    whole = isinstance(value, float | np.floating) and float(value).is_integer()
    return str(int(value)) if whole else str(value)


def _in_order(name: str) -> tuple[int, float, str]:
    """Sort numbers by value, before texts."""
    try:
        return (0, float(name), name)
    except ValueError:
        return (1, 0.0, name)
