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
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace

from wisecrowd.core.settings import current_settings, with_settings


@dataclass(frozen=True)
class Progress:
    """A finished iteration.

    Attributes
    ----------
    iteration, max_iter : int
        Its number, and the maximum number.
    objective : float, optional
    stage : str
        The fit it belongs to, if there are several; see :func:`stage`.
    """

    iteration: int
    max_iter: int
    objective: float | None = None
    stage: str = ""


def reporting(listener: Callable[[Progress], None]) -> AbstractContextManager[None]:
    """Send the progress of every fit inside the ``with`` block to ``listener``."""
    return with_settings(listener=listener)


def current_listener() -> Callable[[Progress], None] | None:
    """Return the listener of the fits that start now, or None."""
    return current_settings().listener


def stage(name: str) -> AbstractContextManager[None]:
    """Name the fits inside the ``with`` block in what they report.

    Examples
    --------
    >>> seen = []
    >>> with reporting(seen.append), stage("wawa"):
    ...     report(Progress(1, 100))
    >>> seen[0].stage
    'wawa'
    """
    listener = current_listener()
    if listener is None:
        return nullcontext()
    return reporting(lambda progress: listener(replace(progress, stage=name)))


def report(progress: Progress) -> None:
    """Report progress to the listener, if there is one."""
    listener = current_listener()
    if listener is not None:
        listener(progress)
