"""LeWiDi, the shared tasks on learning with disagreement: one JSON object of tasks by id."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from wisecrowd.core.exceptions import DataError
from wisecrowd.io.formats import Request
from wisecrowd.io.platforms.judgements import Event, Judgement, batches
from wisecrowd.io.sources import Source, opened
from wisecrowd.io.untrusted import json_members


def read(source: Source, request: Request) -> Iterator[dict[str, Any]]:
    """Yield the labels of the named workers; both ways of writing them are read."""
    with opened(source) as stream:
        values = json_members(stream, source, request.encoding)
        yield from batches(_events(values, source), source, request)


def _events(values: Iterator[tuple[str, Any]], source: Source) -> Iterator[Event]:
    for task, record in values:
        if not isinstance(record, dict):
            raise DataError(f"{source.name}: task {task!r} is not a JSON object; export it again.")
        labels = record.get("annotations")
        if isinstance(labels, dict):
            for worker, label in labels.items():
                yield Judgement(task, worker, label)
            continue
        workers, labels = _split(record.get("annotators")), _split(labels)
        if len(workers) != len(labels):
            raise DataError(
                f"{source.name}: task {task!r} has {len(workers)} workers and {len(labels)} "
                "labels; each label needs its worker."
            )
        for worker, label in zip(workers, labels, strict=True):
            yield Judgement(task, worker, label)


def _split(value: Any) -> list[Any]:
    if isinstance(value, str):
        return [part.strip() for part in value.split(",")] if value.strip() else []
    return value if isinstance(value, list) else []
