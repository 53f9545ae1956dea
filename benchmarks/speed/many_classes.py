"""Very many classes: refused with a figure, or served by a structured model in little memory."""

from __future__ import annotations

import subprocess
import sys
import tracemalloc

import numpy as np

import wisecrowd as wc
from benchmarks.rows import Row
from wisecrowd.core.exceptions import DataError

STRUCTURED = ("OneCoin", "MajorityVote", "ZenCrowd", "Wawa", "ZeroBasedSkill", "IWMV", "CRH")
# A process of its own: what counts is all that it takes, libraries included.
SCRIPT = """
import sys
import numpy as np
import wisecrowd as wc
rng = np.random.default_rng(0)
n_tasks, n_classes, per_task = 34_000, 35_754, 5
truth = rng.integers(0, n_classes, n_tasks)
task = np.repeat(np.arange(n_tasks), per_task)
right = rng.random(len(task)) < 0.7
label = np.where(right, truth[task], rng.integers(0, n_classes, len(task)))
worker = rng.integers(0, 2000, len(task))
labels = wc.CrowdLabels.from_arrays(task, worker, label, classes=np.arange(n_classes))
model = getattr(wc.aggregation, sys.argv[1])().fit(labels)
model.predict_proba(labels)
with open("/proc/self/status") as status:
    peak = next(line.split()[1] for line in status if line.startswith("VmHWM"))
print(1024 * int(peak), np.mean(model.labels_ == truth[labels.tasks]))
"""


def run() -> list[Row]:
    return _tasks_and_classes() + _workers_and_classes()


def _tasks_and_classes() -> list[Row]:
    rows = []
    for name in ("MajorityVote", "OneCoin"):
        command = [sys.executable, "-W", "ignore", "-c", SCRIPT, name]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        peak, accuracy = map(float, done.stdout.split())
        what = f"34,000 tasks, 35,754 classes: {name}, the whole process"
        measured = f"{peak / 1e6:.0f} MB, accuracy {accuracy:.4f}"
        rows.append(Row(what, "≤ 300 MB", measured, peak <= 300e6))
    return rows


def _workers_and_classes() -> list[Row]:
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
    for name in ("DawidSkene", *STRUCTURED):
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
