"""Learning from real crowds without gold; `epochs` says what an epoch costs.

Nothing is chosen by true classes: every method runs with its defaults, or keeps the last epoch, and
the true classes only score it. ``python -m benchmarks.accuracy.learning calibration 2`` measures
the calibration error of the training tasks' posteriors, before and after calibration, two seeds.
"""

from __future__ import annotations

import subprocess
import sys
import warnings
from collections.abc import Callable, Iterable

import numpy as np

from benchmarks.accuracy.real_data import data_folder
from benchmarks.rows import Row
from benchmarks.speed.memory import PEAK
from wisecrowd import learning
from wisecrowd.io.tables import read, read_truth
from wisecrowd.learning.training.held_out_scoring import aligned, held_out_score
from wisecrowd.metrics import expected_calibration_error

Make = Callable[..., learning.TwoStage]


def with_options(name: str, **options) -> Make:
    return lambda **others: getattr(learning, name)(**options, **others)


SOFT_VOTE = "soft majority vote"
METHODS: dict[str, Make] = {
    "hard majority vote": with_options("TwoStage", labels="hard"),
    SOFT_VOTE: with_options("TwoStage"),
    "Dawid-Skene, hard": with_options("TwoStage", aggregator="dawid-skene", labels="hard"),
    "Dawid-Skene, soft": with_options("TwoStage", aggregator="dawid-skene"),
    "Raykar": with_options("Raykar"),
    "AggNet": with_options("AggNet"),
    "MBEM": with_options("MBEM"),
    "CrowdLayer": with_options("CrowdLayer"),
    "CCEM": with_options("CCEM"),
    "TraceRegularized": with_options("TraceRegularized"),
    "GeoCrowdNet F": with_options("GeoCrowdNet"),
    "GeoCrowdNet W": with_options("GeoCrowdNet", regularize="W"),
    "COINNet": with_options("COINNet"),
    "SingleConfusion": with_options("SingleConfusion"),
    "SoftBootstrap": with_options("SoftBootstrap"),
    "DoctorNet": with_options("DoctorNet"),
    "WeightedDoctorNet": with_options("WeightedDoctorNet"),
    "CoNAL": with_options("CoNAL"),
    "UnionNet": with_options("UnionNet"),
    "InstanceConfusion": with_options("InstanceConfusion"),
    "MaxMIG": with_options("MaxMIG"),
    "DeepMF": with_options("DeepMF"),
    "BayesDGC": with_options("BayesDGC"),
}
# An untuned prototype of two seeds on the same features of LabelMe: last epoch, and the epoch
# chosen by true classes, which nothing here may use.
PROTOTYPE = {
    "hard majority vote": (0.777, 0.830),
    SOFT_VOTE: (0.816, 0.841),
    "Dawid-Skene, hard": (0.814, 0.851),
    "AggNet": (0.842, 0.858),
    "MBEM": (0.794, 0.790),
    "CrowdLayer": (0.837, 0.854),
    "CCEM": (0.809, 0.847),
    "TraceRegularized": (0.811, 0.847),
    "GeoCrowdNet F": (0.815, 0.848),
    "GeoCrowdNet W": (0.813, 0.848),
    "COINNet": (0.817, 0.847),
    "DoctorNet": (0.846, 0.848),
    "CoNAL": (0.819, 0.849),
}


# ------------------------------------------------------------------------------------ accuracy


def read_set(name: str):
    """Return features, labels, and features and true classes of the test tasks."""
    folder = data_folder() / name
    X, X_test = (np.load(folder / f"{file}.npy") for file in ("features", "features_test"))
    y_test = np.array(read_truth(folder / "truth_test.csv")["label"].to_pylist())
    return X, read(folder / "answers.csv"), X_test, y_test


