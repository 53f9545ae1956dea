"""Label Studio: the JSON export, the older one with ``completions``, JSON_MIN and CSV."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any

from wisecrowd.io.formats import Request
from wisecrowd.io.inventory import HUMAN, MODEL
from wisecrowd.io.platforms import CHOSEN, Platform
from wisecrowd.io.platforms.answer_forms import Boxes, Marks, Ranking, Vote
from wisecrowd.io.platforms.label_records import (
    Dropped,
    Event,
    Finished,
    Gold,
    LabelRecord,
    TaskText,
    batches,
    json_objects,
    mapping,
    mappings,
    model_worker,
)
from wisecrowd.io.platforms.label_studio_controls import (
    BUCKETS,
    FORMS,
    PER_REGION,
    TEXT_SPANS,
    WHOLE,
    Sides,
    answer_of,
    is_mark,
    is_placed,
    is_read_mark,
    left_out,
    marked,
    place_of,
    ranking_of,
    sizes_of,
)
from wisecrowd.io.platforms.label_studio_rows import (
    is_flat,
    is_table,
    rows_of,
    sheet_of,
    sheet_of_records,
)
from wisecrowd.io.platforms.values import as_text
from wisecrowd.io.sources import Source
from wisecrowd.io.span_texts import beyond_text, find_text
from wisecrowd.kinds import BOXES, PAIRS, SEQUENCES

_NOT_GOLD = (
    "{} of {} annotations are marked as ground truth, as Label Studio marks imported ones; they "
    "are not taken for gold"
)


def read(source: Source, request: Request) -> Iterator[dict[str, Any]]:
    """Yield annotations that were not cancelled, and predictions as workers of kind "model"."""
    if is_table(source):
        yield from rows_of(sheet_of(source, request), source, request)
        return
    records = json_objects(source, request.encoding)
    first = next(records, {})
    everything = chain([first], records)
    if is_flat(first):
        yield from rows_of(sheet_of_records(everything, source, request), source, request)
    else:
        yield from batches(_events(everything, source, request), source, request)


PLATFORM = Platform(
    read,
    "id",
    "completed_by",
    "result",
    ("task", "label", "left", "right"),
    (*CHOSEN, PAIRS, SEQUENCES, BOXES),
)


def _events(records: Iterable[dict[str, Any]], source: Source, request: Request) -> Iterator[Event]:
    gold = _GroundTruth()
    sides = Sides(request, source.name)
    for record in records:
        task = task_of(record, request.asked.get("task"))
        about = _Record(record, sides, request)
        annotations = mappings(record.get("annotations") or record.get("completions"))
        done = [
            made for made in annotations if not (made.get("was_cancelled") or made.get("skipped"))
        ]
        if len(done) < len(annotations):
            yield Dropped("cancelled or skipped", len(annotations) - len(done))
        if not done:
            yield Dropped("tasks that nobody labelled")
        done.sort(key=_number)
        for made in done:
            worker, results = worker_of(made), mappings(made.get("result"))
            yield from _labels(task, worker, made, about)
            answered = frozenset(as_text(result.get("from_name")) or "" for result in results)
            yield Finished(
                task, worker, answered, _time(made), made.get("lead_time"), about.sizes,
                is_empty=not results,
            )  # fmt: skip
        gold.look_at(task, done)
        for made in mappings(record.get("predictions")):
            worker = model_worker(made.get("model_version"))
            yield from _labels(task, worker, made, about, MODEL)
        yield from about.texts(task)
    yield from gold.events(request)


class _Record:
    """What the answers to a task refer to: its data, the sizes of its images, its texts."""

    def __init__(self, record: dict[str, Any], sides: Sides, request: Request) -> None:
        self._data = mapping(record.get("data"))
        self._sides = sides
        self.request = request
        self.sizes = sizes_of(results_of(record))
        self._marked: dict[str, list[tuple[Any, Any, Any]]] = {}  # by control

    def compared(self, result: dict[str, Any]) -> Vote | Ranking | None:
        """Return the comparison or ranking that a result stands for."""
        value = mapping(result.get("value"))
        if result.get("type") == "pairwise":
            return self._sides.vote(value, self._data, as_text(result.get("to_name")) or "")
        return ranking_of(value) if result.get("type") == "ranker" else None

    def marked(
        self, name: str, type_of: str, values: list[dict[str, Any]]
    ) -> tuple[Marks | Boxes, list[Dropped]]:
        """Return the marks of a control, and remember the texts of spans."""
        if type_of == TEXT_SPANS:
            self._marked.setdefault(name, []).extend(map(place_of, values))
        return marked(type_of, values, self.sizes.get(name), self.request)

    def beyond(self, values: list[dict[str, Any]]) -> tuple[int, int] | None:
        """Return the end of a span after its text, and the length of the text; None if none is."""
        return beyond_text(self._data, map(place_of, values))

    def texts(self, task: Any) -> Iterator[TaskText]:
        """Yield the text of the task, by the control that marks it."""
        for name, places in self._marked.items():
            text = find_text(self._data, places)
            if text is not None:
                yield TaskText(task, text, name)


def results_of(record: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the results of all annotations and predictions of a task."""
    made = (*mappings(record.get("annotations") or record.get("completions")),
            *mappings(record.get("predictions")))  # fmt: skip
    for one in made:
        yield from mappings(one.get("result"))


