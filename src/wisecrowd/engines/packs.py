"""Packs: folders of labels in shards of tasks, which engines read one shard at a time.

::

    crowd.pack/
      pack.json               sizes, classes, options, inputs, and every file with size and SHA-256
      workers.parquet         sorted worker ids; the code of a worker is the row
      worker_totals.npy       (n_workers,) total weight of each worker's labels
      shards/0000/tasks.parquet   task ids
                  indptr.npy      row pointers into the annotations
                  cell.npy        local worker * n_classes + label, sorted by (task, worker)
                  workers.npy     local worker -> code of the worker
                  weight.npy, timestamp.npy, gold.npy   where there are any
                  pattern.npy, repeat.npy               where equal tasks share a row

A pack of numbers has ``value.npy`` beside, and ``cell.npy`` is the local worker. A pack of pairs
has ``left.npy``, ``right.npy`` and ``outcome.npy``, and ``items.parquet`` with the sorted items.

A task lies in one shard, chosen by the hash of its id. ``pack.json`` is written last: a folder
without it is not a pack.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.exceptions import DataError
from wisecrowd.storage.arrays import map_array

FORMAT = 1
HASH = "fnv1a64-mixed"
SUMMARY = "pack.json"
PROGRESS = "progress.json"
WORKERS, WORKER_TOTALS, ITEMS = "workers.parquet", "worker_totals.npy", "items.parquet"
KINDS = {"labels": (), "numbers": ("value",), "pairs": ("left", "right", "outcome")}  # and payloads
SHARDS = "shards"
LEAST_SHARDS = 16
SHARD_SIZE = 1 << 24  # annotations per shard, from which the number of shards follows
TASKS = "tasks.parquet"
INTEGER, TEXT = "integer", "text"

Files = Mapping[str, tuple[int, str]]  # name of a file -> bytes, SHA-256


def shards_for(n_rows: int) -> int:
    """Return the number of shards for rows: a power of two, at least 16.

    Examples
    --------
    >>> shards_for(1000), shards_for(10**9)
    (16, 64)
    """
    return max(LEAST_SHARDS, 1 << max(0, -(-n_rows // SHARD_SIZE) - 1).bit_length())


@dataclass(frozen=True)
class ShardInfo:
    """One shard of a pack: its name, sizes and files."""

    name: str
    n_tasks: int
    n_rows: int
    n_annotations: int
    n_local_workers: int
    files: Files


@dataclass(frozen=True, kw_only=True)
class PackSummary:
    """The content of ``pack.json``.

    Attributes
    ----------
    n_tasks, n_workers, n_annotations : int
    classes : list
        The classes in order; text, integers, floats or booleans.
    ordered : bool
    task_type, worker_type : "text" or "integer"
    n_labelled, n_telling : int
        Tasks with labels; tasks with labels by two workers, or with labels and gold.
    n_gold : int
        Tasks with a known class.
    class_totals : list of float
        Total weight of the labels of each class.
    labels_per_task : list of int
        The fewest and the most.
    patterns : bool
        Whether tasks with the same labels share one row.
    options, notes, inputs
        How the pack was made, and from which files.
    kind : "labels", "numbers" or "pairs"
    has_tasks : bool
        Whether tasks were given; otherwise the task of a comparison is its pair of items.
    value_range : list of float
        The least and the largest number.
    outcome_totals : list of float
        Total weight of the comparisons for left, for right and for a tie.
    files, shards
        Every file with its size and digest.
    """

    n_tasks: int
    n_workers: int
    n_annotations: int
    classes: list[Any]
    ordered: bool
    task_type: str
    worker_type: str
    n_labelled: int
    n_telling: int
    n_gold: int
    class_totals: list[float]
    labels_per_task: list[int]
    patterns: bool
    shards: list[ShardInfo]
    files: Files
    options: dict[str, Any] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    inputs: list[dict[str, Any]] = field(default_factory=list)
    kind: str = "labels"
    has_tasks: bool = True
    value_range: list[float] = field(default_factory=list)
    outcome_totals: list[float] = field(default_factory=list)
    wisecrowd: str = ""
    format: int = FORMAT
    hash: str = HASH


class Pack:
    """An open pack: sizes checked, arrays read by memory mapping when they are needed.

    Parameters
    ----------
    path : str or path-like
        The folder.
    verify : bool
        Compare the SHA-256 of every file, too; by default only sizes are compared.
    """

    def __init__(self, path: str | os.PathLike[str], *, verify: bool = False) -> None:
        self.path = Path(path)
        self.summary = _read_summary(self.path)
        self.kept: dict[int, Any] = {}  # shards that stay mapped
        for name, (size, digest) in self.files():
            _check_file(self.path / name, name, size, digest if verify else None)

    def files(self) -> Iterator[tuple[str, tuple[int, str]]]:
        """Yield the name within the folder, size and digest of every file."""
        yield from self.summary.files.items()
        for shard in self.summary.shards:
            for name, facts in shard.files.items():
                yield f"{SHARDS}/{shard.name}/{name}", facts

    @cached_property
    def digest(self) -> str:
        """SHA-256 over the digests of all files: the same for the same labels."""
        lines = [f"{digest}  {name}\n" for name, (_, digest) in sorted(self.files())]
        return hashlib.sha256("".join(lines).encode()).hexdigest()

    @cached_property
    def n_bytes(self) -> int:
        """Size of all files in bytes."""
        return sum(size for _, (size, _) in self.files())

    @cached_property
    def workers(self) -> NDArray[Any]:
        """(n_workers,) worker ids, sorted."""
        return as_vocabulary(read_ids(self.path / WORKERS))

    @cached_property
    def classes(self) -> NDArray[Any]:
        """(n_classes,) classes."""
        listed = self.summary.classes
        if all(isinstance(one, str) for one in listed):
            ids = np.empty(len(listed), dtype=object)
            ids[:] = listed
            return ids
        return np.array(listed)

    @cached_property
    def items(self) -> NDArray[Any]:
        """(n_items,) compared items of a pack of pairs, sorted."""
        return as_vocabulary(read_ids(self.path / ITEMS))

    @cached_property
    def worker_totals(self) -> NDArray[np.float64]:
        """(n_workers,) total weight of each worker's labels."""
        return read_array(self.path / WORKER_TOTALS)

    def array(self, shard: int, name: str) -> NDArray[Any] | None:
        """Return an array of a shard, mapped into memory; None if the shard does not have it."""
        info = self.summary.shards[shard]
        if f"{name}.npy" not in info.files:
            return None
        return read_array(self.path / SHARDS / info.name / f"{name}.npy")

    def required(self, shard: int, name: str) -> NDArray[Any]:
        """Return an array that every shard has."""
        found = self.array(shard, name)
        if found is None:
            raise DataError(
                f"Shard {self.summary.shards[shard].name} of {self.path} has no {name}.npy; pack "
                "the labels again."
            )
        return found

    def tasks(self, shard: int) -> Any:
        """Return the task ids of a shard as a pyarrow array."""
        return read_ids(self.path / SHARDS / self.summary.shards[shard].name / TASKS)


