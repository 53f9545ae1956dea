"""Training on two processes: the weights of one process, and a process that dies or hangs.

All processes run on this machine and connect over loopback. Each is a new interpreter that imports
torch, so that this takes minutes.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.rows import Row

SEED, TASKS, EPOCHS = 0, 300, 5
SHORT = 6.0  # seconds of the timeout here; two minutes by default
CLOSE = 1e-5  # largest difference of a weight
TRAIN = ["-m", "wisecrowd", "train", "x.npy", "labels.csv", "-m", "agg-net", "-p", "module=linear"]


def make_crowd(folder: Path) -> None:
    """Write 300 tasks of three classes, with three labels each, and their features."""
    rng = np.random.default_rng(SEED)
    truth = rng.integers(3, size=TASKS)
    X = np.eye(3)[truth] + 0.5 * rng.normal(size=(TASKS, 3))
    np.save(folder / "x.npy", X.astype(np.float32))
    lines = ["task,worker,label"]
    for task, right in enumerate(truth):
        for worker in rng.choice(6, 3, replace=False):
            label = right if rng.random() < 0.5 + 0.08 * worker else rng.integers(3)
            lines.append(f"{task},w{worker},{label}")
    (folder / "labels.csv").write_text("\n".join(lines) + "\n")


def start(folder: Path, command: list[str], size: int = 2) -> list[subprocess.Popen[str]]:
    """Start the processes as torchrun does."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    shared = {
        **os.environ, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port),
        "WORLD_SIZE": str(size), "GLOO_SOCKET_IFNAME": "lo", "OMP_NUM_THREADS": "1",
        "PYTHONPATH": os.pathsep.join([*filter(None, sys.path), os.getcwd()]),
    }  # fmt: skip
    return [
        subprocess.Popen(
            [sys.executable, *command], cwd=folder, env={**shared, "RANK": str(rank)},
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )
        for rank in range(size)
    ]  # fmt: skip


def weights(folder: Path) -> dict[str, Any]:
    """Return the weights of the network of a saved model."""
    import wisecrowd as wc

    model: Any = wc.load(folder)
    return {name: value.double().numpy() for name, value in model._network.state_dict().items()}


def largest_gap(one: dict[str, Any], two: dict[str, Any]) -> float:
    return max(float(np.abs(one[name] - two[name]).max()) for name in one)


# --------------------------------------------------------------------------------- in a process


def fit_all() -> None:
    """Fit every method that can on the processes, and compare with one process on the first."""
    import wisecrowd as wc
    from wisecrowd import learning
    from wisecrowd.learning.training.ranks import several_processes

    warnings.simplefilter("ignore")
    X, labels = np.load("x.npy"), wc.read("labels.csv")
    numbers = wc.read("labels.csv", type="numbers")
    methods = [getattr(learning, name) for name in dir(learning)]
    able = [one for one in methods if getattr(one, "on_several_processes", False)]

    def fit(method: Any) -> dict[str, Any]:
        y = numbers if method.takes == "numbers" else labels
        fitted = method(module="linear", epochs=EPOCHS, selection="crowd", patience=None)
        network = fitted.fit(X, y)._network
        return {name: value.double().numpy() for name, value in network.state_dict().items()}

    with several_processes() as ranks:
        together = [fit(method) for method in able]
    assert ranks is not None
    if ranks.rank == 0:
        for method, found in zip(able, together, strict=True):
            print(method.__name__, largest_gap(fit(method), found))


def fit_long() -> None:
    """Train until another process stops answering."""
    import wisecrowd as wc
    from wisecrowd.core.exceptions import WisecrowdError
    from wisecrowd.learning import CCEM
    from wisecrowd.learning.training.ranks import several_processes

    X, labels = np.load("x.npy"), wc.read("labels.csv")
    model = CCEM(module="linear", epochs=100_000, selection="last")
    try:
        with several_processes(SHORT):
            Path(f"started-{os.environ['RANK']}").touch()
            model.fit(X, labels)
    except WisecrowdError as error:
        print(error, flush=True)
        os._exit(3)


# ------------------------------------------------------------------------------------------ rows


def agreement(folder: Path) -> Row:
    processes = start(folder, ["-m", "benchmarks.trust.ranks", "fit_all"])
    outputs = [process.communicate(timeout=900) for process in processes]
    gaps = dict(line.split() for line in outputs[0][0].splitlines())
    worst = max(gaps, key=lambda name: float(gaps[name]))
    return Row(
        f"two processes and one, {len(gaps)} methods, {EPOCHS} epochs: largest gap of a weight",
        f"≤ {CLOSE:g}", f"{float(gaps[worst]):.1e} ({worst})", float(gaps[worst]) <= CLOSE,
    )  # fmt: skip


def lost(folder: Path, rank: int, how: signal.Signals) -> Row:
    """Stop or kill a process in the middle, and see what the other one reports."""
    processes = start(folder, ["-m", "benchmarks.trust.ranks", "fit_long"])
    while not all((folder / f"started-{one}").exists() for one in range(2)):
        time.sleep(0.1)
    time.sleep(3)
    processes[rank].send_signal(how)
    since = time.monotonic()
    said, _ = processes[1 - rank].communicate(timeout=300)
    seconds = time.monotonic() - since
    processes[rank].kill()
    processes[rank].communicate()
    for one in range(2):
        (folder / f"started-{one}").unlink()
    named = f"Process {rank} of 2 does not answer" in said
    code = processes[1 - rank].returncode
    return Row(
        f"process {rank} gets {how.name}, timeout {SHORT:g} s: the other one names it and ends",
        "exit code 3, within timeout + 15 s", f"exit code {code} after {seconds:.0f} s: {said!r}",
        named and code == 3 and seconds <= SHORT + 15,
    )  # fmt: skip


def resumed(folder: Path) -> Row:
    """Kill a process during `wisecrowd train`, resume, and compare with an undisturbed run."""
    long = ["--epochs", "1500", "-p", "selection=last"]
    for process in start(folder, [*TRAIN, *long, "-o", "whole"]):
        process.communicate(timeout=900)
    processes = start(folder, [*TRAIN, *long, "-o", "model"])
    while not (folder / "model.checkpoint").exists():
        time.sleep(0.05)
    time.sleep(2)
    processes[1].kill()
    codes = [process.wait(timeout=300) for process in processes]
    for process in start(folder, [*TRAIN, *long, "-o", "model", "--resume"]):
        process.communicate(timeout=900)
    gap = largest_gap(weights(folder / "whole"), weights(folder / "model"))
    return Row(
        "`train` killed on one of two processes, then --resume: largest gap of a weight",
        "0, and both processes had failed", f"{gap:g}; exit codes {codes}",
        gap == 0 and all(codes),
    )  # fmt: skip


def run() -> list[Row]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make_crowd(folder)
        return [
            agreement(folder),
            lost(folder, 1, signal.SIGKILL),
            lost(folder, 0, signal.SIGKILL),
            lost(folder, 1, signal.SIGSTOP),
            resumed(folder),
        ]


if __name__ == "__main__":
    {"fit_all": fit_all, "fit_long": fit_long}[sys.argv[1]]()
