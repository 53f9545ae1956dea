"""Scale AI: its responses name no worker, so they are refused."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from wisecrowd.io.formats import Request
from wisecrowd.io.platforms import Platform
from wisecrowd.io.platforms.label_records import refuse_without_workers
from wisecrowd.io.sources import Source


def read(source: Source, request: Request) -> Iterator[Any]:
    """Say which export to ask for."""
    yield from ()
    raise refuse_without_workers(
        source, "ask Scale for the individual attempts with worker ids, as a table of task, worker "
        "and label"
    )  # fmt: skip


PLATFORM = Platform(read, "task_id", "-", "response", ())
