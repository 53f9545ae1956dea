"""Progress of work that takes longer than two seconds.

A terminal gets one line that is redrawn. Other outputs, such as a log of a batch job, get a line
per epoch of training, or every few seconds.
"""

from __future__ import annotations

import math
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Any

from wisecrowd.cli.terminal import Notes, harmless
from wisecrowd.inference.monitor import Progress, reporting

DELAY = 2.0  # seconds in which nothing is shown
PERIOD = 5.0  # seconds between two lines without a terminal
Listener = Callable[[Progress], None]


@contextmanager
def working(
    what: str, notes: Notes, about: str = "", log: Listener | None = None
) -> Iterator[None]:
    """Show progress while the block runs, if it takes long.

    Parameters
    ----------
    what : str
        The activity, such as "reading answers.csv".
    notes : Notes
        Shows the warnings of the block at its end. If quiet, there is no progress either.
    about : str, optional
        Prefix of warnings, for instance the name of the method.
    log : callable, optional
        Also gets the progress, even if quiet.
    """
    try:
        with ExitStack() as stack:
            shown = stack.enter_context(_display(what, notes.quiet))
            listeners = [one for one in (log, shown) if one is not None]

            def tell(progress: Progress) -> None:
                for listener in listeners:
                    listener(progress)

            if listeners:
                stack.enter_context(reporting(tell))
            yield
    finally:
        notes.flush(about)


@contextmanager
def _display(what: str, quiet: bool) -> Iterator[Listener | None]:
    if quiet:
        yield None
    elif not sys.stderr.isatty():
        yield ProgressLines(what).update
    else:
        bar = ProgressBar(what)
        try:
            yield bar.update
        finally:
            bar.stop()


class Pace:
    """The speed of the current fit, and a description of its state.

    Parameters
    ----------
    what : str
    """

    brief = False  # whether epochs must fit into a line of a terminal

    def __init__(self, what: str) -> None:
        self._what = what
        self._latest: Progress | None = None
        self._first = 1  # the first iteration that was reported: a resumed fit begins later
        self._start = time.monotonic()

    def update(self, progress: Progress) -> None:
        """Record one more iteration."""
        last = self._latest  # of another fit, or before a restart, if the iteration is not higher
        if last is None or progress.stage != last.stage or progress.iteration <= last.iteration:
            self._start, self._first = time.monotonic(), progress.iteration
        self._latest = progress

    def _description(self, now: Progress) -> str:
        return f"{self._what}: {now.stage}" if now.stage else self._what

    def _facts(self, now: Progress) -> str:
        seconds, done = max(time.monotonic() - self._start, 1e-9), now.iteration - self._first
        rate = done / seconds if done > 0 else None  # iterations per second
        if now.unit == "epoch":
            return ", ".join(_epoch_facts(now, rate, self.brief))
        facts = [f"{now.iteration}/{now.max_iter}"]
        if rate is not None:
            facts.append(f"{rate:.3g} iterations/s")
        if now.objective is not None:
            facts.append(f"objective {now.objective:.8g}")
        return ", ".join(facts)


def _epoch_facts(now: Progress, rate: float | None, brief: bool) -> list[str]:
    facts = [f"epoch {now.iteration} of {now.max_iter}"]
    if now.objective is not None:
        facts.append(f"loss {now.objective:.{3 if brief else 4}g}")
    if now.score is not None:
        facts.append(f"held-out {now.score:.3g}" if brief else f"held-out score {now.score:.4g}")
    if rate is not None:
        facts.append(f"{duration((now.max_iter - now.iteration + now.later) / rate)} left")
    return facts


def duration(seconds: float) -> str:
    """Return a rounded duration.

    Examples
    --------
    >>> duration(0.2), duration(75), duration(3 * 3600 + 120)
    ('1 s', '1 min 15 s', '3 h 2 min')
    """
    whole = max(1, math.ceil(seconds))
    for size, unit, smaller in ((3600, "h", "min"), (60, "min", "s")):
        if whole >= size:
            rest = whole % size // (60 if size == 3600 else 1)
            return f"{whole // size} {unit} {rest} {smaller}" if rest else f"{whole // size} {unit}"
    return f"{whole} s"


class ProgressLines(Pace):
    """Lines about epochs on standard error, after a delay and at most every few seconds.

    Parameters
    ----------
    what : str
    """

    def __init__(self, what: str) -> None:
        super().__init__(what)
        self._next = time.monotonic() + DELAY

    def update(self, progress: Progress) -> None:
        """Record one more iteration; print it if it is an epoch and the time has come."""
        super().update(progress)
        if progress.unit == "epoch" and time.monotonic() >= self._next:
            self._next = time.monotonic() + PERIOD
            text = f"{self._description(progress)}: {self._facts(progress)}"
            with suppress(OSError):  # a line that cannot be written is not an error
                print(harmless(text), file=sys.stderr, flush=True)


class ProgressBar(Pace):
    """A line on the terminal that appears after a delay: a bar of iterations, or epochs as text.

    Parameters
    ----------
    what : str
    delay : float, optional
        Seconds before it appears; by default :data:`DELAY`.
    """

    brief = True

    def __init__(self, what: str, delay: float | None = None) -> None:
        super().__init__(what)
        self._lock = threading.Lock()
        self._stopped = False
        self._shown: Any = None
        self._timer = threading.Timer(DELAY if delay is None else delay, self._show)
        self._timer.daemon = True
        self._timer.start()

    def update(self, progress: Progress) -> None:
        """Record one more iteration."""
        super().update(progress)
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
        from rich.progress import (
            BarColumn,
            ProgressColumn,
            SpinnerColumn,
            TextColumn,
            TimeElapsedColumn,
        )
        from rich.progress import Progress as RichProgress

        class OfIterations(ProgressColumn):
            """A column that epochs do not have, so that their text fits into one line."""

            def __init__(self, column: ProgressColumn) -> None:
                super().__init__()
                self.column = column

            def render(self, task: Any) -> Any:
                return "" if task.fields["is_epoch"] else self.column.render(task)

        with self._lock:
            if self._stopped:
                return
            shown = RichProgress(
                SpinnerColumn(),
                TextColumn("{task.description}", markup=False),
                OfIterations(BarColumn()),
                TextColumn("{task.fields[facts]}", markup=False),
                OfIterations(TimeElapsedColumn()),
                console=Console(stderr=True),
                transient=True,
                redirect_stdout=False,
            )
            self._task = shown.add_task(
                harmless(self._what), total=None, facts="", is_epoch=False
            )  # fmt: skip
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
                is_epoch=self._latest.unit == "epoch",
            )
