"""Forms of answers on annotation platforms, and the kinds of labels that each can be read as.

A platform declares the form of a question, such as a rating or a comparison. The first kind of a
form is the one that is read unless the user or the method declares another.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from wisecrowd.core.exceptions import DataError
from wisecrowd.core.kinds import BOXES, LABELS, NUMBERS, PAIRS, SEQUENCES, SETS, TEXTS
from wisecrowd.core.messages.option_spelling import option
from wisecrowd.core.ordered_classes import ORDERED
from wisecrowd.io.formats import Request
from wisecrowd.io.platforms.values import as_text

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
MARKED = (SEQUENCES, SETS, BOXES)  # kinds in which marking nothing is an answer
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


def settle_kind(form: str, question: str, source: str, request: Request) -> DataError | None:
    """Let the form of a question choose the kind, or return the error if it has no such labels.

    The error is returned, because a file with several questions gets another one.
    """
    kinds = KINDS_OF[form]
    about = f"{question!r} of {source}" if question else f"The question of {source}"
    if request.undeclared:
        request.undeclared = False
        request.open_choices = kinds[0] == LABELS and SETS in kinds
        if kinds[0] != LABELS:
            reading = option("type", kinds[0])
            named = repr(question) if question else "the question"
            request.follow(kinds[0], f"{named} has the form {form} and is read as {reading}")
    elif request.kind.name not in kinds:
        others = f", or as {' or '.join(kinds[1:])}" if kinds[1:] else ""
        return DataError(
            f"{about} has the form {form}, which is read as {kinds[0]}{others}, not as "
            f"{request.kind.name}; give {option('type', kinds[0])}, or choose another question."
        )
    if request.kind.name == PAIRS and form in (RANKING, LIST):
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
