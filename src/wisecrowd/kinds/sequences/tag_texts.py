"""Tags, and the words that they are about: from what files write to what is stored.

BIOES (E ends a span, S is a span of one token), BILOU (L and U) and BMES (M for I) become BIO, also
in lower case and with an underscore. ``I-x`` that continues no span of type ``x`` begins one, as in
the scores of CoNLL.
"""

from __future__ import annotations

import json
import re
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.arrow import is_missing, refuse_halves, to_numpy
from wisecrowd.core.exceptions import DataError
from wisecrowd.core.messages.descriptions import Places
from wisecrowd.core.types import Codes, Longs, Mask

OUT, FIRST, INNER, LAST, ALONE, STRANGE = range(6)  # places of a token in a span
_PLACES = {"B": FIRST, "I": INNER, "E": LAST, "L": LAST, "S": ALONE, "U": ALONE}
_TAG = re.compile(r"([BIESLU])-(.+)", re.DOTALL)
_OTHER_SPELLING = re.compile(r"([BIESLU])[-_](.+)", re.DOTALL | re.IGNORECASE)
_WITH_MIDDLE = re.compile(r"([BMEI])[-_](.+)", re.DOTALL | re.IGNORECASE)
_QUOTED = re.compile(r"'([^']*)'|\"([^\"]*)\"")
_ENDS_WITH_SIGN = re.compile(r"[\w-]+[,;|]")
_SIGNS = ",;|"
NOT_WORDS = "the text has other words than tags, so that spans are given without their text"


def tags_in(text: str) -> list[str]:
    """Return the tags of a cell: text with a space between tags, or a list that is written out.

    Raises
    ------
    ValueError
        The rest of a sentence that begins with the cell.

    Examples
    --------
    >>> tags_in("B-PER O"), tags_in('["B-PER", "O"]'), tags_in("['B-PER' 'O']")
    (['B-PER', 'O'], ['B-PER', 'O'], ['B-PER', 'O'])
    """
    text = text.strip()
    inside = text[1:-1].strip()
    if not (text.startswith("[") and text.endswith("]")) or "[" in inside or "]" in inside:
        return text.split()
    if not inside:
        return []
    try:
        found = json.loads(text)
    except (json.JSONDecodeError, RecursionError):
        found = _written_list(inside)
    if found is None:
        return text.split()
    for tag in found:
        if not isinstance(tag, str | int) or isinstance(tag, bool) or len(str(tag).split()) != 1:
            raise ValueError(f"has the tag {tag!r}, which is not a word; give one tag per token")
    return [str(tag) for tag in found]


def _written_list(inside: str) -> list[str] | None:
    """Return the entries of a list as Python or NumPy writes it; None if it is not one."""
    if _QUOTED.search(inside):
        if _QUOTED.sub("", inside).strip(" ,\n"):
            raise ValueError("is not a list of tags; put a space between tags, without brackets")
        return [one or other for one, other in _QUOTED.findall(inside)]
    if "," in inside:
        return [one.strip() for one in inside.split(",")]
    return inside.split() if _TAG.match(inside) or inside.startswith("O") else None


def joined_tag(lists: list[list[str]]) -> str | None:
    """Return the first tag that looks like several, or like one with its separator.

    Examples
    --------
    >>> joined_tag([["B-PER,I-PER,O"]]), joined_tag([["NN,", "VB"]]), joined_tag([["NN", ","]])
    ('B-PER,I-PER,O', 'NN,', None)
    """
    single = all(len(one) < 2 for one in lists)
    for tag in dict.fromkeys(tag for one in lists for tag in one):
        first = re.split(f"[{_SIGNS}]", tag, maxsplit=1)[0]
        several = first != tag and (single or first == "O" or _TAG.fullmatch(first))
        if _ENDS_WITH_SIGN.fullmatch(tag) or (first and several):
            return tag
    return None


