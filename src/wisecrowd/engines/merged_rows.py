"""Distinct rows of all shards of a pack as one shard, if tasks with the same labels share rows.

Tasks with the same labels lie in different shards. A fit needs each distinct row once, with the
number of its tasks in the whole pack: five judges make at most a few hundred rows at any size.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from wisecrowd.engines.packed_shard import PackedShard, load_shard, stored_cells
from wisecrowd.engines.packs import Pack
from wisecrowd.engines.task_patterns import find_patterns

MOST_CELLS = 1 << 23  # labels in the rows of all shards; more are processed by shards
MERGED = -1  # place of the merged shard among those that an open pack keeps


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
