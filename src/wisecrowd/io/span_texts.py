"""Texts that spans are about: which field of an export they are, and what stands in a span."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.exceptions import DataError
from wisecrowd.kinds.sequences.container import OFFSETS, WORDS, CrowdSequences

_ADDRESS = re.compile(r"[a-z0-9+-]+://|/", re.I)  # of a file, in place of its text
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


def beyond_text(
    data: Mapping[str, Any], marked: Iterable[tuple[Any, Any, Any]]
) -> tuple[int, int] | None:
    """Return the end of the first span that no text of a task reaches, and the longest length.

    The result is None if all spans fit, or if the text may be elsewhere: in a list, or at an
    address.

    Examples
    --------
    >>> beyond_text({"text": "Ada met Bob", "id": 3}, [(8, 99, "Bob")])
    (99, 11)
    >>> beyond_text({"text": "https://example.org/a.txt"}, [(8, 99, "Bob")]) is None
    True
    """
    texts = [value for value in data.values() if isinstance(value, str)]
    stored = any(isinstance(value, list | dict) for value in data.values())
    if not texts or stored or any(_ADDRESS.match(text) for text in texts):
        return None
    longest = max(len(_units(text)) for text in texts)
    ends = [end for _, end, _ in marked if isinstance(end, int) and end > longest]
    return (ends[0], longest) if ends else None


def _units(text: str) -> str:
    """Return a text with one character per UTF-16 unit."""
    if text.isascii():
        return text
    coded = text.encode("utf-16-le", "surrogatepass")
    return "".join(map(chr, np.frombuffer(coded, dtype="<u2").tolist()))


def slice_of(text: str, start: int, end: int) -> str:
    """Return what stands between two limits of a text; halves of a character are replaced."""
    return text[start:end].encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def with_texts(data: CrowdSequences, texts: Mapping[str, str]) -> CrowdSequences:
    """Return spans with the text of every token, by the texts of tasks; unknown ones are empty.

    Raises
    ------
    DataError
        If a span ends after the text.
    """
    limits = data.task_columns[OFFSETS].tolist()
    words = np.empty(data.n_tasks, dtype=object)
    for i, task in enumerate(data.tasks.tolist()):
        text, end = texts.get(str(task), ""), int(limits[i][-1])
        if text and end > len(text):
            raise DataError(
                f"A span of task {task!r} ends at character {end}, and its text has {len(text)}; "
                "correct the limits, or the text."
            )
        words[i] = [slice_of(text, start, end) for start, end in pairwise(limits[i].tolist())]
    return replace(data, task_columns={**data.task_columns, WORDS: words})


def span_rows(data: CrowdSequences) -> dict[str, NDArray[Any]]:
    """Return a table with one row per span, or per annotation that marks nothing.

    Examples
    --------
    >>> rows = ["d", "d"], ["ann", "bob"], [0, None], [5, None], ["PER", None]
    >>> table = span_rows(CrowdSequences.from_spans(*rows))
    >>> table["worker"].tolist(), table["start"].tolist(), table["label"].tolist()
    (['ann', 'bob'], [0, None], ['PER', None])
    """
    spans = data.tag_scheme.spans(data.tags, data.pointer)
    count = np.bincount(spans.sequence, minlength=data.n_annotations)
    row = np.repeat(np.arange(data.n_annotations), np.maximum(count, 1))
    marked = count[row] > 0
    base = np.append(0, np.cumsum(data.length + 1))[data.task[spans.sequence]]
    types = np.array(data.tag_scheme.types, dtype=object)
    found = {"start": data.offset[base + spans.start], "end": data.offset[base + spans.end],
             "label": types[spans.kind]}  # fmt: skip
    if WORDS in data.task_columns:
        first = data.token_pointer[data.task[spans.sequence]]
        limits = zip((first + spans.start).tolist(), (first + spans.end).tolist(), strict=True)
        words = data.words.tolist()
        found["text"] = np.array(["".join(words[a:b]) for a, b in limits], dtype=object)
    table = {"task": data.tasks[data.task[row]], "worker": data.workers[data.worker[row]]}
    for name, values in found.items():
        table[name] = np.full(len(row), None, dtype=object)
        table[name][marked] = values
    rest = data.to_dict()
    return table | {name: rest[name][row] for name in rest if name not in (*table, "tags")}
