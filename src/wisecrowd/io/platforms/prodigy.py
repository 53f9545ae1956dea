"""Prodigy: ``prodigy db-out DATASET``, one JSON line per answer.

A choice interface gives the chosen options; a binary one is a question of its own for every label
it shows, with "accept" and "reject" as classes. The recipe compare gives comparisons of the items A
and B, the two systems whose outputs it shows; the second output is the one to accept. Interfaces
for manual marks give the spans of a text, or the rectangles on an image.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from wisecrowd.io.formats import Request
from wisecrowd.io.platforms import CHOSEN, Platform
from wisecrowd.io.platforms.answer_forms import (
    CHOICE_OF_TWO,
    CHOICES,
    PAIRWISE,
    RECTANGLES,
    SPANS,
    Boxes,
    Marks,
    Vote,
)
from wisecrowd.io.platforms.label_records import (
    Dropped,
    Event,
    LabelRecord,
    TaskText,
    json_objects,
    mapping,
    mappings,
    reader,
    refuse_without_workers,
)
from wisecrowd.io.platforms.values import as_text, number_of
from wisecrowd.io.sources import Source
from wisecrowd.kinds import BOXES, PAIRS, SEQUENCES

CHOICE, COMPARE, MARKED = "choice", "compare", "spans"
_BOTH = {"accept", "reject"}
_MANUAL = ("ner_manual", "spans_manual", "image_manual")  # views in which marks are made
_PLACE = ("x", "y", "width", "height")


@reader
def read(source: Source, request: Request) -> Iterator[Event]:
    """Yield accepted choices and binary decisions; ignored ones are dropped."""
    task_key = request.asked.get("task") or "_input_hash"
    named = False
    for record in json_objects(source, request.encoding):
        worker = record.get("_annotator_id") or record.get("_session_id")
        named = named or worker is not None
        task = record.get(task_key)
        event = _event(record, task, worker)
        yield event
        if isinstance(event, LabelRecord) and event.form == SPANS and "text" in record:
            yield TaskText(task, as_text(record["text"]) or "", MARKED)
        elif isinstance(event, LabelRecord) and isinstance(event.compared, Boxes):
            n_lost = len(mappings(record.get("spans"))) - len(event.compared.boxes)
            yield Dropped("marks other than rectangles", n_lost)
    if not named:
        raise refuse_without_workers(
            source, "annotate with named sessions (?session=NAME in the address), which db-out "
            "writes as _annotator_id"
        )  # fmt: skip


PLATFORM = Platform(
    read,
    "_input_hash",
    "_annotator_id",
    "accept",
    ("task", "label"),
    (*CHOSEN, PAIRS, SEQUENCES, BOXES),
)


def _event(record: dict[str, Any], task: Any, worker: Any) -> Event:
    decision = record.get("answer", "accept")
    if decision == "ignore":
        return Dropped("ignored")
    time = record.get("_timestamp")
    if isinstance(record.get("accept"), list):
        if decision != "accept":
            return Dropped("rejected as a whole")
        options = [one.get("id") for one in mappings(record.get("options"))]
        form = CHOICE_OF_TWO if len(options) == 2 else CHOICES
        return LabelRecord(
            task, worker, record["accept"], CHOICE, time, form=form,
            compared=_of_two(options, record["accept"]),
        )  # fmt: skip
    systems = _systems(record)
    if systems is not None:
        if decision not in ("accept", "reject"):
            return Dropped("without a label")
        side = "right" if decision == "accept" else "left"  # the output to accept comes second
        vote = Vote(systems["reject"], systems["accept"], side)
        return LabelRecord(
            task, worker, systems[decision], COMPARE, time, form=PAIRWISE, compared=vote
        )
    view = as_text(record.get("_view_id")) or ("ner_manual" if "tokens" in record else "")
    if view in _MANUAL and isinstance(record.get("spans", []), list):
        if decision != "accept":
            return Dropped("rejected as a whole")
        form, marks = _marks(record, view)
        return LabelRecord(task, worker, None, MARKED, time, form=form, compared=marks)
    if record.get("spans"):
        return Dropped("decisions about single spans")
    label = as_text(record.get("label"))
    if label is None:
        return Dropped("without a label")
    return LabelRecord(task, worker, decision, label, time)


def _marks(record: dict[str, Any], view: str) -> tuple[str, Marks | Boxes]:
    """Return the spans of a text, or the rectangles on an image, that a worker marked."""
    found = mappings(record.get("spans"))
    if view != _MANUAL[-1]:
        return SPANS, Marks([(one.get("start"), one.get("end"), one.get("label")) for one in found])
    sides = number_of(record.get("width")), number_of(record.get("height"))
    size = None if sides[0] is None or sides[1] is None else (sides[0], sides[1])
    boxes = []
    for one in (one for one in found if one.get("type", "rect") == "rect"):
        place = [number for side in _PLACE if (number := number_of(one.get(side))) is not None]
        if len(place) == len(_PLACE):
            boxes.append((place[0], place[1], place[2], place[3], one.get("label")))
    return RECTANGLES, Boxes(boxes, size)


def _of_two(options: list[Any], accepted: list[Any]) -> Vote | None:
    """Return the choice of one of two options as a comparison."""
    if len(options) != 2 or len(accepted) != 1 or accepted[0] not in options:
        return None
    return Vote(options[0], options[1], ("left", "right")[options.index(accepted[0])])


def _systems(record: dict[str, Any]) -> dict[str, str] | None:
    """Return the system, A or B, whose output is shown as the one to accept and to reject."""
    sides = {side: as_text(system) for side, system in mapping(record.get("mapping")).items()}
    if set(sides.values()) == _BOTH:
        sides = {side: system for system, side in sides.items() if side is not None}
    if set(sides) != _BOTH or None in sides.values():
        return None
    return {side: system for side, system in sides.items() if system is not None}
