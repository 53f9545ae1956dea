"""Tasks with exactly the same labels, which share one row of a pack.

Tasks with the same labels lie in different shards. A fit needs each distinct row once, with the
number of its tasks in the whole pack: five judges make at most a few hundred rows at any size.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.types import Ints
from wisecrowd.kinds.classes.packed.shard import PackedShard, stored_cells
from wisecrowd.packs.pack import Pack, load_shard

MOST_CELLS = 1 << 23  # labels in the rows of all shards; more are processed by shards
MERGED = -1  # place of the merged shard among those that an open pack keeps

_FACTORS = (np.uint64(0x9E3779B97F4A7C15), np.uint64(0xFF51AFD7ED558CCD))


class Patterns(NamedTuple):
    """Distinct rows of labels.

    Attributes
    ----------
    pattern : (n_tasks,) int32
        The row of each task.
    repeat : (n_rows,) int64
        Tasks that share a row.
    first : (n_rows,) int64
        The first task of a row.
    """

    pattern: NDArray[np.int32]
    repeat: NDArray[np.int64]
    first: NDArray[np.int64]


def find_patterns(indptr: NDArray[np.int64], cell: Ints) -> Patterns:
    """Return which tasks have the same cells, in the order of their first tasks.

    Tasks are compared by a sum of mixed cells, then cell by cell. Two different rows with the same
    sum are left apart, so rows are exact.

    Examples
    --------
    >>> find_patterns(np.array([0, 2, 3, 5]), np.array([1, 4, 1, 1, 4]))
    Patterns(pattern=array([0, 1, 0], dtype=int32), repeat=array([2, 1]), first=array([0, 1]))
    """
    n = len(indptr) - 1
    size = np.diff(indptr)
    with np.errstate(over="ignore"):
        mixed = (cell.astype(np.uint64) + np.uint64(1)) * _FACTORS[0]
        mixed ^= mixed >> np.uint64(29)
        mixed *= _FACTORS[1]
        total = np.append(np.uint64(0), np.cumsum(mixed))
        key = (total[indptr[1:]] - total[indptr[:-1]]) * _FACTORS[0] + size.astype(np.uint64)
    _, first, group = np.unique(key, return_index=True, return_inverse=True)
    leader = first[group]
    alone = _differs(indptr, cell, leader)
    leader = np.where(alone, np.arange(n), leader)
    heads, pattern, repeat = np.unique(leader, return_inverse=True, return_counts=True)
    return Patterns(pattern.astype(np.int32), repeat.astype(np.int64), heads.astype(np.int64))


def _differs(indptr: NDArray[np.int64], cell: Ints, leader: Ints) -> NDArray[np.bool_]:
    """Return (n_tasks,): whether a task differs from its leader."""
    size = np.diff(indptr)
    differs = np.asarray(size != size[leader])
    shift = np.repeat(np.where(differs, 0, indptr[leader] - indptr[:-1]), size)
    other = cell[np.arange(len(cell)) + shift] != cell
    task = np.repeat(np.arange(len(size)), size)
    differs[task[other]] = True
    return differs


def merged_rows(pack: Pack) -> PackedShard | None:
    """Return all distinct rows as one shard, or None if rows are tasks or there are many rows.

    Rows are in the order of their first shard, and counts are exact, so the table is the same
    wherever it is made.
    """
    if not pack.summary.patterns or stored_cells(pack) > MOST_CELLS:
        return None
    if MERGED not in pack.kept:
        pack.kept[MERGED] = _merged(pack)
    found: PackedShard = pack.kept[MERGED]
    return found


def _merged(pack: Pack) -> PackedShard:
    shards: list[PackedShard] = [
        load_shard(pack, number) for number in range(len(pack.summary.shards))
    ]
    size = np.concatenate([np.diff(shard.indptr) for shard in shards])
    indptr = np.append(0, np.cumsum(size)).astype(np.int64)
    cell = np.concatenate([shard.cell.astype(np.int64) for shard in shards])
    found = find_patterns(indptr, cell)
    repeat = np.bincount(found.pattern, np.concatenate([_repeats(shard) for shard in shards]))
    first, kept = indptr[found.first], size[found.first]
    indptr = np.append(0, np.cumsum(kept)).astype(np.int64)
    rows = np.repeat(first - indptr[:-1], kept) + np.arange(indptr[-1])
    return replace(
        shards[0],
        number=MERGED,
        tasks=slice(0, len(kept)),
        indptr=indptr,
        local_cell=cell[rows],
        local_workers=np.arange(pack.summary.n_workers, dtype=np.int32),
        repeat=repeat.astype(np.float64),
    )


def _repeats(shard: PackedShard) -> NDArray[np.float64]:
    return np.ones(shard.n_tasks) if shard.repeat is None else np.asarray(shard.repeat)
