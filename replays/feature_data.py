"""Features, true classes and simulated workers that the replays with features share."""

from __future__ import annotations

import gzip
from dataclasses import dataclass

import numpy as np
from benchmarks.accuracy.real_data import data_folder

from wisecrowd import CrowdLabels, simulate
from wisecrowd.io.tables import read_truth

N_CLASSES = 10


@dataclass(frozen=True, eq=False)
class Problem:
    """Features and true classes to train on and to test on."""

    X: np.ndarray
    truth: np.ndarray
    X_test: np.ndarray
    truth_test: np.ndarray


def folder(name: str):
    found = data_folder()
    if found is None:
        raise SystemExit("No data: set WISECROWD_DATA to the folder of the real data sets.")
    return found / name


def _idx(path) -> np.ndarray:
    with gzip.open(path) as file:
        raw = file.read()
    n_axes = raw[3]
    shape = np.frombuffer(raw, ">i4", n_axes, 4)
    return np.frombuffer(raw, np.uint8, offset=4 + 4 * n_axes).reshape(shape)


def mnist(n_train: int, n_test: int, *, small: bool) -> Problem:
    """Return the first images; small ones are flat means of 2 × 2 pixels."""
    train = _mnist_part("train", slice(n_train), small=small)
    return Problem(*train, *_mnist_part("t10k", slice(n_test), small=small))


def mnist_after(n_train: int, *, small: bool) -> tuple[np.ndarray, np.ndarray]:
    """Return the training images after the first, and their classes: lessons for machines."""
    return _mnist_part("train", slice(n_train, None), small=small)


def _mnist_part(name: str, rows: slice, *, small: bool) -> tuple[np.ndarray, np.ndarray]:
    images = _idx(folder("mnist") / f"{name}-images-idx3-ubyte.gz")[rows] / np.float32(255)
    classes = _idx(folder("mnist") / f"{name}-labels-idx1-ubyte.gz")[rows].astype(np.int64)
    if small:
        return images.reshape(-1, 14, 2, 14, 2).mean(axis=(2, 4)).reshape(len(images), -1), classes
    return images[:, None], classes


def cifar(n_train: int) -> Problem:
    """Return features of the first CIFAR-10 images, by a network trained on other images."""
    where = folder("cifar10n")
    truth, truth_test = (
        np.array(read_truth(where / f"{name}.csv")["label"].to_pylist(), dtype=np.int64)
        for name in ("truth", "truth_test")
    )
    X, X_test = (
        np.load(where / f"{name}.npy").astype(np.float32) for name in ("features", "features_test")
    )
    return Problem(X[:n_train], truth[:n_train], X_test, truth_test)


# ------------------------------------------------------------------------------------- the workers


def flippers(skill: float, seed: int, n_workers: int = 5) -> simulate.Crowd:
    return n_workers * simulate.PairwiseFlippers(skill)


def hammer_spammers(skill: float, seed: int, n_workers: int = 5) -> simulate.Crowd:
    """Return workers who know with a probability of about ``skill`` and else guess."""
    rng = np.random.default_rng(seed)
    workers = []
    for p in np.clip(skill + 0.01 * rng.standard_normal(n_workers), 0.0, 1.0):
        table = p * np.eye(N_CLASSES) + (1 - p) / N_CLASSES
        workers.append(1 * simulate.FixedConfusion(table))
    return sum(workers[1:], workers[0])


def label(problem: Problem, workers, per_task: int | None, seed: int) -> simulate.SimulatedCrowd:
    """Let workers label the training tasks: all of them, or so many per task."""
    graph = simulate.Dense() if per_task is None else simulate.PerTask(per_task)
    return simulate.crowd(None, workers, graph, truth=problem.truth, random_state=seed)


def machine_labels(
    problem: Problem,
    lessons: tuple[np.ndarray, np.ndarray],
    n_workers: int,
    share: float,
    seed: int,
):
    """Let classifiers of 15 to 85% accuracy label a share of the training tasks each.

    Each is a logistic regression of 300 lessons, images that are neither training nor test tasks,
    and sees a few of the pixels: the more it sees, the better it is. Returns the labels and the
    classifiers' accuracies.
    """
    from sklearn.linear_model import LogisticRegression

    rng = np.random.default_rng(seed)
    task, worker, given, accuracy = [], [], [], []
    for j, target in enumerate(np.linspace(0.15, 0.85, n_workers)):
        best = None
        pixels = rng.permutation(np.flatnonzero(problem.X.std(axis=0) > 0.05))
        for n_pixels in (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96):
            seen, rows = pixels[:n_pixels], rng.choice(len(lessons[0]), 300, replace=False)
            model = LogisticRegression(max_iter=200)
            model.fit(lessons[0][rows][:, seen], lessons[1][rows])
            said = model.predict(problem.X[:, seen])
            right = float(np.mean(said == problem.truth))
            if best is None or abs(right - target) < abs(best[0] - target):
                best = right, said
        labelled = np.flatnonzero(rng.random(len(problem.X)) < share)
        task.append(labelled)
        worker.append(np.full(len(labelled), j))
        given.append(best[1][labelled])
        accuracy.append(best[0])
    columns = (np.concatenate(part) for part in (task, worker, given))
    labels = CrowdLabels.from_arrays(*columns, classes=np.arange(N_CLASSES))
    return labels, np.array(accuracy)


def true_confusion(labels: CrowdLabels, truth: np.ndarray) -> np.ndarray:
    """Return (J, K, K) shares of each worker's labels by true class; NaN rows where none is."""
    counts = np.zeros((labels.n_workers, labels.n_classes, labels.n_classes))
    np.add.at(counts, (labels.worker, truth[labels.task], labels.label), 1.0)
    with np.errstate(invalid="ignore"):
        return counts / counts.sum(axis=2, keepdims=True)
