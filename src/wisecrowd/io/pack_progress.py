"""Progress of packing: what is finished, so that an interrupted run continues."""

from __future__ import annotations

import json
import re
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from wisecrowd.core.exceptions import DataError
from wisecrowd.io.id_columns import GrowingCodes
from wisecrowd.io.pack_buckets import Coding
from wisecrowd.io.pack_payloads import PairCoding
from wisecrowd.io.pack_shards import ShardSums
from wisecrowd.packs.pack import PROGRESS, SHARDS, SUMMARY
from wisecrowd.storage.atomic import atomic_write
from wisecrowd.storage.work_folder import clear_files, foreign_file, listed_temporaries

FORMAT = "wisecrowd-pack-progress"
_HEAD = f'{{"format": "{FORMAT}", "key": '
BUCKETS = "buckets"
# Files of buckets and shards, and both with their folders.
_PARTS = {
    BUCKETS: re.compile(r"workers\.jsonl|\d+\.arrow|totals-\d+\.npy"),
    SHARDS: re.compile(r"\d{4,5}/[a-z_]+\.(npy|parquet)"),
}
_BUCKET_FILES = re.compile(rf"{BUCKETS}/({_PARTS[BUCKETS].pattern})")
_UNFINISHED = re.compile(rf"{_BUCKET_FILES.pattern}|{SHARDS}/({_PARTS[SHARDS].pattern})")
_WORKERS, _WRITING = "workers.jsonl", "unfinished"
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
        clear_files(self.folder, _UNFINISHED)
        (self.folder / PROGRESS).unlink(missing_ok=True)

    def save_mark(self) -> None:
        """Write that the folder is an unfinished pack, of which nothing is finished."""
        text = f"{_HEAD}{json.dumps(self.key, default=_plain)}}}"
        if (self.folder / PROGRESS).exists():
            with atomic_write(self.folder / PROGRESS) as file:
                file.write(text)
        else:  # a kill must leave no temporary file in a folder that has no mark yet
            (self.folder / PROGRESS).write_text(text, encoding="utf-8")

    def save(self) -> None:
        """Write what is finished; files that grow are described by their sizes."""
        workers = list(self.coding.workers.code_of)[self._n_written :]
        with (self.buckets / _WORKERS).open("a", encoding="utf-8") as grown_file:
            grown_file.writelines(json.dumps(worker) + "\n" for worker in workers)
        self._n_written += len(workers)
        grown = sorted(self.buckets.glob("*.arrow")) if not self.shards else []
        values = {
            "format": FORMAT,
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
    """Remove what only an unfinished pack needs; the progress, which is the mark, goes last."""
    clear_files(folder, _BUCKET_FILES)
    (folder / _WRITING).unlink(missing_ok=True)
    (folder / PROGRESS).unlink(missing_ok=True)


def begin(folder: Path, key: dict[str, Any], n_buckets: int) -> Progress | None:
    """Return the progress of an interrupted run with the same key, or start from nothing.

    The file of the progress is the mark of an unfinished pack: a folder with anything else is
    refused, and nothing in it is touched. None means that the interrupted run had finished the
    pack: what it left is removed.
    """
    before = _read(folder)
    same = before is not None and before["key"] == json.loads(json.dumps(key, default=_plain))
    if (folder / SUMMARY).exists():
        if same:
            with listed_writes(folder):
                remove_rest(folder)
            return None
        raise DataError(f"{folder} is a finished pack; remove it or choose another name.")
    if before is None:
        _require_nothing(folder)
    else:
        _require_own(folder)
    with listed_writes(folder):  # removes what a killed run was writing
        return _started(folder, key, n_buckets, before if same else None)


def listed_writes(folder: Path) -> AbstractContextManager[None]:
    """List what is being written into an unfinished pack."""
    return listed_temporaries(folder / _WRITING)


def _started(
    folder: Path, key: dict[str, Any], n_buckets: int, before: dict[str, Any] | None
) -> Progress:
    """Return the progress to continue, or that of a new start."""
    if before is not None:
        try:
            return _continued(folder, before, key)
        except (OSError, ValueError, KeyError, TypeError):
            pass  # damaged: start from the beginning
    progress = Progress(folder, key, n_buckets)
    folder.mkdir(parents=True, exist_ok=True)
    progress.save_mark()
    clear_files(folder, _UNFINISHED)
    progress.buckets.mkdir()
    progress.save()
    return progress


def _require_nothing(folder: Path) -> None:
    """Refuse a file, and a folder that is not empty."""
    if folder.is_symlink() and not folder.exists():
        return  # making the folder says what is wrong
    if folder.exists() and (not folder.is_dir() or not _is_empty(folder)):
        raise DataError(
            f"{folder} exists and is not an unfinished pack; choose another name or move it away."
        )


def _is_empty(folder: Path) -> bool:
    """Return whether a folder is empty, but for a mark that a kill cut off."""
    names = [entry.name for entry in folder.iterdir()]
    if names != [PROGRESS]:
        return not names
    try:
        text = (folder / PROGRESS).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return False
    return _HEAD.startswith(text) or text.startswith(_HEAD)


def _require_own(folder: Path) -> None:
    """Refuse files in an unfinished pack that packing does not write."""
    for part in (BUCKETS, SHARDS):
        foreign = foreign_file(folder / part, _PARTS[part])
        if foreign is not None:
            raise DataError(
                f"{folder} is an unfinished pack and holds {foreign.relative_to(folder)}, which "
                "would be lost; move it away, or choose another name."
            )


def _read(folder: Path) -> dict[str, Any] | None:
    """Return the progress in a folder; None if there is none that packing wrote."""
    try:
        values = json.loads((folder / PROGRESS).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    ours = isinstance(values, dict) and values.get("format") == FORMAT and "key" in values
    return values if ours else None


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
