"""Validation of columns of tags or spans: they become checked CrowdSequences."""

from __future__ import annotations

from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.arrow import is_missing, refuse_halves, to_numpy
from wisecrowd.core.exceptions import DataError, ParameterError
from wisecrowd.core.ids.encoding import Encoded, encode, lookup
from wisecrowd.core.ids.packed_sort import ragged_places
from wisecrowd.core.intake import Intake
from wisecrowd.core.messages.descriptions import Places, describe_ids, describe_value, suggestion
from wisecrowd.core.messages.option_spelling import for_reader
from wisecrowd.core.parameter_checks import check_choice
from wisecrowd.core.types import Longs
from wisecrowd.core.value_columns import as_numbers
from wisecrowd.kinds.sequences.container import LENGTH, OFFSETS, WORDS, CrowdSequences
from wisecrowd.kinds.sequences.tag_scheme import BEGIN, INSIDE, OUTSIDE, SCHEMES, TagScheme
from wisecrowd.kinds.sequences.tag_texts import (
    NOT_WORDS,
    STRANGE,
    Marks,
    TagList,
    bio_codes,
    joined_tag,
    refuse_broken_texts,
    span_marks,
    tags_in,
    tags_of_tokens,
    words_of_spans,
    words_of_tags,
)

Sequences = TypeVar("Sequences", bound=CrowdSequences)
LONGEST = 1_000_000_000  # characters of a text
REPAIRED = "tags I-type continue no span of their type, and begin one"


class Tagged(NamedTuple):
    """Different tag sequences, and which of them each annotation is.

    Attributes
    ----------
    code : (n_annotations,) int32
        Number of the sequence.
    tags, pointer : (n_tags,), (n_sequences + 1,)
        Codes of the tags, one sequence after the other.
    scheme : TagScheme
    """

    code: NDArray[np.int32]
    tags: NDArray[np.int32]
    pointer: Longs
    scheme: TagScheme


def sequences_from_columns(
    container: type[Sequences],
    task: Any,
    worker: Any,
    *,
    tags: Any = None,
    start: Any = None,
    end: Any = None,
    text: Any = None,
    classes: Any = None,
    scheme: str | None = None,
    **shared: Any,
) -> Sequences:
    """Build tag sequences from columns; see :meth:`CrowdSequences.from_arrays`."""
    if (start is None) != (end is None):
        raise ParameterError("Spans need the columns start and end; give both, or neither.")
    optional = {"start": start, "end": end, "text": text}
    rows = Intake.open(container, task, worker, {"tags": tags}, optional, **shared)
    places, row_task = rows.places, rows.task
    if text is not None:
        refuse_broken_texts(text, places)
    offsets, words = None, None
    if start is None:
        tagged, note = _tagged(_texts(tags, places), classes, scheme, places)
        rows.notes += () if note is None else (note,)
    else:
        moment = rows.extra.get("timestamp")
        spans = _SpanRows(rows.task, rows.worker, tags, start, end, moment, places)
        tagged, offsets = spans.tagged(len(rows.tasks), classes)
        rows.task, rows.worker = spans.task, spans.worker
        rows.extra = {role: values[spans.first] for role, values in rows.extra.items()}
        words = None if text is None else words_of_spans(
            text, row_task, spans.start, spans.end, spans.marked, offsets, rows.tasks, places
        )  # fmt: skip
    rows.note_lookalikes(np.array(tagged.scheme.types, dtype=object))
    length = _lengths(rows.task, np.diff(tagged.pointer)[tagged.code], rows.tasks, places)
    if text is not None and offsets is None:
        words = words_of_tags(text, row_task, length)
        rows.notes += () if words is not None else (NOT_WORDS,)
    table = rows.arrange(tagged.code, len(tagged.pointer) - 1)
    place, pointer = ragged_places(tagged.pointer, table.label)
    about_tasks = {LENGTH: length, OFFSETS: offsets, WORDS: words}
    return rows.build(
        container, table,
        task_columns={name: values for name, values in about_tasks.items() if values is not None},
        tags=tagged.tags[place], pointer=pointer,
        classes=np.array(tagged.scheme.tags, dtype=object), scheme=tagged.scheme.name,
    )  # fmt: skip


def _texts(tags: Any, places: Places) -> Encoded:
    """Return annotations as texts with one space between tags, encoded."""
    if isinstance(tags, Encoded):
        return tags
    values = to_numpy(tags)
    if values.dtype == object:
        values = np.array([_joined(v, row, len(values), places) for row, v in enumerate(values)],
                          dtype=object)  # fmt: skip
    return encode(values, "tags")


