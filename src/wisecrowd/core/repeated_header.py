"""Rows that repeat the names of the columns, as in files that were joined."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

_BEFORE = ("", "\ufeff")  # a file that was joined may begin with a mark of its encoding


def header_rows(columns: Mapping[str, Any]) -> NDArray[np.int64]:
    """Return the rows in which every value is the name of its column; of one column, none.

    Parameters
    ----------
    columns : mapping of name to values
        Arrow or NumPy arrays, or lists.

    Examples
    --------
    >>> header_rows({"task": ["t1", "task"], "label": ["cat", "label"]}).tolist()
    [1]
    """
    rows = np.zeros(0, dtype=np.int64)
    for number, (name, values) in enumerate(columns.items()):
        if number == 0:
            rows = _first_rows(name, values)
        else:
            rows = rows[[_at(values, row) == name for row in rows.tolist()]]
        if not len(rows):
            break
    return rows if len(columns) > 1 else rows[:0]


def _first_rows(name: str, values: Any) -> NDArray[np.int64]:
    """Return the rows with a name, quickly: nearly always there are none."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if isinstance(values, pa.Array | pa.ChunkedArray):
        if pa.types.is_dictionary(values.type):
            return _first_rows(name, _without_dictionary(name, values))
        kind = values.type
        if not (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
            return np.zeros(0, dtype=np.int64)
        # A comparison with a scalar would import pandas, which takes longer than the search.
        pattern = rf"^(?:{_BEFORE[1]})?\s*{re.escape(name)}\s*$"
        rows = pc.indices_nonzero(pc.match_substring_regex(values, pattern)).to_pylist()
        return np.array([row for row in rows if _at(values, row) == name], dtype=np.int64)
    if isinstance(values, np.ndarray) and values.dtype.kind not in "OUT":
        return np.zeros(0, dtype=np.int64)
    return np.flatnonzero([isinstance(x, str) and _text(x) == name for x in values])


def _without_dictionary(name: str, values: Any) -> Any:
    """Return the texts behind a dictionary; [] if the name is not in it, which takes no time."""
    import pyarrow as pa

    parts = values.chunks if isinstance(values, pa.ChunkedArray) else [values]
    if any(name in map(_text, part.dictionary) for part in parts):
        return values.cast(values.type.value_type)
    return []


def _at(values: Any, row: int) -> str:
    """Return the text in a row; columns may still have different lengths."""
    if hasattr(values, "iloc"):  # a series has an index of its own
        return _text(values.iloc[row]) if row < len(values) else ""
    return _text(values[row]) if row < len(values) else ""


def _text(value: Any) -> str:
    """Return a value as text, without what may stand around a name in a header."""
    value = value.as_py() if hasattr(value, "as_py") else value
    return value.removeprefix(_BEFORE[1]).strip() if isinstance(value, str) else ""


def header_sentence(where: str, names: list[str], remedy: str = "remove it") -> str:
    """Return the sentence that refuses such a row.

    Examples
    --------
    >>> header_sentence("row 7 of a.csv", ["task", "worker", "label"])
    "row 7 of a.csv repeats the names of the columns ('task', 'worker', 'label'); remove it."
    """
    listed = ", ".join(map(repr, names[:5])) + (" …" if len(names) > 5 else "")
    return f"{where} repeats the names of the columns ({listed}); {remedy}."
