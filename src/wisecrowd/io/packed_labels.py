"""Packs as labels in memory, for every command that reads labels."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.exceptions import DataError, ParameterError
from wisecrowd.core.ids.encoding import encode
from wisecrowd.core.labels import CrowdLabels
from wisecrowd.core.memory_check import require_memory
from wisecrowd.core.messages.option_spelling import for_reader, option
from wisecrowd.engines.packs import Pack, is_pack

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


def labels_of_pack(path: Any, *, keep_order: bool = False) -> CrowdLabels:
    """Return the labels of a pack in memory, as if the files behind it had been read."""
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
    return CrowdLabels(
        np.repeat(np.arange(len(tasks), dtype=np.int32), new_size),
        columns.pop("worker"),
        columns.pop("label"),
        tasks,
        pack.workers,
        pack.classes,
        weight=columns.pop("weight", None),
        columns=columns,
        notes=tuple(summary.notes),
        ordered=summary.ordered,
    )


def gold_of_pack(path: Any) -> dict[Any, Any] | None:
    """Return the known classes of a pack by task, or None if it has none."""
    pack = Pack(path)
    if not pack.summary.n_gold:
        return None
    known: dict[Any, Any] = {}
    for number in range(len(pack.summary.shards)):
        gold = pack.array(number, "gold")
        if gold is not None:
            rows = np.flatnonzero(gold >= 0)
            ids = pack.tasks(number).take(rows).to_pylist()
            known |= dict(zip(ids, pack.classes[gold[rows]].tolist(), strict=True))
    return known


def _tasks_of(pack: Pack) -> tuple[NDArray[Any], NDArray[np.int32]]:
    """Return the sorted task ids, and the code of each task in the order of the shards."""
    import pyarrow as pa

    ids = [pack.tasks(number) for number in range(len(pack.summary.shards))]
    encoded = encode(pa.chunked_array(ids), "task")
    return encoded.vocabulary, encoded.codes


def _shard_columns(pack: Pack, number: int) -> dict[str, NDArray[Any]]:
    """Return size of each task, worker, label and optional columns of each annotation."""
    K = len(pack.classes)
    indptr, cell = pack.required(number, "indptr"), pack.required(number, "cell")
    size = np.diff(indptr)
    pattern = pack.array(number, "pattern")
    if pattern is not None:
        start, size = indptr[:-1][pattern], size[pattern]
        first = np.cumsum(size) - size
        cell = cell[np.repeat(start - first, size) + np.arange(int(size.sum()))]
    workers = pack.required(number, "workers")
    columns = {
        "size": size,
        "worker": workers[cell // K].astype(np.int32),
        "label": (cell % K).astype(np.int32),
    }
    for name in ("weight", "timestamp"):
        values = pack.array(number, name)
        if values is not None:
            columns[name] = values
    return columns
