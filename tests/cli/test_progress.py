from __future__ import annotations

import sys
import threading
import time

import pytest

from wisecrowd.cli.run import progress
from wisecrowd.cli.terminal import Notes
from wisecrowd.inference.monitor import Progress, report


class Terminal:
    """A standard error that says it is a terminal and keeps what it gets."""

    encoding = "utf-8"

    def __init__(self) -> None:
        self.text = ""
        self.drawn = threading.Event()

    def isatty(self) -> bool:
        return True

    def write(self, text: str) -> int:
        self.text += text
        if "objective" in self.text or "held-out" in self.text:
            self.drawn.set()
        return len(text)

    def flush(self) -> None:
        """Nothing is buffered."""


def on_terminal(monkeypatch) -> Terminal:
    # Called in the test and not a fixture: between the two, pytest sets standard error anew.
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    found = Terminal()
    monkeypatch.setattr(sys, "stderr", found)
    return found


def test_long_work_shows_objective_and_rate(monkeypatch):
    terminal = on_terminal(monkeypatch)
    monkeypatch.setattr(progress, "DELAY", 0.01)
    with progress.working("fitting glad", Notes()):
        for iteration in range(1, 4):
            report(Progress(iteration, 100, -12.5))
            time.sleep(0.02)
        assert terminal.drawn.wait(30)
    assert "fitting glad" in terminal.text
    assert "/100" in terminal.text
    assert "objective -12.5" in terminal.text
    assert "iterations/s" in terminal.text


def test_epochs_fit_into_one_line_of_a_narrow_terminal(monkeypatch):
    terminal = on_terminal(monkeypatch)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr(progress, "DELAY", 0.01)
    with progress.working("training crowd-layer", Notes()):
        for epoch in range(1, 4):
            report(Progress(epoch, 100, 0.51234, unit="epoch", score=-0.25678))
            time.sleep(0.02)
        assert terminal.drawn.wait(30)
    assert "of 100, loss 0.512, held-out -0.257" in terminal.text
    assert "\u2026" not in terminal.text  # nothing is cut off


def test_short_work_shows_nothing(monkeypatch):
    terminal = on_terminal(monkeypatch)
    with progress.working("fitting glad", Notes()):
        report(Progress(1, 100, -12.5))
    assert terminal.text == ""


def test_quiet_and_no_terminal_start_no_thread(monkeypatch):
    terminal = on_terminal(monkeypatch)
    before = threading.active_count()
    with progress.working("fitting glad", Notes(quiet=True)):
        assert threading.active_count() == before
    monkeypatch.setattr(terminal, "isatty", lambda: False)
    with progress.working("fitting glad", Notes()):
        assert threading.active_count() == before


def test_the_bar_is_gone_when_the_work_fails(monkeypatch):
    terminal = on_terminal(monkeypatch)
    monkeypatch.setattr(progress, "DELAY", 0.0)

    def interrupted_work() -> None:
        with progress.working("fitting", Notes()):
            report(Progress(1, 2, 0.0))
            report(Progress(2, 2, 0.0))
            assert terminal.drawn.wait(30)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted_work()
    seen = terminal.text
    report(Progress(1, 2, 0.0))  # nobody listens any more
    assert terminal.text == seen
    assert seen.endswith("\x1b[2K")  # the line is wiped
    assert not any(isinstance(thread, threading.Timer) for thread in threading.enumerate())


def test_rate_counts_from_the_current_run():
    bar = progress.ProgressBar("fitting", delay=1000.0)
    try:
        bar.update(Progress(1, 10, 0.0))
        bar.update(Progress(2, 10, 0.0))
        bar._start -= 1.0
        assert bar._facts(Progress(5, 10, None)).startswith("5/10, 4 iterations/s")
        bar.update(Progress(1, 10, 0.0))  # a restart
        assert bar._facts(Progress(1, 10, -1.0)) == "1/10, objective -1"
    finally:
        bar.stop()


def test_the_bar_names_the_fit_of_several():
    bar = progress.ProgressBar("fitting auto", delay=1000.0)
    try:
        bar.update(Progress(1, 10, 0.0, "one-coin"))
        bar.update(Progress(2, 10, 0.0, "one-coin"))
        assert bar._description(bar._latest) == "fitting auto: one-coin"
        bar._start -= 1000.0
        bar.update(Progress(3, 10, 0.0, "wawa"))  # the rate of another fit does not count
        assert time.monotonic() - bar._start < 500
    finally:
        bar.stop()
