"""Ordered classes: accuracy, mean absolute error and weighted kappa on real and simulated grades.

Thresholds keeps the defaults of Dawid-Skene. Weaker priors and equal class shares reach the bar on
valence5, which has 100 tasks, but have larger errors on all simulated crowds, so they are not used.
"""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

import numpy as np

from benchmarks.accuracy.real_data import data_folder
from benchmarks.rows import Row
from wisecrowd import CrowdLabels, simulate
from wisecrowd.aggregation import (
    DawidSkene,
    HierarchicalDawidSkene,
    OrdinalLatent,
    OrdinalMinimaxEntropy,
    Thresholds,
)
from wisecrowd.core.exceptions import WisecrowdWarning
from wisecrowd.metrics import accuracy, ordinal_mean_absolute_error, quadratic_weighted_kappa

METHODS = {
    "vote (median)": lambda: Thresholds("majority-vote"),
    "DawidSkene": DawidSkene,
    "Thresholds": Thresholds,
    "Thresholds(HierarchicalDawidSkene)": lambda: Thresholds(HierarchicalDawidSkene()),
    "OrdinalLatent": OrdinalLatent,
    "OrdinalMinimaxEntropy": OrdinalMinimaxEntropy,
}
# set: method: lowest accuracy, highest error, lowest kappa
BARS = {"valence5": {"Thresholds": (0.46, 0.61, 0.74)}}
CUTS = (-1.2, -0.4, 0.4, 1.2)
# name: tasks, workers, labels per task, cuts
CROWDS = {
    "100 tasks, 38 workers, 10 labels": (100, 38, 10, (-1.5, -0.7, 0.7, 1.5)),
    "300 tasks, 30 workers, 6 labels": (300, 30, 6, CUTS),
    "120 tasks, 199 workers, 10 labels": (120, 199, 10, (-1.2, -0.6, 0.0, 0.6, 1.2)),
    "500 tasks, 100 workers, 3 labels": (500, 100, 3, (-1.0, 0.0, 1.0)),
}
N_CROWDS = 5


def scores(truth, labels, classes) -> np.ndarray:
    """Return accuracy, mean absolute error and weighted kappa."""
    return np.array([
        accuracy(truth, labels),
        ordinal_mean_absolute_error(truth, labels, classes=classes),
        quadratic_weighted_kappa(truth, labels, classes=classes),
    ])  # fmt: skip


def text(values) -> str:
    return " / ".join(f"{value:.3f}" for value in values)


def read(folder: Path) -> tuple[CrowdLabels, np.ndarray]:
    answers, truth = (
        np.loadtxt(folder / file, int, delimiter=",", skiprows=1)
        for file in ("answers.csv", "truth.csv")
    )
    labels = CrowdLabels.from_arrays(*answers.T, type="ordered")
    known = dict(truth.tolist())
    return labels, np.array([known[task] for task in labels.tasks.tolist()])


def real_sets() -> list[Row]:
    folder = data_folder()
    if folder is None:
        return [Row("ordered classes in real data", "", "no data: set WISECROWD_DATA")]
    rows = []
    for name in ("valence5", "truthfulness_s6"):
        labels, truth = read(folder / name)
        shares = np.bincount(np.searchsorted(labels.classes, truth), minlength=labels.n_classes)
        methods = METHODS | {
            "OrdinalLatent with the true shares": lambda shares=shares: OrdinalLatent(
                class_prior=shares / shares.sum()
            )
        }
        for title, make in methods.items():
            found = scores(truth, make().fit(labels).labels_, labels.classes)
            bar = BARS.get(name, {}).get(title)
            met = None
            if bar is not None:
                met = bool(found[0] >= bar[0] and found[1] <= bar[1] and found[2] >= bar[2])
            what = f"{name}, {title}: accuracy / MAE / kappa"
            shown = "" if bar is None else f"≥ {bar[0]} / ≤ {bar[1]} / ≥ {bar[2]}"
            rows.append(Row(what, shown, text(found), met))
    return rows


def simulated() -> list[Row]:
    rows = []
    for name, (n_tasks, n_workers, per_task, cuts) in CROWDS.items():
        found: dict[str, list[np.ndarray]] = {}
        recovered = []
        for seed in range(N_CROWDS):
            made = simulate.graded_responses(
                n_tasks, n_workers, simulate.PerTask(per_task), n_classes=len(cuts) + 1, cuts=cuts,
                random_state=seed,
            )  # fmt: skip
            for title, make in METHODS.items():
                fitted = make().fit(made.labels)
                found.setdefault(title, []).append(
                    scores(made.truth, fitted.labels_, made.labels.classes)
                )
                if title == "OrdinalLatent":
                    recovered.append(np.corrcoef(fitted.bias_, made.bias)[0, 1])
        for title, values in found.items():
            mean = np.mean(values, axis=0)
            barred = title == "OrdinalLatent" and cuts == CUTS
            bar, met = ("≥ 0.73", bool(mean[0] >= 0.73)) if barred else ("", None)
            rows.append(Row(f"{name}, {title}: accuracy / MAE / kappa", bar, text(mean), met))
        bar, met = ("≥ 0.93", bool(np.mean(recovered) >= 0.93)) if cuts == CUTS else ("", None)
        what = f"{name}, OrdinalLatent: correlation of biases"
        rows.append(Row(what, bar, f"{np.mean(recovered):.3f}", met))
    return rows


def run() -> list[Row]:
    print("... ordered classes", file=sys.stderr, flush=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", WisecrowdWarning)
        return [*real_sets(), *simulated()]


if __name__ == "__main__":
    print("\n".join(row.line() for row in run()))
