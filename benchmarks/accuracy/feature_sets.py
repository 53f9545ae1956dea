"""Features with a crowd and test classes: simulated workers on digits and covtype, and LabelMe.

Covtype comes with its own class shares, of which two are five tasks in six, and with equal ones.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from benchmarks.accuracy.learning import read_set
from benchmarks.accuracy.real_data import data_folder
from wisecrowd import CrowdLabels, simulate
from wisecrowd.learning.training.held_out_scoring import aligned

SETS = ("digits", "labelme", "covtype-equal", "covtype")


class FeatureSet(NamedTuple):
    X: np.ndarray
    labels: CrowdLabels
    X_test: np.ndarray
    y_test: np.ndarray


def names() -> tuple[str, ...]:
    """Return the sets that are there: digits always, the others with WISECROWD_DATA."""
    return ("digits",) if data_folder() is None else SETS


def load(name: str, seed: int) -> FeatureSet:
    """Return a set; simulated ones have other tasks and workers for every seed."""
    if name != "labelme":
        split = _digits(seed) if name == "digits" else _covtype(seed, name == "covtype-equal")
        X, y, X_test, y_test = split
        workers = 12 * simulate.OneCoinWorkers(4, 2) + 4 * simulate.Spammers()
        graph = simulate.PerTask(3)
        labels = simulate.crowd(None, workers, graph, truth=y, random_state=seed).labels
        return FeatureSet(X, labels, X_test, y_test)
    X, labels, X_test, y_test = read_set(name)
    X, labels = aligned(X, labels, None)
    return FeatureSet(np.asarray(X, dtype=float), labels, X_test, y_test)


def _digits(seed: int):
    from sklearn.datasets import load_digits

    X, y = load_digits(return_X_y=True)
    order = np.random.default_rng(seed).permutation(len(X))
    X, y = X[order], y[order]
    return X[:1200], y[:1200], X[1200:], y[1200:]


def _covtype(seed: int, equal: bool, n_train: int = 2000, n_test: int = 3000):
    stored = np.load(data_folder() / "covtype" / "covtype.npz")
    rng = np.random.default_rng(seed)
    rows = rng.permutation(len(stored["y"]))
    if equal:
        each, classes = (n_train + n_test) // 7, stored["y"][rows]
        rows = np.concatenate([rows[classes == k][:each] for k in np.unique(classes)])
        rows = rng.permutation(rows)
    rows = rows[: n_train + n_test]
    bits = np.unpackbits(stored["bin"][rows], axis=1)[:, : int(stored["n_bin"])]
    X, y = np.hstack([stored["num"][rows].astype(float), bits]), stored["y"][rows]
    return X[:n_train], y[:n_train], X[n_train:], y[n_train:]


def balance_of(name: str) -> dict[str, float]:
    """Return parameters of CrowdKernel: the classes of covtype are more skewed than the labels."""
    return {"balance": 0.0} if name == "covtype" else {}
