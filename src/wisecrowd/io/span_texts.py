"""Texts that spans are about: which field of an export they are, and what stands in a span."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.annotations import Annotations

TEXT = "text"  # the task column that holds the texts
_SHOWN_BREAK = "\\n"  # how Label Studio writes a line break in the text of a span


def find_text(data: Mapping[str, Any], marked: Iterable[tuple[Any, Any, Any]]) -> str | None:
    """Return the field of a task's data in which all spans have the given texts.

    Label Studio counts in UTF-16 units, as browsers do. Where that makes a difference, the
    result has one character per unit, so that ``text[start:end]`` is the span.

    Parameters
    ----------
    data : mapping
    marked : iterable of (start, end, text)

    Examples
    --------
    >>> find_text({"title": "Hi there", "text": "Ada met Bob"}, [(0, 3, "Ada"), (8, 11, "Bob")])
    'Ada met Bob'
    >>> slice_of(find_text({"text": "👍 Ada"}, [(3, 6, "Ada")]), 3, 6)
    'Ada'
    """
    spans = [
        (start, end, (text, text.replace(_SHOWN_BREAK, "\n")))
        for start, end, text in marked
        if isinstance(start, int) and isinstance(end, int) and isinstance(text, str)
    ]
    fields = [value for value in data.values() if isinstance(value, str)]
    for text in fields if spans else []:
        for counted in (text, _units(text)):
            if all(slice_of(counted, start, end) in given for start, end, given in spans):
                return counted
    return None


def _units(text: str) -> str:
    """Return a text with one character per UTF-16 unit."""
    if text.isascii():
        return text
    coded = text.encode("utf-16-le", "surrogatepass")
    return "".join(map(chr, np.frombuffer(coded, dtype="<u2").tolist()))


def slice_of(text: str, start: int, end: int) -> str:
    """Return what stands between two limits of a text; halves of a character are replaced."""
    return text[start:end].encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def with_texts(data: Annotations, texts: Mapping[str, str]) -> Annotations:
    """Return annotations with the texts of their tasks, by task id."""
    column = np.array([texts.get(str(task)) for task in data.tasks.tolist()], dtype=object)
    return replace(data, task_columns={**data.task_columns, TEXT: column})


def add_texts(table: dict[str, NDArray[Any]], data: Annotations) -> dict[str, NDArray[Any]]:
    """Return a table of spans with their texts before the last column, if the texts are known."""
    if TEXT not in data.task_columns or not {"task", "start", "end"} <= table.keys():
        return table
    texts = dict(zip(data.tasks.tolist(), data.task_columns[TEXT].tolist(), strict=True))
    places = zip(*(table[name].tolist() for name in ("task", "start", "end")), strict=True)
    found = [
        None if texts.get(task) is None else slice_of(texts[task], start, end)
        for task, start, end in places
    ]
    shown = {}
    for name, column in table.items():
        if name == "confidence":
            shown[TEXT] = np.array(found, dtype=object)
        shown[name] = column
    return shown
