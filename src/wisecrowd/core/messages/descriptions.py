"""Descriptions of ids, rows and columns for messages."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

_SEARCHED = 100_000  # maximum number of ids to search for a similar one; more would take seconds


def describe_value(value: Any, limit: int = 200) -> str:
    """Return a value as text for a message, or only its type if it is long.

    Examples
    --------
    >>> describe_value(0.5), describe_value("x" * 1000), describe_value(10**9999)
    ('0.5', 'a very long str', 'a very long int')
    """
    try:
        text = repr(value)
    except ValueError:  # Python does not print integers of more than 4300 digits
        text = " " * (limit + 1)
    return text if len(text) <= limit else f"a very long {type(value).__name__}"


def describe_ids(ids: Sequence[Any] | NDArray[Any], limit: int = 5) -> str:
    """Return the first few ids as text for a message.

    Examples
    --------
    >>> describe_ids(["a", "b", "c"], limit=2)
    "'a', 'b' and 1 more"
    """
    shown = ", ".join(repr(x) for x in np.asarray(ids, dtype=object)[:limit].tolist())
    return shown + (f" and {len(ids) - limit} more" if len(ids) > limit else "")


def describe_rows(rows: NDArray[np.integer[Any]], limit: int = 5) -> str:
    """Return row numbers, counted from 1, for rows counted from 0.

    Examples
    --------
    >>> describe_rows(np.array([0, 4]))
    'rows 1, 5'
    """
    shown = ", ".join(str(row + 1) for row in rows[:limit].tolist())
    more = f" and {len(rows) - limit} more" if len(rows) > limit else ""
    return f"row{'s' if len(rows) > 1 else ''} {shown}{more}"


def suggestion(value: Any, known: Iterable[Any]) -> str:
    """Return ' (did you mean …?)' if a known id is similar to ``value``, else an empty text.

    Examples
    --------
    >>> suggestion("wroker", ["task", "worker"])
    " (did you mean 'worker'?)"
    """
    known = known.tolist() if isinstance(known, np.ndarray) else known
    texts = {str(x): x for x in known}
    if str(value) in texts:
        match = texts[str(value)]
        return (
            f" (there is {match!r} of type {type(match).__name__}, "
            f"not {type(value).__name__}: convert one of them)"
        )
    if len(texts) > _SEARCHED:
        return ""
    close = difflib.get_close_matches(str(value), list(texts), n=1)
    return f" (did you mean {texts[close[0]]!r}?)" if close else ""


class Places(NamedTuple):
    """Names of columns and rows in the source of the data."""

    names: Mapping[str, str]
    rows: Callable[[NDArray[np.integer[Any]]], str] = describe_rows
    header: Sequence[str] = ()  # all columns of the table, including those that are not read

    def column(self, role: str) -> str:
        """Return the role, with the column's name if that differs."""
        name = self.names.get(role, role)
        return role if name == role else f"{role} ({name!r})"

    def where(self, mask: NDArray[np.bool_]) -> str:
        """Describe the rows where the mask is true."""
        return self.rows(np.flatnonzero(mask))


def short(value: Any, limit: int = 60) -> str:
    """Return a value as text of limited length.

    Examples
    --------
    >>> short("a" * 5, 4)
    'aaa…'
    """
    text = str(value)
    return text if len(text) <= limit else text[: limit - 1] + "…"
