"""LeWiDi, the shared tasks on learning with disagreement: one JSON object of tasks by id."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from wisecrowd.core.exceptions import DataError
from wisecrowd.io.formats import Request
from wisecrowd.io.platforms import Platform
from wisecrowd.io.platforms.label_records import Event, LabelRecord, reader
from wisecrowd.io.sources import Source, opened
from wisecrowd.io.untrusted import json_members


@reader
def read(source: Source, request: Request) -> Iterator[Event]:
    """Yield the labels of the named workers; both ways of writing them are read."""
    with opened(source) as stream:
        for task, record in json_members(stream, source, request.encoding):
            if not isinstance(record, dict):
                raise DataError(
                    f"{source.name}: task {task!r} is not a JSON object; export it again."
                )
            for worker, label in _pairs(record, task, source):
                yield LabelRecord(task, worker, label)


PLATFORM = Platform(read, "key", "annotators", "annotations", ())


def _pairs(record: dict[str, Any], task: str, source: Source) -> Iterable[tuple[Any, Any]]:
    """Return worker and label of each label."""
    labels = record.get("annotations")
    if isinstance(labels, dict):
        return labels.items()
    workers, labels = _split(record.get("annotators")), _split(labels)
    if len(workers) != len(labels):
        raise DataError(
            f"{source.name}: task {task!r} has {len(workers)} workers and {len(labels)} "
            "labels; each label needs its worker."
        )
    return zip(workers, labels, strict=True)


def _split(value: Any) -> list[Any]:
    if isinstance(value, str):
        return [part.strip() for part in value.split(",")] if value.strip() else []
    return value if isinstance(value, list) else []
