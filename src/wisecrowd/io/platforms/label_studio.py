"""Label Studio: the JSON export, the older one with ``completions``, JSON_MIN and CSV."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any

from wisecrowd.io.formats import Request
from wisecrowd.io.inventory import HUMAN, MODEL
from wisecrowd.io.platforms.judgements import (
    Dropped,
    Event,
    Gold,
    Judgement,
    batches,
    mapping,
    mappings,
    model_worker,
    records_of,
)
from wisecrowd.io.platforms.label_studio_rows import rows_of_records, rows_of_table
from wisecrowd.io.platforms.values import as_text
from wisecrowd.io.sources import Source
from wisecrowd.io.untrusted import opened_json

# Controls that label the task as a whole, and where their value is.
WHOLE = {"choices": "choices", "rating": "rating", "number": "number", "pairwise": "selected",
          "taxonomy": "taxonomy"}  # fmt: skip


def read(source: Source, request: Request) -> Iterator[dict[str, Any]]:
    """Yield annotations that were not cancelled, and predictions as workers of kind "model"."""
    if source.suffix in (".csv", ".tsv"):
        yield from rows_of_table(source, request)
        return
    with opened_json(source, request.encoding) as values:
        records = records_of(values, source)
        first = next(records, {})
        everything = chain([first], records)
        if "annotator" in first and "annotations" not in first:
            yield from rows_of_records(everything, source, request)
        else:
            yield from batches(_events(everything, request), source, request)


def _events(records: Iterable[dict[str, Any]], request: Request) -> Iterator[Event]:
    key = (request.asked.get("task") or "").removeprefix("data.")
    for record in records:
        task = mapping(record.get("data")).get(key) if key else record.get("id")
        annotations = mappings(record.get("annotations") or record.get("completions"))
        done = [
            made for made in annotations if not (made.get("was_cancelled") or made.get("skipped"))
        ]
        if len(done) < len(annotations):
            yield Dropped("cancelled or skipped", len(annotations) - len(done))
        if not done:
            yield Dropped("tasks that nobody labelled")
        for made in done:
            yield from _labels(task, _worker(made), made)
        for made in mappings(record.get("predictions")):
            worker = model_worker(made.get("model_version"))
            yield from _labels(task, worker, made, MODEL)


def _worker(made: dict[str, Any]) -> Any:
    """Return the user's number, whether it stands alone or in an object with the address."""
    by = made.get("completed_by")
    if isinstance(by, dict):
        return by.get("id", by.get("email"))
    return made.get("created_username") if by is None else by


def _labels(task: Any, worker: Any, made: dict[str, Any], kind: str = HUMAN) -> Iterator[Event]:
    """Yield one label per control; what marks a part of the task is no label of the task."""
    found: dict[str, Any] = {}
    several = set()
    for result in mappings(made.get("result")):
        name, type_of = as_text(result.get("from_name")) or "", str(result.get("type"))
        if type_of not in WHOLE:
            yield Dropped(f"marks or text ({type_of}), not labels of a whole task")
            continue
        several |= {name} & found.keys()
        found[name] = value_of(mapping(result.get("value")).get(WHOLE[type_of]))
    if not mappings(made.get("result")):
        yield Dropped("empty annotations")
    for name in several:
        del found[name]
        yield Dropped("choices per region, not of a whole task")
    for name, label in found.items():
        time = made.get("created_at")
        yield Judgement(task, worker, label, name, time, made.get("lead_time"), kind=kind)
        if made.get("ground_truth"):
            yield Gold(task, label, name)


def value_of(value: Any) -> Any:
    """Return plain values; a path in a taxonomy is written with slashes."""
    if isinstance(value, list):
        return [" / ".join(map(str, one)) if isinstance(one, list) else one for one in value]
    return value
