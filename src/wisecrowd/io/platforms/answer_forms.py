"""Forms of answers on annotation platforms, and the kinds of labels that each can be read as.

A platform declares the form of a question, such as a rating or a comparison. The first kind of a
form is the one that is read unless the user or the method declares another. Exports do not say
whether a question allows several choices: all answers are read first, each as a list in a text, and
the last step decides whether they are classes, because nobody gave several, or sets.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.exceptions import DataError
from wisecrowd.core.ids.encoding import Encoded, encode
from wisecrowd.core.messages.option_spelling import option
from wisecrowd.io.formats import Request
from wisecrowd.io.platforms.values import as_text
from wisecrowd.kinds import BOXES, LABELS, NUMBERS, ORDERED, PAIRS, SEQUENCES, SETS, TEXTS

CHOICES, LIST, RATING, NUMBER = "choices", "list of choices", "rating", "number"
PAIRWISE, CHOICE_OF_TWO, RANKING = "pairwise", "choice of two", "ranking"
TAXONOMY, SPANS, RECTANGLES, TEXT = "taxonomy", "spans", "rectangles", "text"

# Choices are classes unless an answer has several of them: see ``several_choices``.
KINDS_OF: dict[str, tuple[str, ...]] = {
    CHOICES: (LABELS, SETS, ORDERED, NUMBERS, TEXTS),
    LIST: (SETS, LABELS, ORDERED, NUMBERS, PAIRS),  # or a ranking: not told apart
    TAXONOMY: (SETS, LABELS, ORDERED, NUMBERS),
    RATING: (ORDERED, LABELS, NUMBERS),
    NUMBER: (NUMBERS, LABELS, ORDERED),
    PAIRWISE: (PAIRS, LABELS),
    CHOICE_OF_TWO: (LABELS, SETS, ORDERED, NUMBERS, PAIRS),
    RANKING: (PAIRS,),
    SPANS: (SEQUENCES,),
    RECTANGLES: (BOXES,),
    TEXT: (TEXTS, LABELS),
}
# Columns of the answers of kinds that have several; the others have ``label`` alone.
COLUMNS_OF: dict[str, tuple[str, ...]] = {
    PAIRS: ("left", "right", "outcome"),
    SEQUENCES: ("tags", "start", "end"),
    BOXES: ("label", "x", "y", "width", "height", "image_width", "image_height"),
}
OPEN = (CHOICES, CHOICE_OF_TWO)  # forms of which an answer may turn out to have several choices
MOST_RANKED = 100  # items of a ranking, whose comparisons grow with the square
_FROM_RANKINGS = (
    "every ranking counts as the comparisons of its items two by two, which are not independent: "
    "intervals come out too narrow"
)


class UnknownItemsError(DataError):
    """An export does not say which items a comparison is about."""


class Vote(NamedTuple):
    """A comparison of two items.

    ``unknown`` is the error if the items are not known.
    """

    left: Any
    right: Any
    outcome: Any
    unknown: str = ""


class Ranking(NamedTuple):
    """Items in an order: by their ranks, the best first, or as listed."""

    items: Sequence[Any]
    ranks: Sequence[Any] | None = None


class Marks(NamedTuple):
    """Spans of a text: start, end and type of each; none if the worker marked nothing.

    ``wrong`` is the error if they cannot be spans of the text.
    """

    spans: Sequence[tuple[Any, Any, Any]] = ()
    wrong: str = ""

    def rows(self) -> list[tuple[str | None, ...]]:
        """Return type, start and end of each span, or one row of nothing."""
        if self.wrong:
            raise DataError(self.wrong)
        found = [(as_text(kind), as_text(start), as_text(end)) for start, end, kind in self.spans]
        return [*found] or [(None, None, None)]


class Boxes(NamedTuple):
    """Boxes on an image, in pixels: x, y, width, height and class of each, and the image's size.

    There are none if the worker drew nothing.
    """

    boxes: Sequence[tuple[float, float, float, float, Any]] = ()
    size: tuple[float, float] | None = None

    def rows(self) -> list[tuple[str | None, ...]]:
        """Return class, place and image size of each box, or one row without a place."""
        size = tuple(map(as_text, self.size or (None, None)))
        found = [
            (as_text(kind), *(as_text(float(part)) for part in place), *size)
            for *place, kind in self.boxes
        ]
        return [*found] or [(None, None, None, None, None, *size)]


# Kinds in which marking nothing is an answer, and the row of one, given the size of the image.
Size = tuple[float, float] | None
NOTHING: dict[str, Callable[[Size], tuple[str | None, ...]]] = {
    SETS: lambda size: ("[]",),
    SEQUENCES: lambda size: Marks().rows()[0],
    BOXES: lambda size: Boxes(size=size).rows()[0],
}


def settle_kind(form: str, question: str, source: str, request: Request) -> DataError | None:
    """Let the form of a question choose the kind, or return the error if it has no such labels.

    The error is returned, because a file with several questions gets another one.
    """
    kinds = KINDS_OF[form]
    about = f"{question!r} of {source}" if question else f"The question of {source}"
    if request.undeclared:
        request.undeclared = False
        request.open_choices = form in OPEN
        if form not in OPEN:
            reading = option("type", kinds[0])
            named = repr(question) if question else "the question"
            request.follow(kinds[0], f"{named} has the form {form} and is read as {reading}")
    elif request.kind.name not in kinds:
        others = f", or as {' or '.join(kinds[1:])}" if kinds[1:] else ""
        return DataError(
            f"{about} has the form {form}, which is read as {kinds[0]}{others}, not as "
            f"{request.kind.name}; give {option('type', kinds[0])}, or choose another question."
        )
    if request.kind.container.about_items and form in (RANKING, LIST):
        request.note(_FROM_RANKINGS)
    return None


def votes_of(compared: Vote | Ranking | None, task: str, worker: str) -> Iterator[Vote]:
    """Yield the comparisons that an answer stands for; a ranking stands for all its pairs.

    The item whose id sorts first is on the left, so that the better one has no fixed side.

    Examples
    --------
    >>> [tuple(vote)[:3] for vote in votes_of(Ranking(["b", "a"]), "t", "w")]
    [('a', 'b', 'right')]
    """
    if isinstance(compared, Vote):
        if compared.unknown:
            raise UnknownItemsError(compared.unknown)
        yield Vote(as_text(compared.left), as_text(compared.right), as_text(compared.outcome))
        return
    items = [] if compared is None else [as_text(item) for item in compared.items]
    names = [item for item in items if item is not None]
    if compared is None or len(names) < max(len(items), 2):
        return
    _require_ranking(names, task, worker)
    ranks = range(len(names)) if compared.ranks is None else compared.ranks
    ranked = sorted(zip(names, ranks, strict=True))
    for i, (left, high) in enumerate(ranked):
        for right, low in ranked[i + 1 :]:
            yield Vote(left, right, "tie" if high == low else "left" if high < low else "right")


def _require_ranking(names: Sequence[str], task: str, worker: str) -> None:
    where = f"The ranking of task {task!r} by worker {worker!r}"
    if len(names) > MOST_RANKED:
        raise DataError(
            f"{where} has {len(names)} items, and at most {MOST_RANKED} are read; leave it out."
        )
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise DataError(f"{where} names item {twice[0]!r} twice; correct it or leave it out.")


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
