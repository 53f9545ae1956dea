"""Progress of packing: what is finished, so that an interrupted run continues."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from wisecrowd.core.exceptions import DataError
from wisecrowd.engines.packs import PROGRESS, SHARDS, SUMMARY
from wisecrowd.io.id_columns import GrowingCodes
from wisecrowd.io.pack_buckets import Coding
from wisecrowd.io.pack_payloads import PairCoding
from wisecrowd.io.pack_shards import ShardSums
from wisecrowd.storage.atomic import atomic_write

BUCKETS = "buckets"
_WORKERS = "workers.jsonl"
_PLAIN = ("task_type", "worker_type", "label_type", "columns", "time_type", "n_rows",
          "n_abstentions", "kind", "refused")  # fmt: skip


@dataclass
class Progress:
    """Finished input files and shards of a pack, kept in ``progress.json``.

    Attributes
    ----------
    folder : Path
        The pack.
    key : mapping
        Inputs and options; another key means another pack, which starts from the beginning.
    n_buckets : int
    inputs : list of mappings
        Finished input files.
    notes : list of str
    coding : Coding
    shards : list of ShardSums
    patterns : bool or None
    """

    folder: Path
    key: dict[str, Any]
    n_buckets: int
    inputs: list[dict[str, Any]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    found: dict[str, str] = field(default_factory=dict)
    coding: Coding = field(default_factory=Coding)
    shards: list[ShardSums] = field(default_factory=list)
    patterns: bool | None = None
    _n_written: int = 0  # workers in the file

    @property
    def buckets(self) -> Path:
        """Folder of the buckets."""
        return self.folder / BUCKETS

    def remove(self) -> None:
        """Remove everything of the unfinished pack."""
        for part in (BUCKETS, SHARDS):
            shutil.rmtree(self.folder / part, ignore_errors=True)
        (self.folder / PROGRESS).unlink(missing_ok=True)

    def save(self) -> None:
        """Write what is finished; files that grow are described by their sizes."""
        workers = list(self.coding.workers.code_of)[self._n_written :]
        with (self.buckets / _WORKERS).open("a", encoding="utf-8") as grown_file:
            grown_file.writelines(json.dumps(worker) + "\n" for worker in workers)
        self._n_written += len(workers)
        grown = sorted(self.buckets.glob("*.arrow")) if not self.shards else []
        values = {
            "key": self.key,
            "n_buckets": self.n_buckets,
            "inputs": self.inputs,
            "notes": self.notes,
            "found": self.found,
            "coding": {name: getattr(self.coding, name) for name in _PLAIN},
            "kinds": sorted(map(str, self.coding.kinds)),
            "labels": list(self.coding.labels.code_of),
            "pairs": self.coding.pairs.state(),
            "n_workers": self._n_written,
            "sizes": {file.name: file.stat().st_size for file in grown},
            "shards": [vars(shard) for shard in self.shards],
            "patterns": self.patterns,
        }
        with atomic_write(self.folder / PROGRESS) as file:
            json.dump(values, file, default=_plain)


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"{type(value).__name__} is not plain")


def remove_rest(folder: Path) -> None:
    """Remove what only an unfinished pack needs; the progress goes last."""
    shutil.rmtree(folder / BUCKETS, ignore_errors=True)
    (folder / PROGRESS).unlink(missing_ok=True)


def begin(folder: Path, key: dict[str, Any], n_buckets: int) -> Progress | None:
    """Return the progress of an interrupted run with the same key, or start from nothing.

    None means that the interrupted run had finished the pack: what it left is removed.
    """
    if (folder / SUMMARY).exists():
        before = _read(folder)
        remove_rest(folder)
        if before is not None and before["key"] == json.loads(json.dumps(key, default=_plain)):
            return None
        raise DataError(f"{folder} is a finished pack; remove it or choose another name.")
    before = _read(folder)
    if before is None and folder.exists():
        strange = [entry.name for entry in folder.iterdir() if entry.name not in (BUCKETS, SHARDS)]
        if strange or not folder.is_dir():
            raise DataError(
                f"{folder} exists and is not an unfinished pack; choose another name or move it "
                "away."
            )
    if before is not None and before["key"] == json.loads(json.dumps(key, default=_plain)):
        try:
            return _continued(folder, before, key)
        except (OSError, ValueError, KeyError, TypeError):
            pass  # damaged: start from the beginning
    for part in (BUCKETS, SHARDS):
        shutil.rmtree(folder / part, ignore_errors=True)
    (folder / BUCKETS).mkdir(parents=True)
    progress = Progress(folder, key, n_buckets)
    progress.save()
    return progress


def _read(folder: Path) -> dict[str, Any] | None:
    try:
        values = json.loads((folder / PROGRESS).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return values if isinstance(values, dict) and "key" in values else None


def _continued(folder: Path, values: dict[str, Any], key: dict[str, Any]) -> Progress:
    """Return the progress of a file, with buckets cut to the sizes of finished inputs."""
    buckets = folder / BUCKETS
    n_workers = int(values["n_workers"])
    lines = (buckets / _WORKERS).read_bytes().split(b"\n")[:n_workers]
    workers = [json.loads(line) for line in lines]
    if len(workers) != n_workers:
        raise ValueError("workers are missing")
    (buckets / _WORKERS).write_bytes(b"".join(line + b"\n" for line in lines))
    shards = [ShardSums(**one) for one in values["shards"]]
    if not shards:
        for file in buckets.glob("*.arrow"):
            _cut(file, int(values["sizes"].get(file.name, 0)))
    for shard in shards:
        _require_sizes(folder / SHARDS / shard.info["name"], shard.info["files"])
    coding = Coding(GrowingCodes(workers), GrowingCodes(values["labels"]), **values["coding"])
    coding.kinds = set(values["kinds"])
    coding.pairs = PairCoding.of(values["pairs"])
    return Progress(
        folder, key, int(values["n_buckets"]), values["inputs"], values["notes"], values["found"],
        coding, shards, values["patterns"], n_workers,
    )  # fmt: skip


def _cut(file: Path, size: int) -> None:
    if file.stat().st_size < size:
        raise ValueError(f"{file} is shorter than it was")
    with file.open("rb+") as opened:
        opened.truncate(size)


def _require_sizes(folder: Path, files: dict[str, Any]) -> None:
    for name, (size, _) in files.items():
        if (folder / name).stat().st_size != size:
            raise ValueError(f"{name} has another size")