class Marks(NamedTuple):
    """Places and types of tags, all (n_tags,).

    Attributes
    ----------
    place : int64
        OUT, FIRST, INNER, LAST, ALONE or STRANGE.
    kind : list of str
        Types; "" outside of spans.
    """

    place: Longs
    kind: list[str]

    @classmethod
    def of(cls, tags: list[str], pattern: re.Pattern[str] = _OTHER_SPELLING) -> Marks:
        """Read tags one by one.

        Examples
        --------
        >>> Marks.of(["O", "b-per", "S-LOC", "X"])
        Marks(place=array([0, 1, 4, 5]), kind=['', 'per', 'LOC', ''])
        """
        tags = _without_middle(tags)
        outside = ("O",) if pattern is _TAG else ("O", "o")
        parts = [pattern.fullmatch(tag) for tag in tags]
        places = [
            OUT if tag in outside else STRANGE if part is None else _PLACES[part[1].upper()]
            for tag, part in zip(tags, parts, strict=True)
        ]
        return cls(
            np.array(places, dtype=np.int64), ["" if part is None else part[2] for part in parts]
        )

    def has(self, *places: int) -> bool:
        """Return whether some tag has one of these places."""
        return bool(np.isin(self.place, places).any())

    def has_whole_type(self) -> bool:
        """Return whether a type both begins and continues."""
        begun, inner = (
            {kind for kind, own in zip(self.kind, self.place.tolist(), strict=True) if own == place}
            for place in (FIRST, INNER)
        )
        return bool(begun & inner)


def _without_middle(tags: list[str]) -> list[str]:
    """Return tags with I- for the M- of BMES: a type has B-, M- and E-, and nothing begins with I-.

    Examples
    --------
    >>> _without_middle(["B-PER", "M-PER", "E-PER"]), _without_middle(["B-x", "M-x"])
    (['B-PER', 'I-PER', 'E-PER'], ['B-x', 'M-x'])
    """
    parts = [_WITH_MIDDLE.fullmatch(tag) for tag in tags]
    types: dict[str, set[str]] = {letter: set() for letter in "BMEI"}
    for part in parts:
        if part is not None:
            types[part[1].upper()].add(part[2])
    if types["I"] or not types["B"] & types["M"] & types["E"]:
        return tags
    return [
        tag if part is None or part[1] not in "Mm" else ("I" if part[1] == "M" else "i") + tag[1:]
        for tag, part in zip(tags, parts, strict=True)
    ]


def tags_of_tokens(names: list[str]) -> bool:
    """Return whether names of types are tags of tokens: a type both begins and continues.

    Examples
    --------
    >>> tags_of_tokens(["B-PER", "I-PER"]), tags_of_tokens(["B-cell", "T-cell"])
    (True, False)
    """
    return Marks.of(names, _TAG).has_whole_type()


class TagList(NamedTuple):
    """Tags of several sequences, one after the other.

    Attributes
    ----------
    code : (n_tokens,) int64
        Number of the tag of each token, in a list of different tags.
    pointer : (n_sequences + 1,) int64
    times : (n_sequences,) int64
        How often each sequence occurs.
    """

    code: Longs
    pointer: Longs
    times: Longs

    def first(self) -> Mask:
        """Return (n_tokens,) whether a token is the first of its sequence."""
        found = np.zeros(len(self.code), dtype=bool)
        found[self.pointer[:-1][np.diff(self.pointer) > 0]] = True
        return found

    def continues(self, marks: Marks) -> Mask:
        """Return (n_tokens,) whether a token belongs to the span of the token before it."""
        if not len(self.code):
            return np.zeros(0, dtype=bool)
        _, kind = np.unique(np.array(marks.kind, dtype=object), return_inverse=True)
        place, kind = marks.place[self.code], kind[self.code]
        inner = np.isin(place, (INNER, LAST)) & ~self.first()
        open_before = np.append(False, np.isin(place[:-1], (FIRST, INNER)))
        return np.asarray(inner & open_before & (kind == np.append(-1, kind[:-1])))

    def closes(self, marks: Marks) -> bool:
        """Return whether most spans end with a tag that says so, as in BIOES and BILOU."""
        place = marks.place[self.code]
        times = np.repeat(self.times, np.diff(self.pointer))
        goes_on = np.append(self.continues(marks)[1:], False)
        left_open = np.isin(place, (FIRST, INNER)) & ~goes_on
        closed = np.isin(place, (LAST, ALONE))
        return bool(times[closed].sum() > times[left_open].sum())


