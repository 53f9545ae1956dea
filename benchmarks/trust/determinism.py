"""The same bits over reruns, thread counts and hash seeds, for every method, process by process."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np

import wisecrowd
from benchmarks.rows import Row
from benchmarks.speed.fit_memory import crowd, method, names_for
from wisecrowd import CrowdLabels
from wisecrowd.core.exceptions import WisecrowdError
from wisecrowd.storage.manifest import read_manifest

# Large enough for the compiled kernels, and for several blocks of tasks that threads share.
SIZE = (800_000, 80, 2, 5)
MORE_CLASSES = (540_000, 60, 4, 5)
# Threads of our own and of the linear algebra, and the seed of Python's hashes of text.
SETTINGS = (("1", "0"), ("1", "0"), ("2", "12345"), ("4", "random"))


def digests(chosen: list[str]) -> dict[str, str]:
    """Return a digest of everything that each method learns, on text ids; all if none is chosen."""
    found = {}
    for size in (SIZE, MORE_CLASSES):
        labels = _with_text_ids(crowd(size))
        for name in names_for(size[2]):
            if chosen and name not in chosen:
                continue
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                try:
                    model = method(name).fit(labels)
                except WisecrowdError as error:
                    found[f"{name} {size[2]}"] = f"refused: {error}"
                    continue
            found[f"{name} {size[2]}"] = _digest(model)
    return found


def _with_text_ids(labels: CrowdLabels) -> CrowdLabels:
    def text(letter: str, n: int) -> Any:
        return np.array([f"{letter}{number:09d}" for number in range(n)], dtype=object)

    ids = (
        text("t", labels.n_tasks), text("w", labels.n_workers), text("c", labels.n_classes),
    )  # fmt: skip
    return CrowdLabels(labels.task, labels.worker, labels.label, *ids)


def _digest(model: Any) -> str:
    digest = hashlib.sha256()
    for name in ("probas_", "worker_accuracy_", "worker_accuracy_error_", "class_prior_",
                 "confusion_", "history_"):  # fmt: skip
        value = getattr(model, name, None)
        if value is None:
            continue
        dense = value.toarray() if hasattr(value, "toarray") else np.asarray(value)
        digest.update(name.encode() + np.ascontiguousarray(dense).tobytes())
    digest.update("".join(model.labels_.tolist()).encode())
    return digest.hexdigest()


def run(chosen: list[str] | None = None) -> list[Row]:
    command = ("-m", "benchmarks.trust.determinism", "digests", *(chosen or []))
    results = [json.loads(_python(*command, settings=settings)) for settings in SETTINGS]
    first = results[0]
    different = [name for name in first if any(r.get(name) != first[name] for r in results)]
    shown = f"{len(first) - len(different)} of {len(first)} fits"
    if different:
        shown += f"; others: {', '.join(different)}"
    what = f"same bits in {len(SETTINGS)} processes: reruns, 1–4 threads, hash seeds"
    return [Row(what, "every method", shown, not different), _files()]


def _files() -> Row:
    """Aggregate from file to file under all settings, and compare files and manifests."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        labels = crowd((150_000, 40, 3, 5))
        names = ("task", "worker", "label")
        columns = [np.char.add(n[0], getattr(labels, n).astype(str)) for n in names]
        lines = "\n".join(map(",".join, zip(*columns, strict=True)))
        (place / "answers.csv").write_text("task,worker,label\n" + lines + "\n")
        outputs, told = set(), set()
        for settings in SETTINGS:
            arguments = ("aggregate", "answers.csv", "-o", "labels.csv", "--workers", "w.parquet")
            _python("-m", "wisecrowd", *arguments, "-q", settings=settings, folder=place)
            outputs.add((place / "labels.csv").read_bytes() + (place / "w.parquet").read_bytes())
            manifests = [read_manifest(place / name) for name in ("labels.csv", "w.parquet")]
            told.add(tuple(m.output_sha256 for m in manifests))
    return Row(
        "wisecrowd aggregate, 150,000 labels: same files, and digests in the manifests", "same",
        f"{len(outputs)} version of the files, {len(told)} of the digests in {len(SETTINGS)} runs",
        len(outputs) == len(told) == 1,
    )  # fmt: skip


def _python(*arguments: str, settings: tuple[str, str], folder: Path | None = None) -> str:
    threads, seed = settings
    package = str(Path(wisecrowd.__file__).parents[1])
    environment = {
        **os.environ, "WISECROWD_THREADS": threads, "OMP_NUM_THREADS": threads,
        "OPENBLAS_NUM_THREADS": threads, "PYTHONHASHSEED": seed,
        "PYTHONPATH": os.pathsep.join((package, str(Path(__file__).parents[2]))),
    }  # fmt: skip
    command = [sys.executable, *arguments]
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=True
    )
    return done.stdout


if __name__ == "__main__":
    if sys.argv[1:2] == ["digests"]:
        print(json.dumps(digests(sys.argv[2:])))
    else:
        print("\n".join(row.line() for row in run(sys.argv[1:])))