def accuracies(name: str, data, seeds: Iterable[int]) -> dict[str, np.ndarray]:
    """Return the test accuracy with defaults and of the last epoch, one number per seed."""
    X, labels, X_test, y_test = data
    choices: dict[str, dict[str, str]] = {"default": {}}
    if name != "Raykar":  # it trains to convergence: there is no epoch to choose
        choices["last"] = {"selection": "last"}
    found = {
        which: np.array(
            [
                METHODS[name](random_state=seed, **options).fit(X, labels).score(X_test, y_test)
                for seed in seeds
            ]
        )
        for which, options in choices.items()
    }
    return {"last": found["default"], **found}


def set_table(name: str, n_seeds: int) -> tuple[dict[str, dict[str, np.ndarray]], str]:
    """Print every method's accuracy; return them, and which method the crowd would choose."""
    data = read_set(name)
    X, labels = aligned(data[0], data[1], None)
    found, likelihood = {}, {}
    print(f"\n{name}: test accuracy, mean ± deviation of {n_seeds} seeds, no gold anywhere\n")
    print("| method | last epoch | defaults | held-out likelihood | prototype |")
    print("|---|---|---|---|---|")
    for method, make in METHODS.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found[method] = accuracies(method, data, range(n_seeds))
            likelihood[method] = held_out_score(make(), X, labels).mean
        last, default = (spread(found[method][which]) for which in ("last", "default"))
        known = PROTOTYPE.get(method) if name == "labelme" else None
        beside = "–" if known is None else f"{known[0]:.3f}, {known[1]:.3f}"
        print(
            f"| {method} | {last} | {default} | {likelihood[method]:.4f} | {beside} |", flush=True
        )
    return found, max(likelihood, key=likelihood.__getitem__)


def spread(values: np.ndarray) -> str:
    return f"{values.mean():.3f} ± {values.std():.3f}"


def accuracy_rows(n_seeds: int) -> list[Row]:
    rows = []
    found, chosen = set_table("labelme", n_seeds)
    means = {name: values["default"].mean() for name, values in found.items()}
    best = max(means, key=means.__getitem__)
    what = f"LabelMe, defaults, {n_seeds} seeds"
    rows.append(Row(f"{what}: best method", "≥ 0.86", f"{means[best]:.3f} ({best})",
                    bool(means[best] >= 0.86)))  # fmt: skip
    above = [name for name, mean in means.items() if mean >= 0.86]
    rows.append(Row(f"{what}: methods that reach 0.86", "", ", ".join(above) or "none"))
    rows.append(Row(f"{what}: the method chosen by held-out likelihood as well", "",
                    f"{means[chosen]:.3f} ({chosen})"))  # fmt: skip
    found, chosen = set_table("music_genre", n_seeds)
    means = {name: values["default"].mean() for name, values in found.items()}
    best = max(means, key=means.__getitem__)
    gain, honest = (100 * (means[name] - means[SOFT_VOTE]) for name in (best, chosen))
    what = f"Music, defaults, {n_seeds} seeds"
    rows.append(Row(f"{what}: best method over soft majority vote", "≥ 2 points",
                    f"{gain:+.1f} points: {means[best]:.3f} ({best}) over {means[SOFT_VOTE]:.3f}",
                    bool(gain >= 2)))  # fmt: skip
    rows.append(Row(f"{what}: the method chosen by held-out likelihood as well", "",
                    f"{honest:+.1f} points: {means[chosen]:.3f} ({chosen})"))  # fmt: skip
    return rows


# --------------------------------------------------------------------------------- calibration

# Data sets, and how many of their tasks: the first two were looked at, the others judge.
CALIBRATED = {
    "labelme": None, "compas_dressel_race": None,
    "music_genre": None, "sentiment_polarity": 2500, "cifar10n": 3000,
}  # fmt: skip
SURE = {"before": {"calibrate": False}, "after": {}}


