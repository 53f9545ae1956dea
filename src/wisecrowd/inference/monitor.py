"""Progress callbacks: the loop reports; the command line or a notebook displays.

Examples
--------
>>> seen = []
>>> with reporting(seen.append):
...     report(Progress(1, 100, -12.5))
>>> seen[0].objective
-12.5
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass

from wisecrowd.core.settings import current_settings, with_settings


@dataclass(frozen=True)
class Progress:
    """A finished iteration: its number, the maximum number, and the objective if there is one."""

    iteration: int
    max_iter: int
    objective: float | None = None


def reporting(listener: Callable[[Progress], None]) -> AbstractContextManager[None]:
    """Send the progress of every fit inside the ``with`` block to ``listener``."""
    return with_settings(listener=listener)


def current_listener() -> Callable[[Progress], None] | None:
    """Return the listener of the fits that start now, or None."""
    return current_settings().listener


def report(progress: Progress) -> None:
    """Report progress to the listener, if there is one."""
    listener = current_listener()
    if listener is not None:
        listener(progress)
