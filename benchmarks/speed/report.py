"""The report of a large crowd: CPU time and size of the page."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import wisecrowd as wc
from benchmarks.rows import Row, cpu_seconds
from wisecrowd import simulate


def page_of(labels: wc.CrowdLabels) -> tuple[float, int, list[str]]:
    """Return CPU seconds, bytes of the page, and the files that were written."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "report.html"
        seconds = cpu_seconds(lambda: wc.report(labels, path, tables=True))
        return seconds, os.path.getsize(path), sorted(os.listdir(folder))


def run() -> list[Row]:
    mixed = simulate.OneCoinWorkers(8, 2), simulate.DiverseWorkers(), simulate.Spammers()
    workers = 1200 * mixed[0] + 600 * mixed[1] + 200 * mixed[2]
    large = simulate.crowd(200_000, workers, simulate.PerTask(5), n_classes=4, random_state=0)
    seconds, size, _ = page_of(large.labels)
    workers = 8000 * mixed[0] + 1500 * mixed[1] + 500 * mixed[2]
    many = simulate.crowd(40_000, workers, simulate.PerTask(5), n_classes=10, random_state=0)
    _, size_many, files = page_of(many.labels)
    return [
        Row("report of 10⁶ labels, 2000 workers, CPU", "≤ 15 s", f"{seconds:.1f} s", seconds <= 15),
        Row("its page", "≤ 1 MB", f"{size / 1e6:.2f} MB", size <= 1e6),
        Row("page of 10 000 workers, 10 classes", "≤ 1 MB, whole table beside it",
            f"{size_many / 1e6:.2f} MB, {', '.join(files)}",
            size_many <= 1e6 and "report.workers.parquet" in files),
    ]  # fmt: skip


if __name__ == "__main__":
    print("\n".join(row.line() for row in run()))
