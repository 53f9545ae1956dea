"""One annotation of any kind as short text, for examples."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from wisecrowd.core.annotations import Annotations
from wisecrowd.core.labels import CrowdLabels
from wisecrowd.core.masks import CrowdMasks
from wisecrowd.core.numbers import CrowdNumbers
from wisecrowd.core.pairs import CrowdPairs
from wisecrowd.core.regions import CrowdRegions
from wisecrowd.core.same import CrowdSame
from wisecrowd.core.sequences import CrowdSequences
from wisecrowd.core.sets import CrowdSets
from wisecrowd.core.texts import CrowdTexts

LONGEST = 60  # characters of an answer
MOST_SPANS = 4


def short(value: Any, limit: int = LONGEST) -> str:
    """Return a value as text of limited length.

    Examples
    --------
    >>> short("a" * 5, 4)
    'aaa…'
    """
    text = str(value)
    return text if len(text) <= limit else text[: limit - 1] + "…"


def answer_text(data: Annotations, row: int) -> str:
    """Return the answer of an annotation as short text.

    Examples
    --------
    >>> votes = CrowdPairs.from_arrays(None, ["ann"], ["x"], ["y"], ["right"])
    >>> answer_text(votes, 0)
    'y over x'
    """
    for kind, function in _TEXTS.items():
        if isinstance(data, kind):
            return short(function(data, row))
    return short(data._values(data.payload[0])[row])


def _vote(data: Any, e: int) -> str:
    left, right = data.items[data.left[e]], data.items[data.right[e]]
    pair = (left, right) if data.outcome[e] == 0 else (right, left)
    return "tie" if data.outcome[e] > 1 else f"{short(pair[0], 26)} over {short(pair[1], 26)}"


def _set(data: Any, e: int) -> str:
    codes = data.members[data.pointer[e] : data.pointer[e + 1]]
    return ", ".join(sorted(map(str, data.classes[codes]))) or "nothing"


def _spans(data: Any, e: int) -> str:
    """Return the types and places of marked tokens, "PER 0-2"."""
    tags = data.classes[data.tags[data.pointer[e] : data.pointer[e + 1]]].tolist()
    if data.scheme != "bio":
        return " ".join(map(str, tags))
    found: list[list[Any]] = []
    for place, tag in enumerate(tags):
        if tag.startswith("B-") or (tag != "O" and (not found or found[-1][2] != place)):
            found.append([tag[2:], place, place + 1])
        elif tag != "O":
            found[-1][2] = place + 1
    named = [f"{kind} {start}" + (f"-{end - 1}" if end - start > 1 else "")
             for kind, start, end in found[:MOST_SPANS]]  # fmt: skip
    return (", ".join(named) + (" …" if len(found) > MOST_SPANS else "")) or "nothing"


def _boxes(data: Any, e: int) -> str:
    n = int(data.pointer[e + 1] - data.pointer[e])
    return f"{n} box{'' if n == 1 else 'es'}"


def _mask(data: Any, e: int) -> str:
    return f"{int(data.mask[data.pointer[e] : data.pointer[e + 1]][1::2].sum())} pixels"


_TEXTS: dict[type[Annotations], Callable[[Any, int], str]] = {
    CrowdLabels: lambda data, e: str(data.classes[data.label[e]]),
    CrowdNumbers: lambda data, e: f"{data.value[e]:.6g}",
    CrowdSame: lambda data, e: "same" if data.outcome[e] else "different",
    CrowdPairs: _vote,
    CrowdSets: _set,
    CrowdSequences: _spans,
    CrowdRegions: _boxes,
    CrowdMasks: _mask,
    CrowdTexts: lambda data, e: str(data.text[e]) or "(empty)",
}
