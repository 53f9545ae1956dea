"""The default learner without gold: real crowds, and five feature sets × five populations.

Everything runs with its defaults; true classes only score it. Rules and candidates of the learner
were chosen on labelme, compas_dressel_race and simulations on digits and covtype. The other sets
were not looked at.

python -m benchmarks.accuracy.learner_auto           everything
python -m benchmarks.accuracy.learner_auto real      the real crowds alone
python -m benchmarks.accuracy.learner_auto simulated the table of simulated crowds alone
"""

from __future__ import annotations

import gzip
import sys
import time
import warnings
from collections.abc import Iterator

import numpy as np

from benchmarks.accuracy.learning import read_set
from benchmarks.accuracy.real_data import data_folder
from benchmarks.rows import Row
from wisecrowd import learning, metrics, simulate
from wisecrowd.core.exceptions import WisecrowdError
from wisecrowd.core.registry import methods
from wisecrowd.io.tables import read_truth
from wisecrowd.learning.training.rows_of_features import as_targets

# Set → number of tasks (None: all), bar of the test accuracy.
REAL: dict[str, tuple[int | None, float]] = {
    "labelme": (None, 0.900),
    "music_genre": (None, 0.72),
    "sentiment_polarity": (2500, 0.755),
    "cifar10n": (3000, 0.828),
    "compas_dressel_race": (None, 0.66),
}
N_TASKS, N_TEST, PER_TASK, N_WORKERS = 300, 1500, 3, 30
SETS = ("digits", "covtype", "shuttle", "mnist", "fashion-like")
POPULATIONS = {
    "coins": (lambda: simulate.OneCoinWorkers(4, 2), None),
    "hammers and spammers": (lambda: simulate.HammerSpammers(0.4), None),
    "confused": (lambda: simulate.DirichletWorkers(10, 1), None),
    "diverse": (lambda: simulate.DiverseWorkers(), None),
    "hard tasks": (lambda: simulate.OneCoinWorkers(8, 2), simulate.BetaDifficulty(1, 1.5)),
}


# ---------------------------------------------------------------------------------- real crowds


def real_rows() -> list[Row]:
    rows, errors = [], []
    for name, (n_tasks, bar) in REAL.items():
        X, labels, X_test, y_test = read_set(name)
        labels = as_targets(labels, len(X), None)
        known = read_truth(data_folder() / name / "truth.csv")
        ids, classes = (known[column].to_pylist() for column in ("task", "label"))
        truth = dict(zip(map(str, ids), classes, strict=True))
        if n_tasks is not None:
            some = np.sort(np.random.default_rng(0).permutation(len(X))[:n_tasks])
            X, labels = X[some], labels[some]
        start = time.process_time()
        model = learning.Auto().fit(X, labels, tasks=labels.tasks)
        seconds = time.process_time() - start
        test = float(np.mean(model.predict(X_test) == y_test))
        scored = [i for i, task in enumerate(model.tasks_.tolist()) if str(task) in truth]
        wanted = np.array([truth[str(task)] for task in model.tasks_[scored].tolist()])
        train = float(np.mean(model.labels_[scored] == wanted))
        errors.append(
            metrics.expected_calibration_error(
                wanted, model.probas_[scored], classes=model.classes_
            )
        )
        what = f"{name}, {len(X)} tasks: test accuracy of auto ({model.chosen_}, {seconds:.0f} s)"
        rows.append(Row(what, f"≥ {bar}", f"{test:.4f}", test >= bar))
        bar_train, met = ("≥ 0.895", train >= 0.895) if name == "labelme" else ("", None)
        rows.append(Row(f"{name}: labels of the training tasks", bar_train, f"{train:.4f}", met))
        rows.append(Row(f"{name}: calibration error of these", "", f"{errors[-1]:.3f}"))
        print("\n".join(row.line() for row in rows[-3:]), f"\n{model.reason_}", flush=True)
    median = float(np.median(errors))
    rows.append(Row("calibration error of training tasks, median over real crowds", "≤ 0.08",
                    f"{median:.3f}", median <= 0.08))  # fmt: skip
    return rows


# ----------------------------------------------------------------------------- simulated crowds


