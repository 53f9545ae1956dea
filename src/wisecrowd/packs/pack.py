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
import os
import stat
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.exceptions import DataError
from wisecrowd.core.ids.encoding import encode
from wisecrowd.packs.kind import PackedKind, packed_kind
from wisecrowd.packs.summary import ITEMS, TASKS, TEXT, WORKER_TOTALS, WORKERS, read_summary
from wisecrowd.storage.arrays import map_array

SUMMARY = "pack.json"
PROGRESS = "progress.json"
SHARDS = "shards"
LEAST_SHARDS = 16
SMALL = 1 << 27  # bytes of a pack whose shards stay mapped while it is open
SHARD_SIZE = 1 << 24  # annotations per shard, from which the number of shards follows


def shards_for(n_rows: int) -> int:
    """Return the number of shards for rows: a power of two, at least 16.

    Examples
    --------
    >>> shards_for(1000), shards_for(10**9)
    (16, 64)
    """
    return max(LEAST_SHARDS, 1 << max(0, -(-n_rows // SHARD_SIZE) - 1).bit_length())


class Pack:
    """An open pack: its summary and the sizes of its files are checked.

    The arrays of its shards are opened by :mod:`wisecrowd.packs.arrays` alone.

    Parameters
    ----------
    path : str or path-like
        The folder.
    verify : bool
        Compare the SHA-256 of every file, too; by default that of a file is compared when a fit or
        a command begins to read it.
    """

    def __init__(self, path: str | os.PathLike[str], *, verify: bool = False) -> None:
        self.path = Path(path)
        if not (self.path / SUMMARY).is_file():
            raise DataError(
                f"{self.path} has no {SUMMARY}: it is not a pack, or packing was not finished; run "
                "wisecrowd pack again, it continues."
            )
        self.summary = read_summary(self.path / SUMMARY)
        self.kept: dict[int, Any] = {}  # shards that stay mapped
        self.is_checked = False  # whether the content of all shards has been compared
        for name, (size, _) in self.files():
            self._require_size(name, size)
            if verify:
                self.require_digest(name)

    def files(self) -> Iterator[tuple[str, tuple[int, str]]]:
        """Yield the name within the folder, size and digest of every file."""
        yield from self.summary.files.items()
        for shard in self.summary.shards:
            for name, facts in shard.files.items():
                yield f"{SHARDS}/{shard.name}/{name}", facts

    def name_of(self, shard: int, file: str) -> str:
        """Return the name within the folder of a file of a shard."""
        return f"{SHARDS}/{self.summary.shards[shard].name}/{file}"

    def damaged(self, name: str, why: str) -> DataError:
        """Return the error that says what is wrong with a file."""
        return DataError(f"{name} of the pack {self.path} is damaged: {why}; copy the pack again.")

    def _require_size(self, name: str, size: int) -> None:
        """Refuse what is not a file of this size; a pipe would be waited for, a folder not read."""
        try:
            found = (self.path / name).stat()
        except OSError:
            raise self.damaged(name, "it is missing") from None
        if not stat.S_ISREG(found.st_mode):
            raise self.damaged(name, "it is not a file")
        if found.st_size != size:
            raise self.damaged(name, f"it is cut off or changed, {found.st_size} bytes instead of "
                               f"{size}")  # fmt: skip

    def require_digest(self, name: str) -> None:
        """Refuse a file with another content than it had when the pack was made."""
        try:
            found = digest_of(self.path / name)
        except OSError as error:
            raise self.damaged(name, str(error.strerror)) from None
        if found != self._digests[name]:
            raise self.damaged(name, "it does not have its SHA-256")

    @cached_property
    def _digests(self) -> dict[str, str]:
        return {name: digest for name, (_, digest) in self.files()}

    @cached_property
    def digest(self) -> str:
        """SHA-256 over the digests of all files: the same for the same labels."""
        lines = [f"{digest}  {name}\n" for name, (_, digest) in sorted(self.files())]
        return hashlib.sha256("".join(lines).encode()).hexdigest()

    @cached_property
    def kind(self) -> PackedKind:
        """What packs hold of this kind."""
        return packed_kind(self.summary.kind)

    @cached_property
    def n_bytes(self) -> int:
        """Size of all files in bytes."""
        return sum(size for _, (size, _) in self.files())

    @cached_property
    def workers(self) -> NDArray[Any]:
        """(n_workers,) worker ids, sorted."""
        return self._vocabulary(WORKERS, self.summary.worker_type, self.summary.n_workers)

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
        return self._vocabulary(ITEMS)

    @cached_property
    def worker_totals(self) -> NDArray[np.float64]:
        """(n_workers,) total weight of each worker's labels."""
        totals = self.map_file(WORKER_TOTALS)
        self.require_digest(WORKER_TOTALS)
        if totals.dtype != np.float64 or totals.shape != (self.summary.n_workers,):
            raise self.damaged(WORKER_TOTALS, "it is not a number per worker")
        if not np.isfinite(totals).all() or totals.min(initial=0.0) < 0:
            raise self.damaged(WORKER_TOTALS, "a total is negative or infinite")
        return totals

    def map_file(self, name: str) -> NDArray[Any]:
        """Return an array, mapped into memory; it may be changed there, the file never is."""
        try:
            return map_array(self.path / name)
        except (OSError, ValueError, DataError) as error:
            raise self.damaged(name, str(error).rstrip(".")) from error

    def tasks(self, shard: int) -> Any:
        """Return the task ids of a shard as a pyarrow array."""
        info = self.summary.shards[shard]
        return self._ids(self.name_of(shard, TASKS), self.summary.task_type, info.n_tasks)

    def _vocabulary(
        self, name: str, kind: str | None = None, size: int | None = None
    ) -> NDArray[Any]:
        """Return sorted ids; their codes are their positions."""
        ids = self._ids(name, kind, size)
        if not np.array_equal(encode(ids, name).codes, np.arange(len(ids))):
            raise self.damaged(name, "its ids are not sorted, or one is there twice or blank")
        return as_vocabulary(ids)

    def _ids(self, name: str, kind: str | None, size: int | None) -> Any:
        """Return the ids of a file as a pyarrow array: one text or integer each, none missing."""
        import pyarrow as pa

        self.require_digest(name)
        ids = self._read_ids(name)
        found = str(ids.type)
        allowed = {None: ("large_string", "int64"), TEXT: ("large_string",)}.get(kind, ("int64",))
        if found not in allowed:
            raise self.damaged(name, f"its ids are of type {found} instead of {allowed[0]}")
        if ids.null_count:
            raise self.damaged(name, f"{ids.null_count} ids are missing")
        if size is not None and len(ids) != size:
            raise self.damaged(name, f"it has {len(ids)} ids instead of {size}")
        try:
            ids.validate(full=True)
        except pa.ArrowException as error:
            raise self.damaged(name, str(error).split("\n")[0].rstrip(".")) from None
        return ids

    def _read_ids(self, name: str) -> Any:
        import pyarrow as pa
        import pyarrow.parquet as pq

        try:
            with pq.ParquetFile(self.path / name) as file:
                column = file.read(use_threads=False).column("id")
        except (pa.ArrowException, OSError, KeyError, ValueError) as error:
            raise self.damaged(name, str(error).split("\n")[0].rstrip(".")) from error
        return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)


def load_shard(pack: Pack, number: int) -> Any:
    """Return a shard of the pack's kind with its arrays mapped; compiled code may trust them.

    An open pack keeps the shards of a small pack, which saves opening their files at every pass.
    """
    if pack.n_bytes > SMALL:
        return pack.kind.load(pack, number)
    if number not in pack.kept:
        pack.kept[number] = pack.kind.load(pack, number)
    return pack.kept[number]


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


def digest_of(path: Path) -> str:
    """Return the SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def facts_of(path: Path) -> tuple[int, str]:
    """Return size and SHA-256 of a file, as ``pack.json`` lists them."""
    return path.stat().st_size, digest_of(path)


def read_array(path: Path) -> NDArray[Any]:
    """Return an ``.npy`` file that packing wrote, mapped into memory."""
    try:
        return map_array(path)
    except (OSError, DataError) as error:
        raise DataError(f"{path} is damaged ({error}); pack the labels again.") from error


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


def as_vocabulary(ids: Any) -> NDArray[Any]:
    """Return a pyarrow array of ids in the form of a vocabulary: text as objects."""
    import pyarrow as pa

    if pa.types.is_integer(ids.type):
        return np.asarray(ids.to_numpy(zero_copy_only=False))
    return np.asarray(ids.to_numpy(zero_copy_only=False), dtype=object)
