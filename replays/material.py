"""What the experiments with features share: images, simulated experts, tables with intervals."""

from __future__ import annotations

import csv
import gzip
import json
import os
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import wisecrowd as wc
from replays.feature_free import OUTPUT, finish

Scores = dict[str, dict[str, list[float]]]  # setting, method: one number per seed


@dataclass(frozen=True, eq=False)
class Job:
    """An experiment to run, and a file to which every finished measurement is appended."""

    name: str
    seeds: range
    full: bool = False
    resume: bool = False  # reuse the measurements in the file instead of deleting it

    @property
    def file(self) -> Path:
        return OUTPUT / f"{self.name}.jsonl"

    def begin(self) -> Job:
        OUTPUT.mkdir(exist_ok=True)
        if not self.resume:
            self.file.unlink(missing_ok=True)
        return self

    def once(self, measure: Callable[[], dict[str, float]], *key: Any) -> dict[str, float]:
        """Return the stored measurement of this key, or measure now and store it."""
        wanted = json.loads(json.dumps(key))
        if self.file.exists():
            for line in self.file.read_text(encoding="utf-8").splitlines():
                stored: dict[str, Any] = json.loads(line)
                if stored["key"] == wanted:
                    return dict(stored["value"])
        value = {name: float(number) for name, number in measure().items()}
        line = json.dumps({"key": wanted, "value": value})
        with self.file.open("a", encoding="utf-8") as file:
            file.write(line + "\n")
        print(line, flush=True)
        return value


def folder(name: str) -> Path:
    root = os.environ.get("WISECROWD_DATA")
    if root is None:
        raise SystemExit("Set WISECROWD_DATA to the folder that has the data sets.")
    return Path(root) / name


# ------------------------------------------------------------------------------------------ images


@cache
def _mnist(part: str) -> tuple[np.ndarray, np.ndarray]:
    with gzip.open(folder("mnist") / f"{part}-images-idx3-ubyte.gz") as file:
        images = np.frombuffer(file.read(), np.uint8, offset=16).reshape(-1, 28, 28)
    with gzip.open(folder("mnist") / f"{part}-labels-idx1-ubyte.gz") as file:
        return images, np.frombuffer(file.read(), np.uint8, offset=8)


def digit_pair(
    first: int, second: int, n: int, n_test: int, rng: np.random.Generator, share: float = 0.5
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return training and test images (n, 28, 28) of two digits, and which of the two each is."""
    result = []
    for part, size in (("train", n), ("t10k", n_test)):
        images, digits = _mnist(part)
        counts = (round(share * size), size - round(share * size))
        rows = [
            rng.choice(np.flatnonzero(digits == digit), count, replace=False)
            for digit, count in zip((first, second), counts, strict=True)
        ]
        order = rng.permutation(np.concatenate(rows))
        result += [images[order].astype(np.float32) / 255, (digits[order] == second).astype(int)]
    return result[0], result[1], result[2], result[3]


def flat(images: np.ndarray) -> np.ndarray:
    return images.reshape(len(images), -1)


# ---------------------------------------------------------------------------------------- real data


@cache
def crowd_set(name: str) -> tuple[np.ndarray, wc.CrowdLabels, np.ndarray, np.ndarray, np.ndarray]:
    """Return X, labels, truth, test X and test truth of a data set with features."""
    path = folder(name)
    X, X_test = (np.load(path / f"features{s}.npy").astype(np.float32) for s in ("", "_test"))
    truth = np.full(len(X), -1)
    for row in _rows(path / "truth.csv"):
        truth[int(row["task"])] = int(row["label"])
    test = np.array([int(row["label"]) for row in _rows(path / "truth_test.csv")])
    found = _rows(path / "answers.csv")
    columns = (np.array([int(row[key]) for row in found]) for key in ("task", "worker", "label"))
    return X, wc.CrowdLabels.from_arrays(*columns), truth, X_test, test


def _rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


# ---------------------------------------------------------------------------------- fits and tables


def quiet(model: Any, *data: Any, **known: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(*data, **known)


def add(scores: Scores, setting: str, method: str, value: float) -> None:
    scores.setdefault(setting, {}).setdefault(method, []).append(float(value))


def interval(values: Sequence[float]) -> str:
    """Mean and half the width of a 95 % interval over seeds (normal)."""
    half = 1.96 * np.std(values, ddof=1) / np.sqrt(len(values)) if len(values) > 1 else np.nan
    return f"{np.mean(values):.3f} ± {half:.3f}" if len(values) > 1 else f"{values[0]:.3f}"


def report(
    title: str, scores: Scores, show: Callable[[Sequence[float]], str] = interval, note: str = ""
) -> None:
    """Print and keep a table: settings down, methods across."""
    names = list(dict.fromkeys(name for row in scores.values() for name in row))
    lines = ["| setting | " + " | ".join(names) + " |", "|---" * (len(names) + 1) + "|"]
    for setting, row in scores.items():
        cells = [show(row[name]) if name in row else "" for name in names]
        lines.append(f"| {setting} | " + " | ".join(cells) + " |")
    n_seeds = max(len(values) for row in scores.values() for values in row.values())
    finish(title, [*lines, "", f"{n_seeds} seeds; ± half a 95 % interval. {note}".strip()], scores)
