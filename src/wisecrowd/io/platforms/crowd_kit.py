"""Long tables as crowd-kit has them: task, worker, label, read as any plain table."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from wisecrowd.io.formats import FORMATS, SUFFIXES, Request
from wisecrowd.io.platforms import CHOSEN, Platform
from wisecrowd.io.sources import Source
from wisecrowd.kinds import PAIRS


def read(source: Source, request: Request) -> Iterator[Any]:
    """Yield the columns of a long table, whatever kind of file it is."""
    yield from FORMATS[SUFFIXES.get(source.suffix, "csv")](source, request)


PLATFORM = Platform(
    read,
    "task",
    "worker",
    "label",
    (
        "task",
        "worker",
        "label",
        "left",
        "right",
        "weight",
        "timestamp",
        "duration",
        "cost",
        "worker_kind",
    ),
    (*CHOSEN, PAIRS),
)
