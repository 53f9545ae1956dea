"""Long tables as crowd-kit has them: task, worker, label, read as any plain table."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from wisecrowd.io.formats import FORMATS, SUFFIXES, Request, load_reader
from wisecrowd.io.sources import Source


def read(source: Source, request: Request) -> Iterator[Any]:
    """Yield the columns of a long table, whatever kind of file it is."""
    plain = FORMATS[SUFFIXES.get(source.suffix, "csv")]
    yield from load_reader(plain)(source, request)