def training_errors(name: str, most: int | None, seeds: int) -> dict[str, dict[str, float]]:
    """Return the calibration error of each learner's training posteriors, before and after."""
    X, labels, _, _ = read_set(name)
    X, labels = aligned(X, labels, None)
    truth = read_truth(data_folder() / name / "truth.csv")
    rows = np.argsort([int(task) for task in truth.column(0).to_pylist()])[:most]
    classes = np.array(truth["label"].to_pylist())[rows]
    X, labels = X[: len(rows)], labels[np.arange(len(rows))]
    found: dict[str, dict[str, float]] = {}
    for method, make in METHODS.items():
        if method == "Raykar":
            continue  # no epochs, and nothing is held out
        found[method] = {}
        for when, options in SURE.items():
            fits = [make(random_state=seed, **options).fit(X, labels) for seed in range(seeds)]
            errors = [
                expected_calibration_error(classes, fit.probas_, classes=fit.classes_)
                for fit in fits
            ]
            found[method][when] = float(np.mean(errors))
        print(name, method, found[method], file=sys.stderr, flush=True)
    return found


def calibration_rows(n_seeds: int) -> list[Row]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        sets = {name: training_errors(name, most, n_seeds) for name, most in CALIBRATED.items()}
    rows = []
    for method in next(iter(sets.values())):
        before, after = ([errors[method][when] for errors in sets.values()] for when in SURE)
        median = float(np.median(after))
        each = ", ".join(f"{name} {error:.3f}" for name, error in zip(sets, after, strict=True))
        measured = f"{median:.3f} (before {np.median(before):.3f}): {each}"
        rows.append(Row(f"calibration error of training tasks, median, {method}", "≤ 0.12",
                        measured, median <= 0.12))  # fmt: skip
    return rows


# ------------------------------------------------------------------------------- memory and rate

BATCH = 512

SCRIPT = f"""
import sys, time
import torch
from benchmarks.accuracy.learning import BATCH, METHODS, read_set
from wisecrowd.inference.monitor import reporting
torch.set_num_threads(1)
make = METHODS[sys.argv[1]]
X, labels, _, _ = read_set("cifar10n")
make(epochs=1, batch_size=64).fit(X[:200], labels[range(200)])  # imported before the baseline
{PEAK}
before, _ = resident()
marks = []
with reporting(lambda _: marks.append(time.process_time())):
    make(epochs=5, batch_size=BATCH).fit(X, labels)
_, peak = resident()
fastest = min(b - a for a, b in zip(marks, marks[1:]))
print(labels.n_annotations / fastest, (peak - before) / 2**30)
"""


def cifar_rows() -> list[Row]:
    """Measure speed and memory on 747 workers, each method in a process of its own."""
    rows = []
    for name in ("CCEM", "CrowdLayer", "TraceRegularized", "GeoCrowdNet F", "AggNet", "COINNet"):
        command = [sys.executable, "-W", "ignore", "-c", SCRIPT, name]
        result = subprocess.run(command, capture_output=True, text=True, check=True)
        rate, memory = map(float, result.stdout.split())
        what = f"cifar10n, 747 workers, 150 000 labels, MLP 128, batch {BATCH}, {name}"
        rows.append(Row(f"{what}: labels per second of CPU", "≥ 100 000", f"{rate:,.0f}",
                        rate >= 1e5))  # fmt: skip
        rows.append(Row(f"{what}: memory over the features", "≤ 1 GB", f"{memory:.2f} GB",
                        memory <= 1))  # fmt: skip
    return rows


def run(n_seeds: int = 10, parts: tuple[str, ...] = ()) -> list[Row]:
    import torch

    torch.set_num_threads(1)
    rows = []
    if data_folder() is None:
        return [*rows, Row("learning from real crowds", "", "no data: set WISECROWD_DATA")]
    if not parts or "cifar" in parts:
        rows += cifar_rows()
    if not parts or "calibration" in parts:
        rows += calibration_rows(n_seeds)
    if not parts or "accuracy" in parts:
        rows += accuracy_rows(n_seeds)
    return rows


if __name__ == "__main__":
    seeds = [int(x) for x in sys.argv[1:] if x.isdigit()]
    names = tuple(x for x in sys.argv[1:] if not x.isdigit())
    print("\n".join(row.line() for row in run(*seeds, parts=names)))
