"""Standard errors of worker accuracies against the deviations that they are to describe.

Eight simulated crowds, from busy to nearly empty. Half of the draws have workers with one accuracy
for all classes, half have confusion matrices of their own. An error is right if it is as large as
the deviations are: root mean square error ÷ root mean square deviation, which is 1 at best.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from benchmarks.rows import Row
from wisecrowd import simulate
from wisecrowd.core.registry import get_method

METHODS = ("hierarchical-dawid-skene", "auto", "one-coin", "dawid-skene")
JUDGED = METHODS[:2]
LEAST, MOST = 0.8, 1.2


class Cell(NamedTuple):
    """A crowd: tasks, workers, labels of a task, classes, and whether the workers are poor."""

    n_tasks: int
    n_workers: int
    per_task: int
    n_classes: int
    poor: bool = False

    def workers(self, number: int) -> simulate.Population:
        """Return the population of a draw."""
        if number % 2:
            return simulate.DirichletWorkers(3 if self.poor else 4, 1)
        return simulate.OneCoinWorkers(5, 5) if self.poor else simulate.OneCoinWorkers(6, 2)

    @property
    def title(self) -> str:
        sizes = f"{self.n_tasks}, {self.n_workers}, {self.per_task}, {self.n_classes}"
        return sizes + (", poor workers" if self.poor else "")


CELLS = (
    Cell(400, 40, 5, 3), Cell(400, 4, 4, 2), Cell(100, 20, 5, 3), Cell(300, 100, 3, 2),
    Cell(2000, 10, 3, 2), Cell(150, 6, 3, 4), Cell(60, 5, 5, 2), Cell(500, 30, 5, 5, True),
)  # fmt: skip


class Score(NamedTuple):
    """Root mean squares of errors and deviations, and how often 1.96 errors hold a deviation."""

    error: float
    deviation: float
    coverage: float

    @property
    def ratio(self) -> float:
        return self.error / self.deviation


def score(method: str, cell: Cell, n_crowds: int) -> Score:
    """Return the score of a method in a cell."""
    error, off = [], []
    for number in range(n_crowds):
        made = simulate.crowd(
            cell.n_tasks, cell.workers(number), simulate.PerTask(cell.per_task),
            n_workers=cell.n_workers, n_classes=cell.n_classes, random_state=number,
        )  # fmt: skip
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            fit = get_method(method)().fit(made.labels)
        error.append(fit.worker_accuracy_error_)
        off.append(fit.worker_accuracy_ - made.worker_accuracy)
    errors, deviations = np.concatenate(error), np.concatenate(off)
    return Score(
        float(np.sqrt(np.mean(errors**2))),
        float(np.sqrt(np.mean(deviations**2))),
        float(np.mean(np.abs(deviations) <= 1.96 * errors)),
    )


def worker_errors(
    methods: Sequence[str] = METHODS, cells: Sequence[Cell] = CELLS, n_crowds: int = 12
) -> list[Row]:
    """Return one row per cell and method: error ÷ deviation, both, and the coverage."""
    rows = []
    for cell in cells:
        print(f"... {cell.title}", file=sys.stderr, flush=True)
        for method in methods:
            found = score(method, cell, n_crowds)
            bar = ".8 to 1.2" if method in JUDGED else ""
            met = LEAST <= found.ratio <= MOST if method in JUDGED else None
            measured = (
                f"{found.ratio:.2f} ({found.error:.3f} ÷ {found.deviation:.3f}), "
                f"coverage {found.coverage:.2f}"
            )
            rows.append(Row(f"worker errors, {cell.title}: {method}", bar, measured, met))
    return rows


def run() -> list[Row]:
    return worker_errors()


if __name__ == "__main__":
    print("\n".join(row.line() for row in run()))
