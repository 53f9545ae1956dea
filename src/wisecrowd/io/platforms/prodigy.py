"""Prodigy: ``prodigy db-out DATASET``, one JSON line per answer.

A choice interface gives the chosen options; a binary one is a question of its own for every label
it shows, with "accept" and "reject" as classes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from wisecrowd.io.formats import Request
from wisecrowd.io.platforms.label_records import (
    Dropped,
    Event,
    LabelRecord,
    json_objects,
    reader,
    refuse_without_workers,
)
from wisecrowd.io.platforms.values import as_text
from wisecrowd.io.sources import Source

CHOICE = "choice"


@reader
def read(source: Source, request: Request) -> Iterator[Event]:
    """Yield accepted choices and binary decisions; ignored ones are dropped."""
    task_key = request.asked.get("task") or "_input_hash"
    named = False
    for record in json_objects(source, request.encoding):
        worker = record.get("_annotator_id") or record.get("_session_id")
        named = named or worker is not None
        yield _event(record, record.get(task_key), worker)
    if not named:
        raise refuse_without_workers(
            source, "annotate with named sessions (?session=NAME in the address), which db-out "
            "writes as _annotator_id"
        )  # fmt: skip


def _event(record: dict[str, Any], task: Any, worker: Any) -> Event:
    decision = record.get("answer", "accept")
    if decision == "ignore":
        return Dropped("ignored")
    time = record.get("_timestamp")
    if isinstance(record.get("accept"), list):
        if decision != "accept":
            return Dropped("rejected as a whole")
        return LabelRecord(task, worker, record["accept"], CHOICE, time)
    if record.get("spans"):
        return Dropped("marks (spans), not labels of a whole task")
    label = as_text(record.get("label"))
    if label is None:
        return Dropped("without a label")
    return LabelRecord(task, worker, decision, label, time)
