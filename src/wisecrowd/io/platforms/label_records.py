"""From the records of an export to columns: one driver for every platform that writes JSON or XML.

A platform's file says what a record means, as a stream of `LabelRecord`, `Gold` and `Dropped`; the
question, the counts and the columns are the same for all and are made here. Boxes that stand in
tables of their own are one row per box, or per worker who drew nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import wraps
from types import MappingProxyType
from typing import Any, NamedTuple

from wisecrowd.core.exceptions import DataError
from wisecrowd.io.formats import Request
from wisecrowd.io.inventory import HUMAN, MODEL, SeveralQuestionsError
from wisecrowd.io.platforms.answer_forms import (
    CHOICES,
    COLUMNS_OF,
    EMPTY,
    EMPTY_ANNOTATIONS,
    NOTHING,
    SKIPPED,
    Boxes,
    Marks,
    Ranking,
    UnknownItemsError,
    Vote,
    note_nothing_marked,
    open_text,
    set_text,
    settle_kind,
    votes_of,
)
from wisecrowd.io.platforms.values import (
    as_numbers,
    as_text,
    as_times,
    number_of,
    number_text,
    pick_question,
    unknown_details,
)
from wisecrowd.io.sources import Source, opened
from wisecrowd.io.untrusted import json_records
from wisecrowd.kinds.boxes.container import COORDINATES, IMAGE_HEIGHT, IMAGE_WIDTH

_ROWS = 1 << 16
_DETAILS = ("worker_kind", "timestamp", "duration", "cost")
SEPARATOR = "/"  # between a group of questions (a project, a workflow) and the question


class LabelRecord(NamedTuple):
    """A worker's label of a task.

    ``kind`` is that of the worker. ``form`` is that of the answer, which says what kind of label it
    is; ``compared`` holds a comparison, a ranking, spans or boxes.
    """

    task: Any
    worker: Any
    label: Any
    question: str = ""
    timestamp: Any = None
    duration: Any = None
    cost: Any = None
    kind: str = HUMAN
    form: str = CHOICES
    compared: Vote | Ranking | Marks | Boxes | None = None


class Gold(NamedTuple):
    """A class or number that the export marks as true."""

    task: Any
    label: Any
    question: str = ""


class Dropped(NamedTuple):
    """A judgement that is not a label, and the reason."""

    reason: str
    times: int = 1


class Finished(NamedTuple):
    """The end of a worker's annotation, with the questions that have an answer in it.

    Where marking nothing is an answer, a question without an answer has this one. ``sizes`` are
    those of images, by question; ``is_empty`` tells whether there is not any result.
    """

    task: Any
    worker: Any
    answered: frozenset[str]
    timestamp: Any = None
    duration: Any = None
    sizes: Mapping[str, tuple[float, float]] = MappingProxyType({})
    is_empty: bool = False


class TaskText(NamedTuple):
    """The text that the spans of a question are about."""

    task: Any
    text: str
    question: str = ""


Event = LabelRecord | Gold | Dropped | Finished | TaskText


def model_worker(name: Any) -> str:
    """Return the worker id of a model: never that of a person with the same number.

    Examples
    --------
    >>> model_worker("bert-2"), model_worker(None)
    ('model:bert-2', 'model:unnamed')
    """
    return f"model:{as_text(name) or 'unnamed'}"


def batches(events: Iterable[Event], source: Source, request: Request) -> Iterator[dict[str, Any]]:
    """Yield columns, batch by batch, of the judgements about one question."""
    collector = _Collector(source, request)
    for event in events:
        if isinstance(event, Dropped):
            request.inventory.drop(*event)
        elif isinstance(event, Finished):
            collector.finish(event)
        elif isinstance(event, TaskText):
            collector.keep_text(event)
        elif collector.is_wanted(event):
            collector.add(event)
        if len(collector.rows) >= _ROWS:
            yield collector.take()
    collector.check()
    collector.add_blanks()
    if collector.rows:
        yield collector.take()


def reader(
    events: Callable[[Source, Request], Iterator[Event]],
) -> Callable[[Source, Request], Iterator[dict[str, Any]]]:
    """Make a reader of a function that yields what the records of an export mean."""

    @wraps(events)
    def read(source: Source, request: Request) -> Iterator[dict[str, Any]]:
        return batches(events(source, request), source, request)

    return read


class _Collector:
    def __init__(self, source: Source, request: Request) -> None:
        self._source = source
        self._request = request
        self._inventory = request.inventory
        self._asked = request.question
        self._counts: dict[str, int] = {}
        self._forms: dict[str, str] = {}
        self._matches: dict[str, bool] = {}
        self._n_matched = 0
        self._refusal: DataError | None = None  # unless the file has several questions
        self._blank: list[Finished] = []  # annotations that do not answer the question
        self.rows: list[tuple[Any, ...]] = []  # task, worker, payload and _DETAILS

    def is_wanted(self, event: LabelRecord | Gold) -> bool:
        """Count a judgement for its question, and tell whether it is kept."""
        question = event.question
        self._counts[question] = self._counts.get(question, 0) + isinstance(event, LabelRecord)
        if question not in self._matches:
            self._matches[question] = self._asked in (
                None, question, question.rpartition(SEPARATOR)[2]
            )  # fmt: skip
            self._n_matched += self._matches[question]
        # Once a second question has come up the file is refused: only the names still matter.
        wanted = self._matches[question] and self._n_matched == 1 and self._refusal is None
        if isinstance(event, LabelRecord) and self._forms.get(question) != event.form:
            self._forms.setdefault(question, event.form)
            if wanted:
                self._refusal = settle_kind(event.form, question, self._source.name, self._request)
        return wanted and self._refusal is None

    def add(self, event: LabelRecord | Gold) -> None:
        task, container = as_text(event.task), self._request.kind.container
        label = number_text(event.label) if container.numeric else as_text(event.label)
        if isinstance(event, Gold):
            if task and label and self._request.kind.name not in COLUMNS_OF:
                self._inventory.add_gold(task, label)
            return
        worker = as_text(event.worker)
        answers = self._answers(event, label, task or "", worker or "")
        if not (task and worker and answers):
            missing = "a task id" if not task else "a worker id" if not worker else "a label"
            self._inventory.drop(f"without {missing}")
            return
        if event.kind == MODEL:
            self._inventory.models.add(worker)
        # A ranking shares its time and cost among its votes; spans and boxes are one answer.
        share = 1 / len(answers) if container.about_items else 1.0
        details = (event.kind, event.timestamp, _part(event.duration, share),
                   _part(event.cost, share))  # fmt: skip
        self.rows += [(task, worker, *answer, *details) for answer in answers]

    def _answers(
        self, event: LabelRecord, label: str | None, task: str, worker: str
    ) -> list[tuple[str | None, ...]]:
        """Return the payload of each row that a judgement gives."""
        if isinstance(event.compared, Marks | Boxes):
            try:
                return event.compared.rows()
            except DataError as error:
                self._refusal = error
                return []
        if self._request.open_choices:
            label = open_text(event.label)
        elif self._request.kind.container.lists:
            label = set_text(event.label)
        if not self._request.kind.container.about_items:
            return [(label,)] if label else []
        try:
            votes = list(votes_of(event.compared, task, worker))
        except UnknownItemsError as error:
            self._refusal = error
            return []
        return [(v.left, v.right, v.outcome) for v in votes if v.left and v.right and v.outcome]

    def finish(self, event: Finished) -> None:
        """Remember an annotation that does not answer the question, as far as it is known."""
        if self._asked not in event.answered and (self._asked or not event.answered):
            self._blank.append(event)

    def add_blanks(self) -> None:
        """Add the annotations that mark nothing, where that is an answer; else count them."""
        kind, is_open = self._request.kind.name, self._request.open_choices
        if not (is_open or kind in NOTHING) or not any(self._matches.values()):
            self._count_empty()
            return
        question = next(name for name, matches in self._matches.items() if matches)
        for event in self._blank:
            task, worker = as_text(event.task), as_text(event.worker)
            if not (task and worker):
                continue
            nothing: tuple[str | None, ...] = (EMPTY if event.is_empty else SKIPPED,)
            if not is_open:
                nothing = NOTHING[kind](event.sizes.get(question))
            details = (HUMAN, event.timestamp, event.duration, None)
            self.rows.append((task, worker, *nothing, *details))
        if not is_open:
            note_nothing_marked(len(self._blank), self._request)

    def _count_empty(self) -> None:
        self._inventory.drop(EMPTY_ANNOTATIONS, sum(one.is_empty for one in self._blank))

    def keep_text(self, event: TaskText) -> None:
        """Keep the text of a task, if annotations may lack it."""
        task, optional = as_text(event.task), self._request.kind.container.optional_roles
        if task and "text" in optional and self._asked in (None, event.question):
            self._inventory.texts[task] = event.text

    def take(self) -> dict[str, Any]:
        """Return the rows as Arrow columns and forget them."""
        import pyarrow as pa

        payload = COLUMNS_OF.get(self._request.kind.name, ("label",))
        texts = ("task", "worker", *payload, "worker_kind")
        fields = (*texts, *_DETAILS[1:])
        columns = dict(zip(fields, zip(*self.rows, strict=True), strict=True))
        self.rows = []
        try:
            batch = {role: pa.array(columns[role], pa.large_string()) for role in texts}
        except UnicodeEncodeError:
            raise half_a_character(self._source) from None
        return {
            **batch,
            "timestamp": as_times(columns["timestamp"]),
            "duration": as_numbers(columns["duration"]),
            "cost": as_numbers(columns["cost"]),
        }

    def check(self) -> None:
        """Refuse several questions, one that is not there, and one of another kind."""
        matched = [question for question, matches in self._matches.items() if matches]
        if self._asked is not None and self._counts and not matched:
            pick_question(self._asked, list(self._counts), self._source)
        if len(matched) > 1:
            self._count_empty()
            raise SeveralQuestionsError(self._source.name, matched, self._forms)
        if self._refusal is not None:
            raise self._refusal
        self._inventory.settle(matched[0] if matched and matched[0] else None, self._source.name)
        for question, count in self._counts.items():
            if question not in matched:
                self._inventory.others[question] += count


def _part(value: Any, share: float) -> Any:
    """Return a share of a time or cost."""
    if share == 1:
        return value
    number = number_of(value)
    return None if number is None else number * share


def half_a_character(source: Source) -> DataError:
    """Return the error for text that cannot be encoded."""
    return DataError(
        f"{source.name} has an id or label with half a character (a lone surrogate); "
        "correct the text and export it again."
    )


def refuse_without_workers(source: Source, remedy: str) -> DataError:
    """Return the error for an export that does not say who gave which label."""
    return DataError(
        f"{source.name} does not say which worker gave which label, so nothing can be learnt about "
        f"workers; {remedy}."
    )


def json_objects(source: Source, encoding: str) -> Iterator[dict[str, Any]]:
    """Yield the JSON objects of an export, or say which record is not one."""
    with opened(source) as stream:
        yield from objects_in(stream, source, encoding)


def objects_in(stream: Any, source: Source, encoding: str = "utf-8") -> Iterator[dict[str, Any]]:
    """Yield the JSON objects of a part of an export, which is open."""
    for key, value in json_records(stream, source, encoding):
        if not isinstance(value, dict):
            raise DataError(
                f"{source.name}: record {key} is not a JSON object; export it again, or give the "
                "format of the file."
            )
        yield value


def mappings(value: Any) -> list[dict[str, Any]]:
    """Return the objects in a list from an export; other values give an empty list.

    Examples
    --------
    >>> mappings([{"a": 1}, None]), mappings("text")
    ([{'a': 1}], [])
    """
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def mapping(value: Any) -> dict[str, Any]:
    """Return an object from an export; other values give an empty one."""
    return value if isinstance(value, dict) else {}


class BoxRow(NamedTuple):
    """A box that a worker drew in an image; without coordinates, the worker drew nothing."""

    task: str
    worker: str
    box: tuple[Any, ...] = (None,) * 4  # x, y, width, height
    label: str | None = None
    size: tuple[Any, Any] = (None, None)  # width and height of the image
    kind: str = HUMAN


def box_columns(rows: Iterable[BoxRow], source: Source) -> dict[str, Any]:
    """Return rows as Arrow columns; numbers are text, so that wrong ones are found at the gate."""
    import pyarrow as pa

    listed = list(rows)
    texts: dict[str, list[Any]] = {
        "task": [row.task for row in listed],
        "worker": [row.worker for row in listed],
        **{name: [number_text(row.box[k]) for row in listed]
           for k, name in enumerate(COORDINATES)},
        "label": [row.label for row in listed],
        **{name: [number_text(row.size[k]) for row in listed]
           for k, name in enumerate((IMAGE_WIDTH, IMAGE_HEIGHT))},
        "worker_kind": [row.kind for row in listed],
    }  # fmt: skip
    try:
        columns = {name: pa.array(values, pa.large_string()) for name, values in texts.items()}
    except UnicodeEncodeError:
        raise half_a_character(source) from None
    return {**unknown_details(len(listed)), **columns}