def is_pack(path: Any) -> bool:
    """Return whether a path is a pack, finished or not.

    Examples
    --------
    >>> is_pack("labels.csv")
    False
    """
    if not isinstance(path, str | os.PathLike):
        return False
    try:
        folder = Path(path)
        return folder.is_dir() and any((folder / n).is_file() for n in (SUMMARY, PROGRESS))
    except (OSError, ValueError):
        return False


def summary_text(summary: PackSummary) -> str:
    """Return the text of ``pack.json``."""
    return json.dumps(asdict(summary), indent=1, allow_nan=False) + "\n"


def _read_summary(folder: Path) -> PackSummary:
    file = folder / SUMMARY
    if not file.is_file():
        raise DataError(
            f"{folder} has no {SUMMARY}: it is not a pack, or packing was not finished; run "
            "wisecrowd pack again, it continues."
        )
    try:
        text = file.read_text(encoding="utf-8")
        values = json.loads(text)
        if values.get("format") != FORMAT or values.get("hash") != HASH:
            raise DataError(
                f"{file} has format {values.get('format')} with hash {values.get('hash')}, and "
                f"this version reads format {FORMAT} with {HASH}; pack the labels again."
            )
        if not text.endswith("\n"):
            raise ValueError("it is cut off")
        shards = [
            ShardInfo(**{**one, "files": _files(one["files"])}) for one in values.pop("shards")
        ]
        summary = PackSummary(**{**values, "shards": shards, "files": _files(values["files"])})
        _check_summary(summary)
    except DataError:
        raise
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise DataError(f"{file} is damaged ({error}); pack the labels again.") from error
    return summary


def _check_summary(summary: PackSummary) -> None:
    _check_values(summary)
    if summary.kind not in KINDS or (summary.kind == "pairs" and ITEMS not in summary.files):
        raise ValueError(f"{summary.kind!r} is not a kind of packs, or {ITEMS} is not listed")
    n_shards = len(summary.shards)
    if n_shards < 1 or n_shards & (n_shards - 1):
        raise ValueError(f"{n_shards} shards are not a power of two")
    if sum(shard.n_annotations for shard in summary.shards) != summary.n_annotations:
        raise ValueError("the shards do not hold all annotations")
    if sum(shard.n_tasks for shard in summary.shards) != summary.n_tasks:
        raise ValueError("the shards do not hold all tasks")
    if len(summary.class_totals) != len(summary.classes):
        raise ValueError("classes and their totals differ")


