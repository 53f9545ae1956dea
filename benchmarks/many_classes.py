"""1000 classes and 10^5 workers: refused with a figure, or served by a structured model."""

from __future__ import annotations

import tracemalloc

import numpy as np

import wisecrowd as wc
from benchmarks.rows import Row
from wisecrowd.core.exceptions import DataError


def run() -> list[Row]:
    rng = np.random.default_rng(0)
    n_tasks, n_workers, n_classes, per_task = 100_000, 100_000, 1000, 5
    truth = rng.integers(0, n_classes, n_tasks)
    task = np.repeat(np.arange(n_tasks), per_task)
    worker = rng.integers(0, n_workers, len(task))
    right = rng.random(len(task)) < 0.7
    label = np.where(right, truth[task], rng.integers(0, n_classes, len(task)))
    _, first = np.unique(task * n_workers + worker, return_index=True)
    labels = wc.CrowdLabels.from_arrays(
        task[first], worker[first], label[first], classes=np.arange(n_classes)
    )
    rows = []
    for name in ("DawidSkene", "OneCoin", "MajorityVote"):
        tracemalloc.start()
        try:
            model = getattr(wc.aggregation, name)().fit(labels)
            accuracy = np.mean(model.labels_ == truth[labels.tasks])
            outcome = f"accuracy {accuracy:.4f}"
        except DataError as error:
            outcome = f"refused: {error}"
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        measured = f"{outcome} (peak {peak / 1e6:.0f} MB)"
        what = f"K = 1000 classes, 10^5 workers: {name}"
        bar = "a clear error or a structured model, never 800 GB"
        rows.append(Row(what, bar, measured, peak < 4e9))
    return rows


if __name__ == "__main__":
    print("\n".join(row.line() for row in run()))
