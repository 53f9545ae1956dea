"""Packs of pairs: shards of comparisons, and the pack as the data of a problem."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.engines.packed_data import PackedData
from wisecrowd.engines.packs import Pack
from wisecrowd.engines.shard_arrays import open_shard

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class PackedPairShard:
    """A shard of a pack of pairs: its comparisons, by task.

    Attributes
    ----------
    number : int
    indptr : (n_tasks + 1,)
    worker, left, right, outcome : (n_annotations,)
    weight : (n_annotations,), optional
    n_workers, n_items : int
    """

    number: int
    indptr: NDArray[np.int64]
    worker: NDArray[np.int32]
    left: NDArray[np.int32]
    right: NDArray[np.int32]
    outcome: NDArray[np.int8]
    weight: Floats | None
    n_workers: int
    n_items: int

    @property
    def task(self) -> NDArray[np.int64]:
        """(n_annotations,): the task of each comparison, from 0 on."""
        return np.repeat(np.arange(len(self.indptr) - 1), np.diff(self.indptr))

    @property
    def weights(self) -> Floats:
        """(n_annotations,) weight of each comparison, 1 if none is given."""
        return np.ones(len(self.left)) if self.weight is None else self.weight


@dataclass(frozen=True, eq=False)
class PackedPairs(PackedData):
    """A pack of pairs as the data of a problem: sizes and ids, but no comparisons.

    Attributes
    ----------
    pack : Pack
    parts : AnswerParts
        Where the answers go.
    """

    @property
    def n_items(self) -> int:
        """Number of items."""
        return len(self.pack.items)

    @property
    def items(self) -> NDArray[Any]:
        """(n_items,) ids."""
        return self.pack.items


def load_pairs(pack: Pack, number: int) -> PackedPairShard:
    """Return a shard of comparisons."""
    found = open_shard(pack, number)
    return PackedPairShard(
        number,
        found.indptr,
        found.worker,
        **found.payload,
        weight=found.weight,
        n_workers=pack.summary.n_workers,
        n_items=len(pack.items),
    )
