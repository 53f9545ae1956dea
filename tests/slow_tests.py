"""Which tests are slow: ``pytest --durations=0 -vv … > log; python -m tests.slow_tests log``.

``tests/slow_tests.txt`` lists the cases that took longer than a quarter of a second, with a star
for all cases of a test. ``make test`` leaves them out, ``make test-slow`` runs them. Of a test
whose cases are all slow, the fastest stays in ``make test`` if it takes less than a second.
"""

from __future__ import annotations

import re
import sys
from collections import defaultdict
from pathlib import Path

LIST = Path(__file__).with_suffix(".txt")
SLOW = 0.25  # seconds
REPRESENTATIVE = 1.0  # seconds, of the case of an all-slow test that is run all the same
LINE = re.compile(r"^([\d.]+)s (?:call|setup|teardown) +(\S.*)$")


def durations(log: str) -> dict[str, float]:
    """Return the seconds of every test case in the output of ``pytest --durations=0``."""
    found: dict[str, float] = defaultdict(float)
    for match in map(LINE.match, log.splitlines()):
        if match:
            found[match[2]] += float(match[1])
    return dict(found)


def slow_cases(seconds: dict[str, float], factor: float = 1.0) -> list[str]:
    """Return the lines of the list; ``factor`` is how much slower the measuring machine was."""
    families: dict[str, dict[str, float]] = defaultdict(dict)
    for case, took in seconds.items():
        families[case.partition("[")[0]][case] = took / factor
    lines = []
    for test, cases in families.items():
        slow = [case for case, took in cases.items() if took > SLOW]
        fastest = min(cases, key=lambda case: cases[case])
        if len(slow) == len(cases) and cases[fastest] < REPRESENTATIVE and len(cases) > 1:
            slow.remove(fastest)
        lines += [f"{test}*"] if len(slow) == len(cases) else slow
    return sorted(lines)


def read_list() -> tuple[frozenset[str], frozenset[str]]:
    """Return the slow cases, and the tests of which all cases are slow."""
    lines = LIST.read_text(encoding="utf-8").splitlines()
    return (
        frozenset(line for line in lines if not line.endswith("*")),
        frozenset(line[:-1] for line in lines if line.endswith("*")),
    )


if __name__ == "__main__":
    factor = float(sys.argv[2]) if len(sys.argv) > 2 else 1.0
    found = slow_cases(durations(Path(sys.argv[1]).read_text(encoding="utf-8")), factor)
    LIST.write_text("\n".join(found) + "\n", encoding="utf-8")
