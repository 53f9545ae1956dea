"""Choices of which workers may take several: classes if nobody did, and sets otherwise.

Exports do not say whether a question allows several choices. All answers are read first, each as a
list in a text, and the last step decides the kind.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.ids.encoding import Encoded, encode
from wisecrowd.core.kinds import SETS
from wisecrowd.core.messages.option_spelling import option
from wisecrowd.io.formats import Request
from wisecrowd.io.platforms.values import as_text

_MARK = "\x00"  # in front of a list; no label has it
SKIPPED = _MARK  # an annotation that answers other questions only
EMPTY = _MARK + "-"  # an annotation without any answer
EMPTY_ANNOTATIONS = "empty annotations"  # the reason why they are left out
_REASONS = {EMPTY: EMPTY_ANNOTATIONS, _MARK + "[]": "without a label"}


def members(label: Any) -> list[str] | None:
    """Return the choices of an answer, sorted, each once; None if it is not an answer.

    Examples
    --------
    >>> members(["dog", "cat"]), members("cat"), members([]), members(None)
    (['cat', 'dog'], ['cat'], [], None)
    """
    texts = [as_text(one) for one in (label if isinstance(label, list) else [label])]
    if any(text is None for text in texts):
        return None
    return sorted({text for text in texts if text is not None})


def set_text(label: Any) -> str | None:
    """Return the choices of an answer as a JSON list; None if it is not an answer.

    Examples
    --------
    >>> set_text(["dog", "cat"]), set_text([])
    ('["cat", "dog"]', '[]')
    """
    found = members(label)
    return None if found is None else json.dumps(found, ensure_ascii=False)


def open_text(label: Any) -> str | None:
    """Return an answer as text from which :func:`close_choices` makes a class or a set."""
    text = set_text(label)
    return None if text is None else _MARK + text


def close_choices(values: dict[str, Any], request: Request) -> NDArray[np.bool_]:
    """Turn the answers into classes or sets, and return which rows have one.

    ``values`` are the columns that were read; the column of the answers is replaced.
    """
    import pyarrow as pa

    request.open_choices = False
    column: Encoded = values.pop("label")
    texts = [str(text) for text in column.vocabulary.tolist()]
    lists = [_choices(text) for text in texts]
    if all(found is None or len(found) < 2 for found in lists):
        return _as_classes(values, column, texts, lists, request)
    shown = option("type", SETS)
    request.follow(SETS, f"workers gave several choices, so they are read as {shown}")
    count = np.bincount(column.codes[column.codes >= 0], minlength=len(texts))
    n_empty = sum(int(n) for n, text in zip(count, texts, strict=True) if text in (SKIPPED, EMPTY))
    note_nothing_marked(n_empty, request)
    sets = [
        text.removeprefix(_MARK) if found is None else json.dumps(found, ensure_ascii=False)
        for text, found in zip(texts, lists, strict=True)
    ]
    if "label" in request.found and request.answer_role != "label":
        request.found[request.answer_role] = request.found.pop("label")
    values[request.answer_role] = pa.array(np.array(sets, dtype=object)[column.codes])
    return np.ones(len(column.codes), dtype=bool)


def note_nothing_marked(count: int, request: Request) -> None:
    """Report how many annotations without an answer count as "nothing"."""
    if count:
        request.note(
            f"{count} finished annotations without an answer to this question count as nothing "
            "marked"
        )


def _as_classes(
    values: dict[str, Any],
    column: Encoded,
    texts: list[str],
    lists: list[list[str] | None],
    request: Request,
) -> NDArray[np.bool_]:
    """Replace lists of one choice by the choice; rows without one are left out."""
    names = [
        text if found is None else found[0] if found else None
        for text, found in zip(texts, lists, strict=True)
    ]
    kept: NDArray[np.bool_] = np.array([name is not None for name in names], dtype=bool)[
        column.codes
    ]
    count = np.bincount(column.codes, minlength=len(texts))
    for text, reason in _REASONS.items():
        if text in texts:
            request.inventory.drop(reason, int(count[texts.index(text)]))
    known = encode(np.array([name for name in names if name is not None], dtype=object), "label")
    codes = np.full(len(names), -1, dtype=np.int32)
    codes[[name is not None for name in names]] = known.codes
    values["label"] = Encoded(codes[column.codes], known.vocabulary)
    return kept


def _choices(text: str) -> list[str] | None:
    """Return the choices in a text of :func:`open_text`; None for a label of another source."""
    if not text.startswith(_MARK):
        return None
    if text in (SKIPPED, EMPTY):
        return []
    found: list[str] = json.loads(text[len(_MARK) :])
    return found
