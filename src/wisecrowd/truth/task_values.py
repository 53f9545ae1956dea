"""One value per task, such as its group, from an attribute, a column, a mapping or an array."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.annotations import Annotations
from wisecrowd.core.arrow import is_missing
from wisecrowd.core.columns import find_columns
from wisecrowd.core.exceptions import DataError, ParameterError
from wisecrowd.core.ids.encoding import encode, lookup
from wisecrowd.core.messages.descriptions import suggestion
from wisecrowd.core.messages.option_spelling import option
from wisecrowd.core.types import Longs


def values_of_tasks(given: Any, data: Annotations, frame: Any, what: str) -> NDArray[Any]:
    """Return one value per task (n_tasks,), None where it is missing.

    Parameters
    ----------
    given : str, mapping from task to value, or (n_tasks,) array
        A text names a task attribute of the data, or a column of the frame.
    data : Annotations
    frame : dataframe or None
        The table that the data were made of.
    what : str
        What messages call it.

    Examples
    --------
    >>> from wisecrowd import CrowdLabels
    >>> data = CrowdLabels.from_arrays(["t1", "t2"], ["ann", "ann"], ["a", "b"])
    >>> values_of_tasks({"t2": "x"}, data, None, "by").tolist()
    [None, 'x']
    """
    found = np.full(data.n_tasks, None, dtype=object)
    if isinstance(given, str):
        if given in data.task_columns:
            return np.asarray(data.task_columns[given])
        return column_of_tasks(frame, given, data, what)
    if isinstance(given, Mapping):
        place = lookup(list(given), data.tasks)
        for code, value in zip(place.tolist(), given.values(), strict=True):
            if code >= 0:
                found[code] = value
        return found
    values = list(given)
    if len(values) != data.n_tasks:
        raise ParameterError(
            f"{what} has {len(values)} values for {data.n_tasks} tasks; give one per task, or the "
            "name of a column."
        )
    found[:] = values
    return found


def column_of_tasks(
    frame: Any, name: str, data: Annotations, what: str, task: str | None = None
) -> NDArray[Any]:
    """Return a column of the table of labels as one value per task.

    Parameters
    ----------
    frame : dataframe or None
    name : str
    data : Annotations
    what : str
        What messages call it.
    task : str, optional
        Name of the column of tasks, if it is not a usual one.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from wisecrowd import CrowdLabels
    >>> data = CrowdLabels.from_arrays(["t1", "t1"], ["ann", "bob"], ["a", "b"])
    >>> table = pa.table({"task": ["t1", "t1"], "system": ["x", "x"]})
    >>> column_of_tasks(table, "system", data, "by").tolist()
    ['x']
    """
    attributes = list(data.task_columns)
    if frame is None:
        raise ParameterError(
            f"The tasks have no attribute {name!r}{suggestion(name, attributes)} for {what}; give "
            "a mapping from task to value, or one value per task."
        )
    import narwhals as nw

    table = nw.from_native(frame, eager_only=True)
    names = [str(one) for one in table.columns]
    if name not in names:
        there = [*names, *attributes]
        raise ParameterError(
            f"There is no column {name!r}{suggestion(name, there)} for {what}; there are "
            f"{', '.join(there)}."
        )
    found, _ = find_columns(names, {"task": task})
    ids = encode(table[found["task"]].to_numpy(), "task")
    place = lookup(ids.vocabulary, data.tasks)[ids.codes]
    values = encode(table[name].to_numpy(), name)
    kept = (place >= 0) & (ids.codes >= 0) & (values.codes >= 0)
    code = np.full(data.n_tasks, -1, dtype=np.int64)
    code[place[kept]] = values.codes[kept]
    differs = kept & (code[np.maximum(place, 0)] != values.codes)
    if differs.any():
        row = int(np.argmax(differs))
        task_id = data.tasks[[place[row]]].tolist()[0]
        first, second = values.vocabulary[[code[place[row]], values.codes[row]]].tolist()
        raise DataError(
            f"Task {task_id!r} has two values of {name}, {first!r} and {second!r}; if what is "
            f"labelled is both together, give {option('task', found['task'] + ',' + name)}."
        )
    vocabulary = np.append(values.vocabulary.astype(object), [None])
    return np.asarray(vocabulary[code])


def cluster_codes(values: NDArray[Any]) -> Longs:
    """Return the cluster of each task; a task without a value is a cluster of its own.

    Examples
    --------
    >>> cluster_codes(np.array(["x", None, "x"], dtype=object)).tolist()
    [0, 1, 0]
    """
    codes: dict[Any, int] = {}
    found = [
        codes.setdefault(object() if is_missing(value) or value == "" else value, len(codes))
        for value in values.tolist()
    ]
    return np.array(found, dtype=np.int64)
