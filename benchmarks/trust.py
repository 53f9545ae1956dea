"""Everything that ``make trust`` prints: all benchmarks of that name, and the calibration study."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

from benchmarks.rows import Row


def names() -> list[str]:
    """Return the modules, in alphabetic order."""
    found = sorted(path.stem for path in Path(__file__).parent.glob("trust_*.py"))
    return [*found, "calibration"]


def run() -> list[Row]:
    rows = []
    for name in names():
        print(f"... {name}", file=sys.stderr, flush=True)
        rows += importlib.import_module(f"benchmarks.{name}").run()
    return rows
