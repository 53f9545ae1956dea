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
        The objective; of an epoch, the loss.
    stage : str
        The fit it belongs to, if there are several; see :func:`stage`.
    unit : {"iteration", "epoch"}
    score : float, optional
        Held-out score of an epoch, higher is better.
    best : int, optional
        Epoch with the highest score so far.
    later : int
        Expected number of iterations in a fit that follows this one.
    """

    iteration: int
    max_iter: int
    objective: float | None = None
    stage: str = ""
    unit: str = "iteration"
    score: float | None = None
    best: int | None = None
    later: int = 0


def reporting(listener: Callable[[Progress], None]) -> AbstractContextManager[None]:
    """Send the progress of every fit inside the ``with`` block to ``listener``."""
    return with_settings(listener=listener)


def current_listener() -> Callable[[Progress], None] | None:
    """Return the listener of the fits that start now, or None."""
    return current_settings().listener


def stage(name: str) -> AbstractContextManager[None]:
    """Name the fits inside the ``with`` block in what they report; the outer name comes first.

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

    def named(progress: Progress) -> None:
        parts = (name, progress.stage) if progress.stage else (name,)
        listener(replace(progress, stage=": ".join(parts)))

    return reporting(named)


def followed_by_refit() -> AbstractContextManager[None]:
    """Announce in every report that a refit up to the best epoch so far follows."""
    listener = current_listener()
    if listener is None:
        return nullcontext()
    return reporting(lambda progress: listener(replace(progress, later=progress.best or 0)))


def unreported() -> AbstractContextManager[None]:
    """Report nothing inside the ``with`` block, for fits that are a step of another fit."""
    return with_settings(listener=None)


def report(progress: Progress) -> None:
    """Report progress to the listener, if there is one."""
    listener = current_listener()
    if listener is not None:
        listener(progress)