def _joined(value: Any, row: int, size: int, places: Places) -> Any:
    """Return a list of tags as text; text and missing values stay."""
    if isinstance(value, str) or (not isinstance(value, list | tuple | np.ndarray)):
        return value
    texts = [str(tag) for tag in value]
    for tag in texts:
        if not tag or any(letter.isspace() for letter in tag):
            raise DataError(
                f"The tag {tag!r} in {places.where(_only(row, size))} is empty or has a space in "
                "it; rename it."
            )
    return " ".join(texts)


def _tagged(
    texts: Encoded, classes: Any, scheme: str | None, places: Places
) -> tuple[Tagged, str | None]:
    """Split every different text into tags; return them, and a note on what was repaired."""
    if (texts.codes < 0).any():
        raise _empty(texts.codes < 0, places)
    if scheme is not None:
        check_choice("scheme", scheme, SCHEMES)
    lists = _lists(texts, places)
    pointer = np.cumsum([0, *map(len, lists)]).astype(np.int64)
    found = encode(np.array([tag for one in lists for tag in one], dtype=object), "tags")
    used = [str(tag) for tag in found.vocabulary.tolist()]
    times = np.bincount(texts.codes, minlength=len(lists)).astype(np.int64)
    words = _Words(used, TagList(found.codes.astype(np.int64), pointer, times), texts.codes, places)
    declared = None if classes is None else [str(one) for one in classes]
    if declared is None and scheme != "plain":
        words.refuse_joined(lists)
    marks = None if scheme == "plain" else words.marks(declared, wanted=scheme == "bio")
    if marks is None:
        known = TagScheme.of(used if declared is None else declared, "plain")
        place = lookup(used, np.array(known.tags, dtype=object))
        words.refuse_unknown(place < 0, known)
        codes, note = place[found.codes].astype(np.int64), None
    else:
        known = TagScheme.of([OUTSIDE, *_bio(used if declared is None else declared)], "bio")
        kinds = set(known.types)
        others = [bool(kind) and kind not in kinds for kind in marks.kind]
        words.refuse_unknown(np.array(others, dtype=bool) | (marks.place == STRANGE), known)
        codes, repaired = bio_codes(marks, words.given, list(known.types))
        note = f"{repaired} {REPAIRED}" if repaired else None
    return Tagged(texts.codes.copy(), codes.astype(np.int32), pointer, known), note


def _empty(mask: NDArray[np.bool_], places: Places) -> DataError:
    return DataError(
        f"The {places.column('tags')} column is empty in {places.where(mask)}; give one tag per "
        "token, O for those outside of all spans."
    )


def _lists(texts: Encoded, places: Places) -> list[list[str]]:
    """Return the tags of every different text."""
    lists = []
    for number, text in enumerate(texts.vocabulary.tolist()):
        try:
            lists.append(tags_in(str(text)))
        except ValueError as error:
            where = places.where(texts.codes == number)
            raise DataError(f"The cell {describe_value(text)} in {where} {error}.") from None
        if not lists[-1]:
            raise _empty(texts.codes == number, places)
    return lists


def _bio(tags: list[str]) -> list[str]:
    """Return the tags that begin spans of the types of some tags."""
    return [f"{BEGIN}{kind}" for kind in sorted(set(Marks.of(tags).kind) - {""})]


class _Words(NamedTuple):
    """The different tags of a column, where they stand, and the text of each row."""

    used: list[str]
    given: TagList
    text: NDArray[np.int32]
    places: Places

    def rows(self, tag: int) -> str:
        """Describe the rows with a tag."""
        tokens = np.flatnonzero(self.given.code == tag)
        texts = np.searchsorted(self.given.pointer, tokens, side="right") - 1
        return self.places.where(np.isin(self.text, texts))

    def marks(self, declared: list[str] | None, *, wanted: bool) -> Marks | None:
        """Return how tags mark spans, None if they are plain classes; refuse a mixture."""
        marks = None
        if declared is None:
            marks = span_marks(self.used, self.given, wanted=wanted, declared=False)
        elif span_marks(declared, self.given, wanted=wanted, declared=True) is not None:
            if Marks.of(declared).has(STRANGE):
                TagScheme.of(declared, "bio")  # says which one
            marks = Marks.of(self.used)
        if declared is None and marks is not None and marks.has(STRANGE):
            tag = int(np.argmax(marks.place == STRANGE))
            others = [one for one, k in zip(self.used, marks.place, strict=True) if k != STRANGE]
            raise DataError(
                f"The tag {self.used[tag]!r}{suggestion(self.used[tag], others)} in "
                f"{self.rows(tag)} is not one of the scheme O, B-type, I-type, as other tags are; "
                "correct it, or give " + for_reader("scheme='plain'", "--classes with all tags")
                + " if every tag is a class of its own."
            )  # fmt: skip
        return marks

    def refuse_joined(self, lists: list[list[str]]) -> None:
        """Refuse tags with another sign between them than a space."""
        tag = joined_tag(lists)
        if tag is not None:
            raise DataError(
                f"The tag {describe_value(tag)} in {self.rows(self.used.index(tag))} looks like "
                "several; put a space between tags, and nothing else, or give "
                + for_reader("classes=[...]", "--classes")
                + " with all tags if it is one."
            )

    def refuse_unknown(self, unknown: NDArray[np.bool_], known: TagScheme) -> None:
        """Refuse tags outside of the declared ones."""
        if unknown.any():
            tag = int(np.argmax(unknown))
            raise DataError(
                f"The tag {self.used[tag]!r}{suggestion(self.used[tag], list(known.tags))} in "
                f"{self.rows(tag)} is not among the tags "
                f"({describe_ids(np.array(known.tags, dtype=object))}); correct it, or add it to "
                "classes."
            )


