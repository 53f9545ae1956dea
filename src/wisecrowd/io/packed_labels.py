"""Packs as labels in memory, for every command that reads labels."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.annotations import Annotations
from wisecrowd.core.exceptions import DataError, ParameterError
from wisecrowd.core.ids.encoding import encode
from wisecrowd.core.memory_check import require_memory
from wisecrowd.core.messages.option_spelling import for_reader, option
from wisecrowd.packs.arrays import check_shard, check_vocabularies, open_column
from wisecrowd.packs.pack import Pack, is_pack
from wisecrowd.packs.summary import TASKS

BYTES_PER_LABEL, BYTES_PER_TASK = 40, 150


def pack_among(path: Any) -> Any | None:
    """Return the only path of one or several paths if it is a pack, else None."""
    if isinstance(path, str | os.PathLike):
        return path if is_pack(path) else None
    if not isinstance(path, Iterable):
        return None
    paths = list(path) if isinstance(path, list | tuple) else []
    found = [one for one in paths if is_pack(one)]
    if found and len(paths) > 1:
        raise DataError(f"{os.fspath(found[0])} is a pack, which is read alone; name only it.")
    return found[0] if found else None


def refuse_options(given: dict[str, Any]) -> None:
    """Refuse options of reading that were decided when the pack was made."""
    for name, value in given.items():
        if (name, value) in (("duplicates", "keep"), ("kinds", "all"), ("kinds", ["all"])):
            continue  # the rows of a pack, as they are
        raise ParameterError(
            f"{option(name, value if isinstance(value, str) else 'VALUE')} is for files, and a "
            "pack is given; leave it out, or pack the files again with it."
        )


def labels_of_pack(path: Any, *, keep_order: bool = False) -> Annotations:
    """Return the annotations of a pack in memory, as if the files behind it had been read."""
    pack = Pack(path)
    summary = pack.summary
    require_memory(
        BYTES_PER_LABEL * summary.n_annotations + BYTES_PER_TASK * summary.n_tasks,
        f"The {summary.n_annotations} labels of {os.fspath(path)} would",
        for_reader(
            "use wisecrowd.fit_pack, which reads one shard at a time",
            "aggregate them with --engine files, which reads one shard at a time",
        ),
    )
    if keep_order and "timestamp.npy" not in summary.shards[0].files:
        raise DataError(
            f"{os.fspath(path)} has no timestamps, so the order of its answers is not known; give "
            "the files behind it."
        )
    check_vocabularies(pack)
    tasks, code = _tasks_of(pack)
    parts = [_shard_columns(pack, number) for number in range(len(summary.shards))]
    size = np.concatenate([part.pop("size") for part in parts])
    columns = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    order = np.argsort(code, kind="stable")  # positions of the tasks in the order of their ids
    start = np.cumsum(size) - size
    new_size = size[order]
    first = np.cumsum(new_size) - new_size
    rows = np.repeat(start[order] - first, new_size) + np.arange(int(size.sum()))
    columns = {name: values[rows] for name, values in columns.items()}
    task = np.repeat(np.arange(len(tasks), dtype=np.int32), new_size)
    return pack.kind.in_memory(pack, task, tasks, columns)


def gold_of_pack(path: Any) -> dict[Any, Any] | None:
    """Return the known classes or numbers of a pack by task, or None if it has none."""
    pack = Pack(path)
    if not pack.summary.n_gold:
        return None
    known: dict[Any, Any] = {}
    for number in range(len(pack.summary.shards)):
        gold = open_column(pack, number, "gold")
        if gold is not None:
            rows = np.flatnonzero(pack.kind.known(gold))
            ids = pack.tasks(number).take(rows).to_pylist()
            values = pack.classes[gold[rows]] if pack.kind.of_classes else gold[rows]
            known |= dict(zip(ids, values.tolist(), strict=True))
    return known


def _tasks_of(pack: Pack) -> tuple[NDArray[Any], NDArray[np.int32]]:
    """Return the sorted task ids, and the code of each task in the order of the shards."""
    import pyarrow as pa

    ids = [pack.tasks(number) for number in range(len(pack.summary.shards))]
    encoded = encode(pa.chunked_array(ids), "task")
    if len(encoded.vocabulary) != pack.summary.n_tasks or (encoded.codes < 0).any():
        raise pack.damaged(TASKS, "a task is there twice or has no name")
    return encoded.vocabulary, encoded.codes


def _shard_columns(pack: Pack, number: int) -> dict[str, NDArray[Any]]:
    """Return size of each task, worker, answer and optional columns of each annotation."""
    shard, K = check_shard(pack, number), max(len(pack.classes), 1)
    cell, size = shard.cell, np.diff(shard.indptr)
    pattern = open_column(pack, number, "pattern")
    if pattern is not None:
        start, size = shard.indptr[:-1][pattern], size[pattern]
        first = np.cumsum(size) - size
        cell = cell[np.repeat(start - first, size) + np.arange(int(size.sum()))]
    columns = {"size": size, "worker": shard.workers[cell // K], **shard.payload}
    if pack.kind.of_classes:
        columns["label"] = (cell % K).astype(np.int32)
    optional = {"weight": shard.weight, "timestamp": open_column(pack, number, "timestamp")}
    return columns | {name: values for name, values in optional.items() if values is not None}
