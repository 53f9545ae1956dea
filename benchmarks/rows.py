"""One measured line: what, the bar, the figure, and whether it is met."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from wisecrowd import CrowdLabels


@dataclass(frozen=True)
class Row:
    what: str
    bar: str
    measured: str
    met: bool | None = None  # None: reported, no bar

    def __post_init__(self) -> None:
        if self.met is not None:  # a comparison of numpy's numbers is not a bool to JSON
            object.__setattr__(self, "met", bool(self.met))

    def line(self) -> str:
        mark = {True: "yes", False: "NO", None: "–"}[self.met]
        return f"| {self.what} | {self.bar} | {self.measured} | {mark} |"


def cpu_seconds(job: Callable[[], Any], repeat: int = 1) -> float:
    """Return the smallest CPU time of ``repeat`` runs."""
    times = []
    for _ in range(repeat):
        start = time.process_time()
        job()
        times.append(time.process_time() - start)
    return min(times)


def random_crowd(n_labels: int, n_classes: int, n_workers: int = 1000, per_task: int = 5):
    """Return (CrowdLabels, truth codes) of workers who are right 7 times in 10."""
    rng = np.random.default_rng(0)
    n_tasks = n_labels // per_task
    truth = rng.integers(0, n_classes, n_tasks)
    task = np.repeat(np.arange(n_tasks, dtype=np.int32), per_task)
    # distinct workers per task: a random start and steps that never meet
    step = n_workers // per_task
    first = rng.integers(0, step, (n_tasks, per_task))
    worker = (first + step * np.arange(per_task)).ravel().astype(np.int32)
    right = rng.random(n_labels) < 0.7
    label = np.where(right, truth[task], rng.integers(0, n_classes, n_labels)).astype(np.int32)
    labels = CrowdLabels(
        task, worker, label, np.arange(n_tasks), np.arange(n_workers), np.arange(n_classes)
    )
    return labels, truth
