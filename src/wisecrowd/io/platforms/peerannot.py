"""peerannot: ``answers.json``, one JSON object {task: {worker: label}}."""

from __future__ import annotations

from collections.abc import Iterator

from wisecrowd.core.exceptions import DataError
from wisecrowd.io.formats import Request
from wisecrowd.io.platforms import Platform
from wisecrowd.io.platforms.label_records import Event, LabelRecord, reader
from wisecrowd.io.sources import Source, opened
from wisecrowd.io.untrusted import json_members


@reader
def read(source: Source, request: Request) -> Iterator[Event]:
    """Yield every label of every task."""
    with opened(source) as stream:
        for task, labels in json_members(stream, source, request.encoding):
            if not isinstance(labels, dict):
                raise DataError(
                    f"{source.name}: task {task!r} is not an object of labels by worker; write "
                    '{"task": {"worker": label}}.'
                )
            for worker, label in labels.items():
                yield LabelRecord(task, worker, label)


PLATFORM = Platform(read, "key", "inner key", "value", ())
