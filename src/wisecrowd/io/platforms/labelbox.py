"""Labelbox: the export v2 NDJSON, made with ``label_details`` and ``performance_details``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from wisecrowd.io.formats import Request
from wisecrowd.io.inventory import HUMAN, MODEL
from wisecrowd.io.platforms import Platform
from wisecrowd.io.platforms.label_records import (
    SEPARATOR,
    Dropped,
    Event,
    LabelRecord,
    json_objects,
    mapping,
    mappings,
    model_worker,
    reader,
    refuse_without_workers,
)
from wisecrowd.io.platforms.values import as_text
from wisecrowd.io.sources import Source


@reader
def read(source: Source, request: Request) -> Iterator[Event]:
    """Yield the classifications of every label that was not skipped."""
    key = request.asked.get("task")
    labels = named = 0
    for record in json_objects(source, request.encoding):
        row = mapping(record.get("data_row"))
        task = row.get(key) if key else row.get("global_key") or row.get("id")
        for project, held in mapping(record.get("projects")).items():
            for made in mappings(mapping(held).get("labels")):
                labels += 1
                named += mapping(made.get("label_details")).get("created_by") is not None
                yield from _of_label(task, project, made)
    if labels and not named:
        raise refuse_without_workers(source, "export again with label_details turned on")


PLATFORM = Platform(read, "data_row", "created_by", "classifications", ("task", "label"))


def _of_label(task: Any, project: str, made: dict[str, Any]) -> Iterator[Event]:
    details, effort = mapping(made.get("label_details")), mapping(made.get("performance_details"))
    if effort.get("skipped"):
        yield Dropped("skipped")
        return
    content = mapping(made.get("annotations"))
    worker, kind = details.get("created_by"), HUMAN
    if str(made.get("label_kind", "")).lower() in ("model", "prediction"):
        worker, kind = model_worker(worker), MODEL
    if marks := mappings(content.get("objects")):
        yield Dropped("marks (objects), not labels of a whole task", len(marks))
    for question, label in _labels(mappings(content.get("classifications"))):
        yield LabelRecord(
            task, worker, label, f"{project}{SEPARATOR}{question}", details.get("created_at"),
            effort.get("seconds_to_create"), kind=kind,
        )  # fmt: skip


def _labels(classifications: list[dict[str, Any]]) -> Iterator[tuple[str, Any]]:
    """Yield (question, label), also of questions that another one's choice opened."""
    for one in classifications:
        radio = mapping(one.get("radio_answer"))
        checked = mappings(one.get("checklist_answers"))
        text = one.get("text_answer")
        if radio:
            label: Any = radio.get("value", radio.get("name"))
        elif checked:
            label = [choice.get("value", choice.get("name")) for choice in checked]
        else:
            label = mapping(text).get("content") if isinstance(text, dict) else text
        yield as_text(one.get("name")) or as_text(one.get("value")) or "", label
        for choice in (radio, *checked):
            yield from _labels(mappings(choice.get("classifications")))
