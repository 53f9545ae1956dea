"""What learners cost: an epoch against one on clean labels, setup, and whole fits.

python -m benchmarks.speed.epochs            everything on cifar10n, 747 workers
python -m benchmarks.speed.epochs CCEM MBEM  epochs of some learners only
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.accuracy.real_data import data_folder
from benchmarks.rows import Row, cpu_seconds, random_crowd
from wisecrowd import CrowdLabels, learning
from wisecrowd.engines.threads import set_threads
from wisecrowd.inference.monitor import Progress, reporting
from wisecrowd.io.tables import read, read_truth

BATCH, ROUNDS = 512, 5
N_TASKS, N_FEATURES = 50_000, 256
# The epochs after a warm-up are the dear ones.
LEARNERS: dict[str, tuple[str, dict[str, Any]]] = {
    "CCEM": ("CCEM", {}),
    "TraceRegularized": ("TraceRegularized", {}),
    "GeoCrowdNet F": ("GeoCrowdNet", {}),
    "GeoCrowdNet W": ("GeoCrowdNet", {"regularize": "W"}),
    "CrowdLayer": ("CrowdLayer", {}),
    "AggNet": ("AggNet", {}),
    "soft majority vote": ("TwoStage", {}),
    "SingleConfusion": ("SingleConfusion", {}),
    "SoftBootstrap": ("SoftBootstrap", {}),
    "MBEM": ("MBEM", {}),
    "UnionNet": ("UnionNet", {}),
    "CoNAL": ("CoNAL", {}),
    "DoctorNet": ("DoctorNet", {}),
    "WeightedDoctorNet": ("WeightedDoctorNet", {}),
    "MaxMIG": ("MaxMIG", {}),
    "BayesDGC": ("BayesDGC", {}),
    "DeepMF": ("DeepMF", {}),
    "DeepBP": ("DeepBP", {}),
    "COINNet": ("COINNet", {}),
    "InstanceConfusion": ("InstanceConfusion", {"warm_up": 0}),
    "InstanceConfusion, anchors": ("InstanceConfusion", {"variant": "anchor", "warm_up": 1}),
}
TIGHT = ("CCEM", "TraceRegularized", "GeoCrowdNet F", "GeoCrowdNet W", "CrowdLayer", "AggNet")

Data = tuple[np.ndarray, CrowdLabels, np.ndarray]


def cifar() -> Data:
    """Return features, labels and true classes of cifar10n, or of a crowd of the same size."""
    folder = data_folder()
    if folder is None:
        labels, truth = random_crowd(3 * N_TASKS, 10, 747, per_task=3)
        X = np.random.default_rng(0).normal(size=(N_TASKS, N_FEATURES))
        return X.astype(np.float32), labels, truth.astype(np.int64)
    folder = folder / "cifar10n"
    X = np.load(folder / "features.npy").astype(np.float32)
    labels = read(folder / "answers.csv")
    found = read_truth(folder / "truth.csv")
    classes = dict(zip(found["task"].to_pylist(), found["label"].to_pylist(), strict=True))
    codes = {name: code for code, name in enumerate(sorted(set(classes.values())))}
    truth = np.array([codes[classes[task]] for task in labels.tasks.tolist()])
    return X, labels, truth


def clean_epochs(X: np.ndarray, truth: np.ndarray) -> Callable[[], float]:
    """Return what trains the same backbone on clean labels for an epoch and says its CPU time."""
    import torch

    from wisecrowd.nn import MLP

    network, x, y = MLP(X.shape[1], 10), torch.from_numpy(X), torch.from_numpy(truth)
    optimizer = torch.optim.Adam(network.parameters(), lr=1e-3)
    cross_entropy = torch.nn.CrossEntropyLoss()

    def epoch() -> float:
        start = time.process_time()
        network.train()
        for rows in torch.split(torch.randperm(len(x)), BATCH):
            loss = cross_entropy(network(x[rows]), y[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            loss.item()
        return time.process_time() - start

    return epoch


def costs(name: str, data: Data, clean: Callable[[], float]) -> tuple[float, float, float]:
    """Return the median CPU seconds of an epoch and of a clean one, and of setup and finish.

    The two take turns, so that whatever else the machine does disturbs both alike.
    """
    X, labels, _ = data
    method, options = LEARNERS[name]
    own, others, mark = [], [], [0.0]

    def after_epoch(progress: Progress) -> None:
        if progress.max_iter != ROUNDS + 1:
            return  # an iteration of an E-step
        own.append(time.process_time() - mark[0])
        others.append(clean())
        mark[0] = time.process_time()

    model = getattr(learning, method)(
        epochs=ROUNDS + 1, batch_size=BATCH, selection="last", **options
    )
    start = mark[0] = time.process_time()
    with warnings.catch_warnings(), reporting(after_epoch):
        warnings.simplefilter("ignore")
        model.fit(X, labels)
    total = time.process_time() - start
    # The first epoch includes what comes before.
    epoch = float(np.median(own[1:]))
    return epoch, float(np.median(others[1:])), max(0.0, total - sum(others) - epoch * len(own))


def epoch_rows(names: tuple[str, ...] = ()) -> list[Row]:
    """Print what every learner costs, as a table for the documentation."""
    data = cifar()
    clean = clean_epochs(data[0], data[2])
    clean()
    rows = []
    print("| learner | an epoch, CPU s | against clean labels | setup and finish, CPU s |")
    print("|---|---|---|---|")
    for name in names or LEARNERS:
        own, plain, rest = costs(name, data, clean)
        ratio = own / plain
        print(f"| {name} | {own:.2f} | {ratio:.2f} × | {rest:.1f} |", flush=True)
        bar = 1.25 if name in TIGHT else 5.0
        what = f"cifar10n, batch {BATCH}: an epoch of {name} against one on clean labels"
        rows.append(Row(what, f"≤ {bar:g} ×", f"{ratio:.2f} × ({own:.2f} s)", ratio <= bar))
    return rows


def fit_rows() -> list[Row]:
    """Measure whole fits with their defaults."""
    X, labels, _ = cifar()
    few, narrow = labels[np.arange(20_000)], np.ascontiguousarray(X[:, :64])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        kernel = cpu_seconds(lambda: learning.CrowdKernel().fit(X[:20_000], few))
        network = cpu_seconds(lambda: learning.CCEM().fit(narrow, labels)) / 60
    return [
        Row("CrowdKernel, 20 000 tasks of cifar10n, 256 features", "≤ 20 s CPU", f"{kernel:.1f} s",
            kernel <= 20),
        Row("CCEM with defaults, 50 000 tasks, 64 features", "< 30 min CPU", f"{network:.1f} min",
            network < 30),
    ]  # fmt: skip


def run(names: tuple[str, ...] = ()) -> list[Row]:
    import torch

    torch.set_num_threads(1)
    set_threads(1)
    rows = epoch_rows(names)
    return rows if names else [*rows, *fit_rows()]


if __name__ == "__main__":
    print("\n".join(row.line() for row in run(tuple(sys.argv[1:]))))
