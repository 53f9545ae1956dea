"""Progress bar for work that takes longer than two seconds, on a terminal only."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from wisecrowd.cli.terminal import Notes, harmless
from wisecrowd.inference.monitor import Progress, reporting

DELAY = 2.0  # seconds without a bar


@contextmanager
def working(what: str, notes: Notes, about: str = "") -> Iterator[None]:
    """Show a bar while the block runs, if it takes long and standard error is a terminal.

    Parameters
    ----------
    what : str
        The activity, such as "reading answers.csv".
    notes : Notes
        Shows the warnings of the block at its end. If quiet, there is no bar.
    about : str, optional
        Prefix of warnings, for instance the name of the method.
    """
    try:
        if notes.quiet or not sys.stderr.isatty():
            yield
        else:
            with _bar(what):
                yield
    finally:
        notes.flush(about)


@contextmanager
def _bar(what: str) -> Iterator[None]:
    bar = ProgressBar(what)
    try:
        with reporting(bar.update):
            yield
    finally:
        bar.stop()


class ProgressBar:
    """A bar that appears after a delay and shows iterations, objective and rate.

    Parameters
    ----------
    what : str
    delay : float, optional
        Seconds before it appears; by default :data:`DELAY`.
    """

    def __init__(self, what: str, delay: float | None = None) -> None:
        self._what = what
        self._lock = threading.Lock()
        self._stopped = False
        self._shown: Any = None
        self._latest: Progress | None = None
        self._start = time.monotonic()
        self._timer = threading.Timer(DELAY if delay is None else delay, self._show)
        self._timer.daemon = True
        self._timer.start()

    def update(self, progress: Progress) -> None:
        """Record one more iteration."""
        if self._latest is None or _is_new_run(self._latest, progress):
            self._start = time.monotonic()
        self._latest = progress
        if self._shown is not None:
            self._draw()

    def stop(self) -> None:
        """Remove the bar completely."""
        self._timer.cancel()
        with self._lock:
            self._stopped = True
            if self._shown is not None:
                with suppress(OSError):
                    self._shown.stop()

    def _show(self) -> None:
        # rich is imported here, in the timer's thread, so that short runs do not pay for it.
        from rich.console import Console
        from rich.progress import BarColumn, SpinnerColumn, TextColumn, TimeElapsedColumn
        from rich.progress import Progress as RichProgress

        with self._lock:
            if self._stopped:
                return
            shown = RichProgress(
                SpinnerColumn(),
                TextColumn("{task.description}", markup=False),
                BarColumn(),
                TextColumn("{task.fields[facts]}", markup=False),
                TimeElapsedColumn(),
                console=Console(stderr=True),
                transient=True,
                redirect_stdout=False,
            )
            self._task = shown.add_task(harmless(self._what), total=None, facts="")
            self._shown = shown
            with suppress(OSError):
                shown.start()
        self._draw()

    def _draw(self) -> None:
        if self._latest is not None:
            self._shown.update(
                self._task,
                description=harmless(self._description(self._latest)),
                total=self._latest.max_iter,
                completed=self._latest.iteration,
                facts=self._facts(self._latest),
            )

    def _description(self, now: Progress) -> str:
        return f"{self._what}: {now.stage}" if now.stage else self._what

    def _facts(self, now: Progress) -> str:
        seconds = max(time.monotonic() - self._start, 1e-9)
        facts = [f"{now.iteration}/{now.max_iter}"]
        if now.iteration > 1:
            facts.append(f"{(now.iteration - 1) / seconds:.3g} iterations/s")
        if now.objective is not None:
            facts.append(f"objective {now.objective:.8g}")
        return ", ".join(facts)


def _is_new_run(before: Progress, now: Progress) -> bool:
    """Return whether an iteration belongs to another fit, or to a restart."""
    return now.stage != before.stage or now.iteration <= before.iteration
