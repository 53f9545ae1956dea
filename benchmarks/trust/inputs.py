"""The input matrix: every input case × every method × both entry points, judged and counted.

What is not good is printed to standard error with its message. Costly inputs (100 000 classes, a
million labels on one task) run on the methods in COSTLY_METHODS, under a limit of time and memory.
"""

from __future__ import annotations

import resource
import signal
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from tests.support.inputs import (
    INPUT_CASES,
    CaseResult,
    Given,
    InputCase,
    Outcome,
    Trace,
    try_command_line,
    try_python,
)
from tests.support.inputs.check import available
from tests.support.inputs.check import judged as judge_attempt

from benchmarks.rows import Row
from wisecrowd.core.registry import get_method, method_names
from wisecrowd.testing import maker
from wisecrowd.testing.behaviour import check_good_crowds

SECONDS = 60
BYTES = 4 << 30
COSTLY_METHODS = (
    "majority-vote", "wawa", "one-coin", "dawid-skene", "glad", "mace", "belief-propagation",
    "kos", "max-margin-vote", "multispa",
)  # fmt: skip
ENTRIES = ("Python", "command line")
BAD = [outcome for outcome in Outcome if not outcome.good]


class OverBudget(BaseException):
    """The time is up: no error of the method, so nothing between may catch it."""


@contextmanager
def limited(seconds: int = SECONDS, size: int = BYTES) -> Iterator[None]:
    """Allow so many seconds, and so much more address space than there is now."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise OverBudget

    pages = int(Path("/proc/self/statm").read_text().split()[0])
    before = resource.getrlimit(resource.RLIMIT_AS)
    former = signal.signal(signal.SIGPROF, stop)
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + size, before[1]))
    signal.setitimer(signal.ITIMER_PROF, seconds)  # of processor time: others may use the machine
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, former)
        resource.setrlimit(resource.RLIMIT_AS, before)


def attempt(given: Given, method: str, entry: str) -> Trace:
    """Try one input on one method from one side."""
    if entry == "Python":
        return try_python(given, maker(get_method(method)))
    with tempfile.TemporaryDirectory() as folder:
        return try_command_line(given, method, Path(folder))


def judged(case: InputCase, given: Given, method: str, entry: str) -> CaseResult:
    try:
        with limited():
            trace = attempt(given, method, entry)
    except OverBudget:
        return CaseResult(Outcome.OVER_BUDGET, f"more than {SECONDS} s")
    if "MemoryError" in (trace.failure or "") or "not enough memory" in (trace.refusal or ""):
        return CaseResult(Outcome.OVER_BUDGET, f"more than {BYTES >> 30} GB")
    make = maker(get_method(method))
    return judge_attempt(case, given, trace, make, shell=entry == "command line")


def count(methods: list[str]) -> Counter[tuple[str, Outcome]]:
    """Judge the whole matrix; count outcomes by entry point."""
    counts: Counter[tuple[str, Outcome]] = Counter()
    costly = [case for case in INPUT_CASES if case.costly]
    for case in (*available(INPUT_CASES), *costly):
        given = case.make()
        chosen = [m for m in methods if m in COSTLY_METHODS] if case.costly else methods
        for entry in ENTRIES:
            if (given.data if entry == "Python" else given.file) is None:
                continue
            for method in chosen:
                result = judged(case, given, method, entry)
                counts[entry, result.outcome] += 1
                if not result.outcome.good:
                    told = f"{method}, {entry}, {case.name}: {result.outcome.value}"
                    print(f"{told}: {result.detail}", file=sys.stderr, flush=True)
    return counts


def false_alarms(methods: list[str]) -> int:
    """Count the methods that warn about themselves on a good crowd."""
    n = 0
    for method in methods:
        try:
            check_good_crowds(maker(get_method(method)))
        except AssertionError as error:
            n += 1
            print(f"{method}, good crowds: {error}", file=sys.stderr, flush=True)
    return n


def run(methods: list[str] | None = None) -> list[Row]:
    chosen = list(method_names()) if methods is None else methods
    counts = count(chosen)
    rows = [
        Row("input cases × methods", "≥ 100 × all", f"{len(INPUT_CASES)} × {len(chosen)}",
            len(INPUT_CASES) >= 100)
    ]  # fmt: skip
    for entry in ENTRIES:
        total = sum(n for (where, _), n in counts.items() if where == entry)
        good = ", ".join(
            f"{counts[entry, outcome]} {outcome.value}" for outcome in Outcome if outcome.good
        )
        rows.append(Row(f"input matrix, {entry}: {total} runs", "", good))
        for outcome in BAD:
            n = counts[entry, outcome]
            rows.append(Row(f"input matrix, {entry}: {outcome.value}", "0", str(n), n == 0))
    alarms = false_alarms(chosen)
    rows.append(
        Row("methods that warn about themselves on good crowds", "0", str(alarms), alarms == 0)
    )
    return rows


if __name__ == "__main__":
    print("\n".join(row.line() for row in run(sys.argv[1:] or None)))