def _check_values(summary: PackSummary) -> None:
    """Refuse counts that are none, classes that repeat, and shards outside of the pack."""
    counts = {
        name: getattr(summary, name)
        for name in ("n_tasks", "n_workers", "n_annotations", "n_labelled", "n_telling", "n_gold")
    }
    for shard in summary.shards:
        for name in ("n_tasks", "n_rows", "n_annotations", "n_local_workers"):
            counts[f"{name} of shard {shard.name}"] = getattr(shard, name)
        if not isinstance(shard.name, str) or not shard.name.isdigit():
            raise ValueError(f"{shard.name!r} is not the name of a shard")
    for name, value in counts.items():
        if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 2**53:
            raise ValueError(f"{name} is {value!r}")
    types = {type(one) for one in summary.classes}
    if not types <= {str, int, float, bool} or len(types) > 1:
        raise ValueError("classes are not of one type")
    if len(set(summary.classes)) != len(summary.classes):
        raise ValueError("a class is listed twice")
    for total in summary.class_totals:
        if isinstance(total, bool) or not isinstance(total, int | float) or not 0 <= total < 1e300:
            raise ValueError(f"the total of a class is {total!r}")
    if summary.task_type not in ("text", "integer") or summary.worker_type not in (
        "text", "integer",
    ):  # fmt: skip
        raise ValueError("ids are neither text nor integers")


def _files(given: Any) -> dict[str, tuple[int, str]]:
    files = {str(name): (int(size), str(digest)) for name, (size, digest) in given.items()}
    for name in files:
        if "/" in name or "\\" in name or name.startswith("."):
            raise ValueError(f"{name!r} is not the name of a file of a pack")
    return files


def _check_file(path: Path, name: str, size: int, digest: str | None) -> None:
    try:
        found = path.stat().st_size
    except OSError:
        raise DataError(
            f"{name} of the pack {_pack_of(path, name)} is missing; copy the pack again."
        ) from None
    if found != size:
        raise DataError(
            f"{name} of the pack {_pack_of(path, name)} has {found} bytes instead of {size}: it is "
            "cut off or was changed; copy the pack again."
        )
    if digest is not None and digest_of(path) != digest:
        raise DataError(
            f"{name} of the pack {_pack_of(path, name)} does not have its SHA-256: it was changed; "
            "copy the pack again."
        )


def _pack_of(path: Path, name: str) -> Path:
    return path.parents[name.count("/")]


def digest_of(path: Path) -> str:
    """Return the SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def facts_of(path: Path) -> tuple[int, str]:
    """Return size and SHA-256 of a file, as ``pack.json`` lists them."""
    return path.stat().st_size, digest_of(path)


def read_array(path: Path) -> NDArray[Any]:
    """Return an ``.npy`` file mapped into memory; arrays may be changed, the file never is."""
    try:
        return map_array(path)
    except (OSError, DataError) as error:
        raise DataError(f"{path} is damaged ({error}); copy the pack again.") from error


def write_array(path: Path, array: NDArray[Any]) -> None:
    """Write an ``.npy`` file without pickled objects."""
    with path.open("wb") as file:
        np.lib.format.write_array(file, np.ascontiguousarray(array), allow_pickle=False)


def write_ids(path: Path, ids: Any) -> None:
    """Write a pyarrow array of ids as a parquet file of one column."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(
        pa.table({"id": ids}), path, compression="none", use_dictionary=False,
        write_statistics=False,
    )  # fmt: skip


def read_ids(path: Path) -> Any:
    """Return the pyarrow array of ids of a parquet file."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        column = pq.read_table(path, use_threads=False).column("id")
    except (pa.ArrowException, OSError, KeyError, ValueError) as error:
        reason = str(error).split("\n")[0]
        raise DataError(f"{path} is damaged ({reason}); copy the pack again.") from error
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)


def as_vocabulary(ids: Any) -> NDArray[Any]:
    """Return a pyarrow array of ids in the form of a vocabulary: text as objects."""
    import pyarrow as pa

    if pa.types.is_integer(ids.type):
        return np.asarray(ids.to_numpy(zero_copy_only=False))
    return np.asarray(ids.to_numpy(zero_copy_only=False), dtype=object)
