"""Progress as a callback: the loop reports, the command line or a notebook draws.

Examples
--------
>>> seen = []
>>> with reporting(seen.append):
...     report(Progress(1, 100, -12.5))
>>> seen[0].objective
-12.5
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass


@dataclass(frozen=True)
class Progress:
    """One iteration done: its number, how many there may be, and the objective if there is one."""

    iteration: int
    max_iter: int
    objective: float | None = None


_listener: ContextVar[Callable[[Progress], None] | None] = ContextVar("listener", default=None)


@contextmanager
def reporting(listener: Callable[[Progress], None]) -> Iterator[None]:
    """Send the progress of every fit inside the ``with`` block to ``listener``."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


def report(progress: Progress) -> None:
    """Tell the listener, if there is one."""
    listener = _listener.get()
    if listener is not None:
        listener(progress)
