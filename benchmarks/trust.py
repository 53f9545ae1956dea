"""Everything that ``make trust`` prints: all benchmarks whose names begin with ``trust_``."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from pathlib import Path

from benchmarks.rows import Row

ALSO = ("calibration_conditions",)


def names() -> list[str]:
    """Return the modules, in alphabetic order."""
    found = sorted(path.stem for path in Path(__file__).parent.glob("trust_*.py"))
    return found + [x for x in ALSO if importlib.util.find_spec(f"benchmarks.{x}") is not None]


def run() -> list[Row]:
    rows = []
    for name in names():
        print(f"... {name}", file=sys.stderr, flush=True)
        rows += importlib.import_module(f"benchmarks.{name}").run()
    return rows
