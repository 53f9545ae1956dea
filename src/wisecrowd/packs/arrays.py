"""The arrays of a shard: the only place that opens them, for every engine and kind.

``open_shard`` refuses what compiled code would follow anywhere, at every opening. ``check_shard``
also compares digests and looks at what would change results without a word: workers out of order or
twice in a task. It takes a pass over the shard, and every fit and every command does it once.
Digests alone are not enough, because a script that writes a pack makes them fit.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.types import Floats, Ints
from wisecrowd.packs.pack import Pack

_DISORDER = "not sorted, or one is there twice"
_LARGEST = float(np.finfo(np.float64).max)


@dataclass(frozen=True, eq=False)
class ShardArrays:
    """The arrays that a pass over a shard reads, mapped into memory; compiled code may trust them.

    Attributes
    ----------
    indptr : (n_rows + 1,)
    cell : (n_cells,)
        Local worker times classes plus label; of other kinds the local worker.
    workers : (n_local_workers,)
    weight : (n_annotations,), optional
    gold : (n_tasks,), optional
    repeat : (n_rows,), optional
    payload : mapping of name to (n_annotations,)
        What numbers and pairs have in place of a label.
    """

    indptr: NDArray[np.int64]
    cell: Ints
    workers: NDArray[np.int32]
    weight: Floats | None
    gold: NDArray[Any] | None
    repeat: Floats | None
    payload: dict[str, NDArray[Any]]

    @property
    def worker(self) -> NDArray[np.int32]:
        """(n_cells,): the worker of each annotation, of kinds whose cells are local workers."""
        return np.asarray(self.workers[self.cell])


class _Wanted(NamedTuple):
    """What an array must be: its types, its length, and the least and largest value.

    NaN is refused where there are limits, unless ``gaps`` allows it.
    """

    types: tuple[str, ...]
    size: int | None
    least: float = -np.inf
    most: float = np.inf
    gaps: bool = False


def open_shard(pack: Pack, number: int) -> ShardArrays:
    """Return the arrays of a shard, or refuse those that do not fit together."""
    info = pack.summary.shards[number]
    found = ShardArrays(
        _required(pack, number, "indptr"),
        _required(pack, number, "cell"),
        _required(pack, number, "workers"),
        _opened(pack, number, "weight"),
        _opened(pack, number, "gold"),
        _opened(pack, number, "repeat"),
        {name: _required(pack, number, name) for name in pack.kind.payload},
    )
    indptr, repeat = found.indptr, found.repeat
    if indptr[0] != 0 or indptr[-1] != len(found.cell) or (indptr[1:] < indptr[:-1]).any():
        raise _damaged(pack, number, "indptr", "its rows do not lead to the annotations")
    if repeat is not None and (
        repeat.sum() != info.n_tasks or repeat @ np.diff(indptr) != info.n_annotations
    ):
        raise _damaged(pack, number, "repeat", "it counts other tasks than there are")
    return found


def check_shard(pack: Pack, number: int) -> ShardArrays:
    """Return the arrays of a shard whose content is that of the pack when it was made.

    Digests may have been made to fit. What no pack has is refused therefore all the same.
    """
    found = open_shard(pack, number)
    info = pack.summary.shards[number]
    for name in ("indptr", "cell", "workers", "weight", "gold", "repeat", *found.payload):
        if f"{name}.npy" in info.files:
            pack.require_digest(pack.name_of(number, f"{name}.npy"))
    if (found.workers[1:] <= found.workers[:-1]).any():
        raise _damaged(pack, number, "workers", f"its workers are {_DISORDER}")
    if not _in_order(found, pack):
        raise _damaged(pack, number, "cell", f"the workers of a task are {_DISORDER}")
    fault = pack.kind.fault(found.payload)
    if fault is not None:
        raise _damaged(pack, number, *fault)
    return found


def check_vocabularies(pack: Pack) -> None:
    """Refuse ids and totals that are not those of the pack."""
    _ = pack.workers, pack.worker_totals
    if pack.kind.about_items:
        _ = pack.items


def open_column(pack: Pack, number: int, name: str) -> NDArray[Any] | None:
    """Return an array that is read once, such as timestamps; None if the shard does not have it."""
    found = _opened(pack, number, name)
    if found is not None:
        pack.require_digest(pack.name_of(number, f"{name}.npy"))
        if name == "pattern":
            rows = np.bincount(found, minlength=pack.summary.shards[number].n_rows)
            if not np.array_equal(rows, _required(pack, number, "repeat")):
                raise _damaged(pack, number, name, "its tasks are not those that rows count")
    return found


def _required(pack: Pack, number: int, name: str) -> NDArray[Any]:
    found = _opened(pack, number, name)
    if found is None:
        raise _damaged(pack, number, name, "it is missing")
    return found


def _opened(pack: Pack, number: int, name: str) -> NDArray[Any] | None:
    """Return an array of a shard whose type, length and range of values are right."""
    file = f"{name}.npy"
    if file not in pack.summary.shards[number].files:
        return None
    found, wanted = pack.map_file(pack.name_of(number, file)), _wanted(pack, number, name)
    if str(found.dtype) not in wanted.types or not found.dtype.isnative:
        raise _damaged(pack, number, name, f"it has the type {str(found.dtype)[:40]} instead of "
                       f"{wanted.types[0]}")  # fmt: skip
    if found.ndim != 1 or wanted.size not in (None, len(found)):
        shape = "x".join(map(str, found.shape)) or "1"
        size = "one row" if wanted.size is None else str(wanted.size)
        raise _damaged(pack, number, name, f"it has {shape} values instead of {size}")
    _require_range(pack, number, name, found, wanted)
    return found


def _require_range(
    pack: Pack, number: int, name: str, found: NDArray[Any], wanted: _Wanted
) -> None:
    if found.dtype.kind == "M":
        return  # every moment is one
    values = found[~np.isnan(found)] if wanted.gaps else found
    if not len(values):
        return
    least, most = values.min(), values.max()
    for end, fine in ((least, wanted.least <= least), (most, most <= wanted.most)):
        if not fine:  # also NaN
            raise _damaged(pack, number, name, f"it has the value {end}, which cannot be")


def _wanted(pack: Pack, number: int, name: str) -> _Wanted:
    """Return what an array of a shard must be."""
    summary, info = pack.summary, pack.summary.shards[number]
    n_classes, n_annotations = len(summary.classes), info.n_annotations
    most_cell = info.n_local_workers * max(n_classes, 1) - 1
    if name in pack.kind.payload:
        return _Wanted((pack.kind.payload[name],), n_annotations, *pack.kind.ranges(pack)[name])
    gold = _Wanted(("float64",), info.n_tasks, -_LARGEST, _LARGEST, gaps=True)
    if pack.kind.of_classes:
        gold = _Wanted(("int32",), info.n_tasks, -1, n_classes - 1)
    times = ("float64", "datetime64[us]")
    return {
        "indptr": _Wanted(("int64",), info.n_rows + 1, 0),
        "cell": _Wanted(
            ("int32", "int64"), None if summary.patterns else n_annotations, 0, most_cell
        ),
        "workers": _Wanted(("int32",), info.n_local_workers, 0, summary.n_workers - 1),
        "pattern": _Wanted(("int32",), info.n_tasks, 0, info.n_rows - 1),
        "repeat": _Wanted(("float64",), info.n_rows, 1, info.n_tasks),
        "weight": _Wanted(("float64",), n_annotations, 0, _LARGEST),
        "timestamp": _Wanted(times, n_annotations, -_LARGEST, _LARGEST, gaps=True),
        "gold": gold,
    }[name]


def _in_order(found: ShardArrays, pack: Pack) -> bool:
    """Return whether the workers of every task are sorted, and different if they have to be."""
    order, n_labels = found.cell, len(pack.summary.classes)
    if not pack.summary.keeps_repeats and n_labels > 1:
        order = order // order.dtype.type(n_labels)
    down = order[1:] < order[:-1] if pack.summary.keeps_repeats else order[1:] <= order[:-1]
    inside = np.ones(len(order) + 1, dtype=bool)
    inside[found.indptr] = False  # the first annotation of a task follows nobody
    return not bool((down & inside[1:-1]).any()) if len(order) else True


def _damaged(pack: Pack, number: int, name: str, why: str) -> Exception:
    return pack.damaged(pack.name_of(number, f"{name}.npy"), why)
