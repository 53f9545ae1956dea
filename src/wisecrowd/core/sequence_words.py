"""Texts of tokens, where the table has them: words, or pieces between the limits of spans."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.arrow import is_missing, refuse_halves, to_numpy
from wisecrowd.core.exceptions import DataError
from wisecrowd.core.messages.descriptions import Places

Codes = NDArray[np.int32]
Ints = NDArray[np.int64]
NOT_WORDS = "the text has other words than tags, so that spans are given without their text"


def texts_of(text: Any) -> list[Any]:
    """Return the texts of all rows; None where there is none."""
    values = to_numpy(text).tolist()
    return [None if is_missing(one) or (isinstance(one, str) and not one) else one
            for one in values]  # fmt: skip


def refuse_broken_texts(text: Any, places: Places) -> None:
    """Refuse texts, or lists of words, that cannot be written as UTF-8."""
    values = texts_of(text)
    joined = np.empty(len(values), dtype=object)
    joined[:] = [
        one if one is None or isinstance(one, str) else " ".join(map(str, one)) for one in values
    ]
    refuse_halves(joined, "text", places)


def words_of_tags(text: Any, task: Codes, length: Ints) -> NDArray[Any] | None:
    """Return the words of each task, or None if there is not one per tag.

    Parameters
    ----------
    text : (n_rows,) texts with a space between words, or lists of words
    task : (n_rows,) int32
    length : (n_tasks,)
        Number of tags.
    """
    found = np.empty(len(length), dtype=object)
    for code, one in zip(task.tolist(), texts_of(text), strict=True):
        if one is None:
            continue
        words = one.split() if isinstance(one, str) else [str(word) for word in one]
        if len(words) != length[code]:
            return None
        found[code] = words
    return filled(found, length)


def words_of_spans(
    text: Any, task: Codes, start: Ints, end: Ints, marked: NDArray[np.bool_],
    offsets: NDArray[Any], ids: NDArray[Any], places: Places,
) -> NDArray[Any]:  # fmt: skip
    """Return the pieces of text between the limits of the spans of each task.

    Parameters
    ----------
    text : (n_rows,) texts
        Each is the text of its span, if all have the length of their spans; otherwise it is the
        whole text of the task.
    task, start, end, marked : (n_rows,)
        Task and limits of the span in each row, and whether there is one.
    offsets : (n_tasks,) of arrays
        The limits that cut each text.
    ids : (n_tasks,)
    places : Places

    Raises
    ------
    DataError
        If a span is not inside of its text, or a task has two texts.
    """
    texts, known = texts_of(text), np.empty(len(ids), dtype=object)
    rows = [row for row in np.flatnonzero(marked).tolist() if texts[row] is not None]
    pieces = all(len(texts[row]) == end[row] - start[row] for row in rows)
    if pieces:
        return _from_pieces(texts, rows, task, start, offsets)
    for row, one in enumerate(texts):
        if one is None:
            continue
        code = int(task[row])
        if known[code] is not None and known[code] != one:
            first = next(r for r, t in enumerate(texts) if t is not None and task[r] == code)
            raise DataError(
                f"Task {ids[code]!r} has one text in {places.where(_rows(first, len(texts)))} and "
                f"another in {places.where(_rows(row, len(texts)))}; give its whole text in each "
                "row, or the text of the span."
            )
        known[code] = one
    for row in np.flatnonzero(marked).tolist():
        one = known[int(task[row])]
        if one is not None and end[row] > len(one):
            raise DataError(
                f"The span in {places.where(_rows(row, len(texts)))} runs from {start[row]} to "
                f"{end[row]}, outside of the text of task {ids[int(task[row])]!r}, which has "
                f"{len(one)} characters; correct its limits, or the text."
            )
    found = np.empty(len(ids), dtype=object)
    for code, one in enumerate(known):
        if one is not None:
            found[code] = [one[a:b] for a, b in pairwise(offsets[code].tolist())]
    return filled(found, np.array([len(one) - 1 for one in offsets], dtype=np.int64))


def _from_pieces(
    texts: list[Any], rows: list[int], task: Codes, start: Ints, offsets: NDArray[Any]
) -> NDArray[Any]:
    """Return the pieces of the texts of spans; tokens that nobody marked have none."""
    found = np.empty(len(offsets), dtype=object)
    for code, limits in enumerate(offsets):
        found[code] = [""] * (len(limits) - 1)
    for row in rows:
        limits = offsets[int(task[row])]
        first, stop = np.searchsorted(limits, [start[row], start[row] + len(texts[row])])
        own = (limits - start[row]).tolist()
        for k in range(int(first), int(stop)):
            found[int(task[row])][k] = texts[row][own[k] : own[k + 1]]
    return found


def filled(words: NDArray[Any], length: Ints) -> NDArray[Any]:
    """Return the words, with empty ones for tasks without a text."""
    for code, one in enumerate(words):
        if one is None:
            words[code] = [""] * int(length[code])
    return words


def _rows(row: int, size: int) -> NDArray[np.bool_]:
    mask = np.zeros(size, dtype=bool)
    mask[row] = True
    return mask
