"""What the command line costs before it does anything, as a multiple of ``import numpy``."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

import wisecrowd as wc
from benchmarks.rows import Row

HEAVY = ("sklearn", "numba", "torch", "pandas")


def cpu_of(command: list[str], repeat: int = 7) -> float:
    """Return the smallest CPU time of a command over several runs, in seconds."""
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    times = []
    for _ in range(repeat):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(command, check=True, capture_output=True, env=environment)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        times.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return min(times)


def run() -> list[Row]:
    with tempfile.TemporaryDirectory() as folder:
        crowd = wc.simulate.crowd(200, "50*one-coin", "per-task:5")
        crowd.write(Path(folder) / "crowd")
        answers = str(Path(folder) / "crowd" / "answers.csv")
        wisecrowd = [sys.executable, "-m", "wisecrowd"]
        aggregate = [*wisecrowd, "aggregate", answers, "-o", str(Path(folder) / "labels.csv")]
        numpy = cpu_of([sys.executable, "-c", "import numpy"])
        help_text = cpu_of([*wisecrowd, "--help"]) / numpy
        whole = cpu_of(aggregate) / numpy
        script = (
            "import sys; from wisecrowd.cli.main import run\n"
            f"sys.argv = {['wisecrowd', *aggregate[3:]]!r}\n"
            "try:\n    run()\nexcept SystemExit:\n    pass\n"
            f"print([m for m in {HEAVY!r} if m in sys.modules])"
        )
        done = subprocess.run(
            [sys.executable, "-c", script], check=True, capture_output=True, text=True
        )
        loaded = done.stdout.strip().splitlines()[-1]
    return [
        Row("`wisecrowd --help`, CPU", "≤ 2× import numpy", f"{help_text:.2f}×", help_text <= 2),
        Row("`wisecrowd aggregate`, 1000 rows, CPU", "≤ 7×", f"{whole:.2f}×", whole <= 7),
        Row("first run on a small file", "no compilation", f"loaded: {loaded}", loaded == "[]"),
    ]


if __name__ == "__main__":
    print("\n".join(row.line() for row in run()))