def span_marks(tags: list[str], given: TagList, *, wanted: bool, declared: bool) -> Marks | None:
    """Return the marks of tags that mark spans, with strange ones; None if tags are plain classes.

    Tags mark spans if some begin with B- or I-. Lower case and underscores also occur in names of
    classes, so that they count only if all tags have such a form, or if a type has both tags.

    Parameters
    ----------
    tags : list of str
        The different tags.
    given : TagList
    wanted : bool
        Whether the user says that tags mark spans.
    declared : bool
        Whether the user has declared these tags: then all of them, or none, mark spans.
    """
    exact, marks = Marks.of(tags, _TAG), Marks.of(tags)
    whole, outside = not marks.has(STRANGE), marks.has(OUT)
    sure = wanted or exact.has(FIRST, INNER) or (
        whole and not exact.has(STRANGE) and exact.has(ALONE) and outside
    )  # fmt: skip
    likely = marks.has_whole_type() or (whole and outside and marks.has(FIRST, INNER))
    if not (sure or likely) or (declared and not wanted and not whole):
        return None
    if marks.has(LAST, ALONE) and not (declared or given.closes(marks)):
        closing = np.isin(marks.place, (LAST, ALONE))
        return Marks(np.where(closing, STRANGE, marks.place), marks.kind)
    return marks


def bio_codes(marks: Marks, given: TagList, types: list[str]) -> tuple[Longs, int]:
    """Return the codes of BIO tags, and how many tags I-x begin a span.

    Parameters
    ----------
    marks : Marks
    given : TagList
    types : list of str
        In the order of the scheme: type ``k`` has the tags ``1 + 2 k`` and ``2 + 2 k``.
    """
    number = {kind: code for code, kind in enumerate(types)}
    kind = np.array([number.get(one, 0) for one in marks.kind], dtype=np.int64)[given.code]
    place, inner = marks.place[given.code], given.continues(marks)
    times = np.repeat(given.times, np.diff(given.pointer))
    repaired = int(times[(place == INNER) & ~inner].sum())
    return np.where(place == OUT, 0, 1 + 2 * kind + inner), repaired


def in_bio(tags: list[str]) -> list[str]:
    """Return the tags of one sequence in BIO; strange tags and I-x without a span stay.

    Examples
    --------
    >>> in_bio(["B-PER", "E-PER", "I-PER", "S-LOC", "X", "I-LOC"])
    ['B-PER', 'I-PER', 'B-PER', 'B-LOC', 'X', 'I-LOC']
    """
    marks, found, closed = Marks.of(tags), [], ""
    for tag, place, kind in zip(tags, marks.place.tolist(), marks.kind, strict=True):
        begins = place in (FIRST, ALONE) or (place in (INNER, LAST) and closed == kind)
        found.append("O" if place == OUT else tag if place == STRANGE else
                     f"{'B' if begins else 'I'}-{kind}")  # fmt: skip
        closed = kind if place in (LAST, ALONE) else ""
    return found


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


def words_of_tags(text: Any, task: Codes, length: Longs) -> NDArray[Any] | None:
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
    text: Any, task: Codes, start: Longs, end: Longs, marked: NDArray[np.bool_],
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
    texts: list[Any], rows: list[int], task: Codes, start: Longs, offsets: NDArray[Any]
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


def filled(words: NDArray[Any], length: Longs) -> NDArray[Any]:
    """Return the words, with empty ones for tasks without a text."""
    for code, one in enumerate(words):
        if one is None:
            words[code] = [""] * int(length[code])
    return words


def _rows(row: int, size: int) -> NDArray[np.bool_]:
    mask = np.zeros(size, dtype=bool)
    mask[row] = True
    return mask