class _GroundTruth:
    """Annotations marked as ground truth, and which of them an import has marked.

    Label Studio marks every annotation that it imports unless told otherwise. So the mark says
    nothing where most annotations of a file have it, or all of the several ones of a task.
    """

    def __init__(self) -> None:
        self._n_annotations = 0
        self._n_marked = 0
        self._chosen: list[tuple[Any, dict[str, Any]]] = []

    def look_at(self, task: Any, done: list[dict[str, Any]]) -> None:
        """Take in the annotations of a task."""
        marked = [made for made in done if made.get("ground_truth")]
        self._n_annotations += len(done)
        self._n_marked += len(marked)
        if len(marked) < len(done) or len(marked) == 1:
            self._chosen += [(task, made) for made in marked]

    def events(self, request: Request) -> Iterator[Gold]:
        """Yield the gold, and note the marked annotations that are not gold."""
        chosen = [] if 2 * self._n_marked > self._n_annotations else self._chosen
        if len(chosen) < self._n_marked:
            request.inventory.not_gold = _NOT_GOLD.format(
                self._n_marked - len(chosen), self._n_annotations
            )
        for task, made in chosen:
            for event in _labels(task, None, made):
                if isinstance(event, LabelRecord):
                    yield Gold(task, event.label, event.question)


def task_of(record: dict[str, Any], key: str | None) -> Any:
    """Return a task's id, or what its data has under a key; ``id`` is always Label Studio's own."""
    if key is None or key == "id":
        return record.get("id")
    return mapping(record.get("data")).get(key.removeprefix("data."))


def _number(made: dict[str, Any]) -> int:
    """Return the number of an annotation: of two at one moment the later one has the higher."""
    number = made.get("id")
    return number if isinstance(number, int) else 0


def worker_of(made: dict[str, Any]) -> Any:
    """Return the user's number, whether it stands alone or in an object with the address."""
    by = made.get("completed_by")
    if isinstance(by, dict):
        return by.get("id", by.get("email"))
    return made.get("created_username") if by is None else by


def label_given(made: dict[str, Any], question: str) -> str | None:
    """Return the label that an annotation gives a whole task; None if it was skipped or is empty.

    Examples
    --------
    >>> choice = {"from_name": "c", "type": "choices", "value": {"choices": ["cat"]}}
    >>> label_given({"result": [choice]}, "c"), label_given({"result": []}, "c")
    ('cat', None)
    """
    if made.get("was_cancelled"):
        return None
    for event in _labels(None, None, made):
        if isinstance(event, LabelRecord) and event.question == question:
            return as_text(event.label)
    return None


def _region(result: dict[str, Any]) -> str | None:
    """Return the id that the results of one region share."""
    return as_text(result.get("id"))


def _labels(
    task: Any,
    worker: Any,
    made: dict[str, Any],
    about: _Record | None = None,
    kind: str = HUMAN,
) -> Iterator[Event]:
    """Yield one label per control; results that mark a part of the task are dropped."""
    results = mappings(made.get("result"))
    found: dict[str, list[dict[str, Any]]] = {}
    regions = {_region(result) for result in results if is_mark(str(result.get("type")))} - {None}
    marks: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for result in results:
        type_of, value = str(result.get("type")), mapping(result.get("value"))
        name = as_text(result.get("from_name")) or ""
        if is_read_mark(type_of, value):
            marks.setdefault((name, type_of), []).append(value)
        elif type_of not in WHOLE:
            yield Dropped(left_out(type_of))
        elif is_placed(value) or _region(result) in regions:
            yield Dropped(PER_REGION)
        elif type_of == "ranker" and ranking_of(value) is None:
            yield Dropped(BUCKETS)
        else:
            found.setdefault(name, []).append(result)
    details = _time(made), made.get("lead_time")
    for (name, type_of), values in marks.items():
        if about is None:  # gold and live campaigns have no marks
            break
        drawn, lost = about.marked(name, type_of, values)
        yield from lost
        if isinstance(drawn, Marks) and (beyond := about.beyond(values)):
            where = f"annotation {made.get('id')} of task {task}"
            drawn = drawn._replace(
                wrong=f"A span of {where} ends at character {beyond[0]}, and its text has "
                f"{beyond[1]}; correct or leave out that annotation."
            )
        yield LabelRecord(
            task, worker, None, name, *details, kind=kind, form=FORMS[type_of], compared=drawn
        )
    for name, given in found.items():
        if len(given) > 1:
            yield Dropped(PER_REGION, len(given))
            continue
        type_of = given[0]["type"]
        yield LabelRecord(
            task, worker, answer_of(type_of, mapping(given[0].get("value"))), name, *details,
            kind=kind, form=FORMS[type_of],
            compared=None if about is None else about.compared(given[0]),
        )  # fmt: skip


def _time(made: dict[str, Any]) -> Any:
    return made.get("updated_at") or made.get("created_at")  # an edit replaces what was there
