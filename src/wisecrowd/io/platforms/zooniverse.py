"""Zooniverse: the classifications csv of a project or workflow, with JSON inside its cells.

Kept are the latest major version of each workflow and the first classification of a subject by a
user; what was made before the project went live is dropped.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from wisecrowd.io.formats import Request
from wisecrowd.io.platforms import Platform
from wisecrowd.io.platforms.label_records import (
    SEPARATOR,
    Dropped,
    Event,
    Gold,
    LabelRecord,
    mapping,
    mappings,
    reader,
)
from wisecrowd.io.platforms.sheets import read_sheet
from wisecrowd.io.platforms.values import as_text, as_times
from wisecrowd.io.sources import Source
from wisecrowd.io.untrusted import json_text

_COLUMNS = ("classification_id", "user_name", "user_id", "workflow_id", "workflow_version",
            "created_at", "gold_standard", "metadata")  # fmt: skip
_ROWS = 1 << 12


@reader
def read(source: Source, request: Request) -> Iterator[Event]:
    """Yield one judgement per question of a classification."""
    worker = request.asked.get("worker") or "user_name"

    def pick(header: list[str]) -> Mapping[str, str]:
        optional = {name: name for name in _COLUMNS if name in header}
        return optional | {name: name for name in (worker, "annotations", "subject_ids")}

    table = read_sheet(source, request, pick)
    request.found["worker"] = worker
    latest = _latest_versions(table)
    seen = set()
    for batch in table.to_batches(_ROWS):
        for row in batch.to_pylist():
            workflow = row.get("workflow_id", "")
            about = mapping(json_text(row.get("metadata")))
            key = (workflow, row["subject_ids"], row[worker])
            if about.get("live_project") is False:
                yield Dropped("made before the project went live")
            elif _major(row.get("workflow_version")) != latest.get(workflow, 0):
                yield Dropped("made with an older major version of the workflow")
            elif key in seen:
                yield Dropped("repeated by the same user (the first counts)")
            else:
                seen.add(key)
                yield from _of_classification(row, row[worker], about)


PLATFORM = Platform(read, "subject_ids", "user_name", "annotations", ("worker", "label"))


def _latest_versions(table: Any) -> dict[str, int]:
    if not {"workflow_id", "workflow_version"} <= set(table.column_names):
        return {}
    keys = ["workflow_id", "workflow_version"]
    pairs = table.select(keys).group_by(keys).aggregate([]).to_pylist()
    latest: dict[str, int] = {}
    for pair in pairs:
        version = _major(pair["workflow_version"])
        latest[pair["workflow_id"]] = max(version, latest.get(pair["workflow_id"], 0))
    return latest


def _major(version: Any) -> int:
    major = str(version or "0").partition(".")[0]
    return int(major) if major.isdecimal() and len(major) < 9 else 0


def _of_classification(row: dict[str, Any], worker: str, about: dict[str, Any]) -> Iterator[Event]:
    made = json_text(row["annotations"])
    if not isinstance(made, list):
        yield Dropped("with annotations that are not valid JSON")
        return
    is_gold = str(row.get("gold_standard", "")).lower() == "true"
    for name, label in _labels(made):
        if label is None:
            yield Dropped("drawings or unanswered, not labels of a whole subject")
            continue
        question = f"{row.get('workflow_id', '')}{SEPARATOR}{name}"
        time = row.get("created_at") or about.get("finished_at")
        yield LabelRecord(row["subject_ids"], worker, label, question, time, _seconds(about))
        if is_gold:
            yield Gold(row["subject_ids"], label, question)


def _labels(made: list[Any]) -> Iterator[tuple[str, Any]]:
    """Yield (question, label); a combined task holds others inside."""
    for one in mappings(made):
        value = one.get("value")
        inner = mappings(value)
        if inner and all("task" in part and "value" in part for part in inner):
            yield from _labels(inner)
            continue
        if inner:
            chosen = [part.get("choice", part.get("value")) for part in inner]
            value = chosen if all(isinstance(choice, str) for choice in chosen) else None
        yield as_text(one.get("task")) or "", as_text(value)


def _seconds(about: dict[str, Any]) -> float | None:
    start, end = as_times([about.get("started_at"), about.get("finished_at")]).to_pylist()
    return (end - start).total_seconds() if start and end else None