def features(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return features and classes of N_TASKS training rows and N_TEST test rows."""
    rng = np.random.default_rng(0)
    folder = data_folder()
    if name == "digits":
        from sklearn.datasets import load_digits

        X, y = load_digits(return_X_y=True)
    elif name == "covtype":
        data = np.load(folder / name / "covtype.npz")
        binary = np.unpackbits(data["bin"], axis=1)[:, :44]
        X, y = np.hstack([data["num"], binary]), data["y"]
    elif name == "shuttle":
        data = np.load(folder / name / "shuttle.npz")
        X, y = data["x_train"], data["y_train"]
    elif name == "mnist":
        X = _images(folder / name / "train-images-idx3-ubyte.gz", 16).reshape(-1, 14, 2, 14, 2)
        X = X.mean(axis=(2, 4)).reshape(len(X), -1)
        y = _images(folder / name / "train-labels-idx1-ubyte.gz", 8)
    else:
        X, y = fashion_like(rng)
    rows = rng.permutation(len(y))[: N_TASKS + N_TEST]
    return X[rows].astype(np.float64), y[rows].astype(np.int64)


def _images(path, header: int) -> np.ndarray:
    with gzip.open(path) as file:
        data = np.frombuffer(file.read(), np.uint8)[header:]
    return data.reshape(-1, 28, 28) if header == 16 else data


def fashion_like(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return 64 features of ten classes: three kinds of each, and four classes that overlap."""
    y = rng.integers(0, 10, 4000)
    centres = rng.normal(size=(10, 3, 64))
    centres[1:4] = centres[0] + 0.5 * rng.normal(size=(3, 3, 64))  # shirt, coat, pullover, dress
    X = centres[y, rng.integers(0, 3, len(y))] + 1.2 * rng.normal(size=(len(y), 64))
    return np.tanh(X), y


def crowds() -> Iterator[tuple[str, str, tuple]]:
    """Yield set, population, and features, labels, test features and test classes."""
    for name in SETS:
        X, y = features(name)
        classes = np.unique(y)
        for number, (population, (make, difficulty)) in enumerate(POPULATIONS.items()):
            made = simulate.crowd(
                None, N_WORKERS * make(), simulate.PerTask(PER_TASK), truth=y[:N_TASKS],
                classes=classes, difficulty=difficulty, random_state=number,
            )  # fmt: skip
            yield name, population, (X[:N_TASKS], made.labels, X[N_TASKS:], y[N_TASKS:])


def learners() -> list[str]:
    return [one.cls for one in methods("learning", type="labels") if one.cls != "Auto"]


def accuracy(name: str, data: tuple) -> tuple[float, object]:
    """Return the test accuracy, NaN if the method refuses the data, and the model."""
    X, labels, X_test, y_test = data
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            model = getattr(learning, name)().fit(X, labels)
        except WisecrowdError:
            return float("nan"), None
        return float(np.mean(model.predict(X_test) == y_test)), model


def simulated_rows() -> list[Row]:
    rows, near, cells = [], 0, 0
    print("| features | workers | auto | chosen | best learner | best | gap |")
    print("|---|---|---|---|---|---|---|")
    for name, population, data in crowds():
        found = {other: accuracy(other, data)[0] for other in learners()}
        own, model = accuracy("Auto", data)
        best = max(found, key=lambda other: np.nan_to_num(found[other]))
        gap = found[best] - own
        near, cells = near + (gap <= 0.01), cells + 1
        print(f"| {name} | {population} | {own:.3f} | {model.chosen_} | {best} | "
              f"{found[best]:.3f} | {100 * gap:+.1f} |", flush=True)  # fmt: skip
    what = f"auto best or within 1 point of {len(learners())} learners, {N_TASKS} tasks, seed 0"
    rows.append(Row(what, "≥ 20 of 25", f"{near} of {cells}", near >= 20))
    return rows


def run(parts: tuple[str, ...] = ()) -> list[Row]:
    import torch

    torch.set_num_threads(1)
    if data_folder() is None:
        return [Row("the default learner", "", "no data: set WISECROWD_DATA")]
    rows = [] if parts and "real" not in parts else real_rows()
    return rows if parts and "simulated" not in parts else [*rows, *simulated_rows()]


if __name__ == "__main__":
    print("\n".join(row.line() for row in run(tuple(sys.argv[1:]))))