def _lengths(task: NDArray[np.int32], size: Longs, ids: NDArray[Any], places: Places) -> Longs:
    """Return the number of tokens of each task; all its annotations must agree."""
    length = np.zeros(len(ids), dtype=np.int64)
    length[task[::-1]] = size[::-1]  # the first row of each task counts
    wrong = size != length[task]
    if wrong.any():
        row = int(np.argmax(wrong))
        first = int(np.flatnonzero(task == task[row])[0])
        raise DataError(
            f"Task {ids[task[row]]!r} has {length[task[row]]} tags in "
            f"{places.where(_only(first, len(task)))} and {size[row]} in "
            f"{places.where(_only(row, len(task)))}; every worker must tag the same tokens."
        )
    return length


def _only(row: int, size: int) -> NDArray[np.bool_]:
    mask = np.zeros(size, dtype=bool)
    mask[row] = True
    return mask


class _SpanRows:
    """One row per span, or per worker who marked nothing.

    Attributes
    ----------
    task, worker : (n_annotations,) int32
        One entry per task, worker and moment, whatever the number of spans.
    first : (n_annotations,) int64
        A row of each.
    """

    def __init__(
        self, task: NDArray[np.int32], worker: NDArray[np.int32], label: Any, start: Any, end: Any,
        moment: NDArray[Any] | None, places: Places,
    ) -> None:  # fmt: skip
        self.places = places
        remedy = "give numbers of characters, counted from 0"
        begin = as_numbers(start, "start", places, remedy)
        stop = as_numbers(end, "end", places, remedy)
        self.row_task, self.row_worker = task, worker
        self.marked = ~(np.isnan(begin) & np.isnan(stop))
        self._require_places(begin, stop)
        self.start = np.where(self.marked, begin, 0).astype(np.int64)
        self.end = np.where(self.marked, stop, 0).astype(np.int64)
        self.label = self._types(label)
        # Rows of one pair at several moments are several annotations, of which the last counts.
        when = np.zeros(len(task)) if moment is None else moment.astype(np.float64)
        keys = np.stack([task.astype(np.float64), worker.astype(np.float64), when])
        _, first, inverse = np.unique(keys, axis=1, return_index=True, return_inverse=True)
        self.annotation = inverse.ravel()
        self.first = first.astype(np.int64)
        self.task, self.worker = task[first].copy(), worker[first].copy()

    def _require_places(self, begin: NDArray[Any], stop: NDArray[Any]) -> None:
        with np.errstate(invalid="ignore"):
            bad = self.marked & ~(
                (begin >= 0)
                & (stop > begin)
                & (stop <= LONGEST)
                & (begin % 1 == 0)
                & (stop % 1 == 0)
            )
        if bad.any():
            row = int(np.argmax(bad))
            raise DataError(
                f"The span in {self.places.where(bad)} runs from {begin[row]:g} to {stop[row]:g}; "
                "start is the number of its first character, counted from 0, and end the number of "
                "the one after its last."
            )

    def _types(self, label: Any) -> NDArray[Any]:
        values = to_numpy(label).tolist() if not isinstance(label, Encoded) else [
            None if code < 0 else label.vocabulary[code] for code in label.codes.tolist()
        ]  # fmt: skip
        missing = np.array([is_missing(one) or str(one).strip() == "" for one in values])
        if (missing & self.marked).any():
            raise DataError(
                f"The span in {self.places.where(missing & self.marked)} has no type; fill in the "
                f"{self.places.column('tags')} column."
            )
        if not (missing | self.marked).all():
            row = int(np.argmin(missing | self.marked))
            raise DataError(
                f"The span of type {values[row]!r} in "
                f"{self.places.where(~(missing | self.marked))} has neither start nor end; give "
                "both, or leave out the type, too, if the worker marked nothing."
            )
        types = np.array([str(one) for one in values], dtype=object)
        refuse_halves(types, "tags", self.places)
        self._refuse_tags(types)
        return types

    def _refuse_tags(self, types: NDArray[Any]) -> None:
        """Refuse tags of single tokens in place of types."""
        outside = self.marked & (types == OUTSIDE)
        if outside.any():
            raise DataError(
                f"The span in {self.places.where(outside)} has the type {OUTSIDE!r}, which stands "
                "for tokens outside of all spans; rename the type, or remove the row (leave start, "
                "end and type empty if the worker marked nothing)."
            )
        used = sorted(set(types[self.marked].tolist()))
        if tags_of_tokens(used):
            inside = [one for one in used if one.startswith(INSIDE)]
            raise DataError(
                f"The type {inside[0]!r} in {self.places.where(types == inside[0])} is the tag of "
                "a token; give one row per span, and its type without B- and I-."
            )

    def tagged(self, n_tasks: int, classes: Any) -> tuple[Tagged, NDArray[Any]]:
        """Return the tag sequences on the tokens that the limits of all spans cut."""
        rows = np.flatnonzero(self.marked)
        rows = rows[np.lexsort((self.start[rows], self.annotation[rows]))]
        self._refuse_overlaps(rows)
        offsets = self._grid(n_tasks)
        length = np.array([len(one) - 1 for one in offsets.tolist()], dtype=np.int64)
        names = sorted(set(self.label[rows].tolist()))
        if classes is not None:
            names = [str(one) for one in classes]
            if OUTSIDE in names or tags_of_tokens(names):
                names = [kind for kind in Marks.of(names).kind if kind]
        scheme = TagScheme.of([OUTSIDE, *(f"{BEGIN}{name}" for name in names)])
        kind = lookup(self.label[rows], np.array(scheme.types, dtype=object)).astype(np.int64)
        if (kind < 0).any():
            row = rows[int(np.argmax(kind < 0))]
            raise DataError(
                f"The type {self.label[row]!r}{suggestion(self.label[row], list(scheme.types))} in "
                f"{self.places.where(_only(row, len(self.start)))} is not among the declared "
                "classes; correct it, or add it to them."
            )
        own = length[self.task]
        pointer = np.append(0, np.cumsum(own))
        tags = np.zeros(pointer[-1], dtype=np.int32)
        grid, base = np.concatenate(offsets.tolist()), np.append(0, np.cumsum(length + 1))
        # Limits of all tasks in one sorted list: the number of the task, then the character.
        width = int(grid.max()) + 2
        sorted_limits = np.repeat(np.arange(n_tasks), length + 1) * width + grid
        at = self.row_task[rows].astype(np.int64)
        begin = np.searchsorted(sorted_limits, at * width + self.start[rows]) - base[at]
        stop = np.searchsorted(sorted_limits, at * width + self.end[rows]) - base[at]
        size = stop - begin
        inside = np.append(0, np.cumsum(size))
        where = np.repeat(pointer[self.annotation[rows]] + begin - inside[:-1], size)
        tags[where + np.arange(inside[-1])] = scheme.tags_of(kind, size)
        code = np.arange(len(self.task), dtype=np.int32)
        return Tagged(code, tags, pointer, scheme), offsets

    def _grid(self, n_tasks: int) -> NDArray[Any]:
        """Return the sorted limits of the spans of each task; 0 and 1 if it has none."""
        rows = self.marked
        task = np.concatenate([self.row_task[rows], self.row_task[rows]]).astype(np.int64)
        limit = np.concatenate([self.start[rows], self.end[rows]])
        width = int(limit.max(initial=0)) + 1
        both = np.unique(task * width + limit)
        ends = np.searchsorted(both // width, np.arange(n_tasks + 1))
        parts = np.empty(n_tasks, dtype=object)
        for i in range(n_tasks):
            own = both[ends[i] : ends[i + 1]] % width
            parts[i] = own if len(own) else np.array([0, 1])
        return parts

    def _refuse_overlaps(self, rows: Longs) -> None:
        same = self.annotation[rows][1:] == self.annotation[rows][:-1]
        bad = np.flatnonzero(same & (self.start[rows][1:] < self.end[rows][:-1]))
        if len(bad):
            pair = np.zeros(len(self.start), dtype=bool)
            pair[rows[bad[0] : bad[0] + 2]] = True
            raise DataError(
                f"Two spans of one worker overlap, in {self.places.where(pair)}; keep one of them, "
                "or aggregate each layer of spans by itself."
            )
