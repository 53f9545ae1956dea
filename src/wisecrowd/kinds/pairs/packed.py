"""Packs of pairs: shards of comparisons, the pack as the data of a problem, and sums of votes.

Votes are reduced to counts per pair of items once. Everything that climbs a likelihood then runs on
these counts, in memory; only intervals by workers and the agreement of workers need more passes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.exceptions import DataError
from wisecrowd.core.ids.encoding import Encoded
from wisecrowd.core.result import Fit
from wisecrowd.core.statistics import sigmoid
from wisecrowd.core.types import Floats
from wisecrowd.kinds.pairs.answers import ItemAnswers
from wisecrowd.kinds.pairs.container import CrowdPairs
from wisecrowd.kinds.pairs.methods.comparisons import Votes, agreeing, agreement_share
from wisecrowd.kinds.pairs.methods.covariance import (
    MOST_DENSE,
    Clusters,
    cluster_meat,
    gram,
    named_clusters,
)
from wisecrowd.kinds.pairs.outcomes import TIE
from wisecrowd.packs.answers import AnswerParts
from wisecrowd.packs.arrays import open_shard
from wisecrowd.packs.kind import PackedData, PackedKind
from wisecrowd.packs.pack import Pack

BLOCK = 1 << 23  # sums of workers by item that one pass returns


class PackedComparisons(PackedKind):
    """Packs of pairs: cells are local workers, and the payload has both items and the outcome."""

    container: ClassVar[type[CrowdPairs]] = CrowdPairs
    payload: ClassVar[Mapping[str, str]] = {"left": "int32", "right": "int32", "outcome": "int8"}
    lists: ClassVar[Mapping[str, int]] = {"outcome_totals": 3}
    answer_columns: ClassVar[frozenset[str]] = frozenset({"item", "score", "rank"})
    keeps_repeats: ClassVar[bool] = True

    def ranges(self, pack: Pack) -> dict[str, tuple[float, float]]:
        """Return the least and the largest value of each array of the payload."""
        last = len(pack.items) - 1
        return {"left": (0, last), "right": (0, last), "outcome": (0, TIE)}

    def fault(self, payload: Mapping[str, NDArray[Any]]) -> tuple[str, str] | None:
        """Say whether an item is compared with itself."""
        same = (payload["left"] == payload["right"]).any()
        return ("right", "an item is compared with itself") if same else None

    def in_memory(
        self, pack: Pack, task: NDArray[np.int32], tasks: NDArray[Any],
        columns: dict[str, NDArray[Any]],
    ) -> CrowdPairs:  # fmt: skip
        """Return the comparisons in memory, sorted and named as those of a table."""
        left, right = (Encoded(columns.pop(side), pack.items) for side in ("left", "right"))
        return CrowdPairs.from_arrays(
            Encoded(task, tasks) if pack.summary.has_tasks else None,
            Encoded(columns.pop("worker"), pack.workers), left, right, columns.pop("outcome"),
            items=pack.items, duplicates="keep", notes=tuple(pack.summary.notes), **columns,
        )  # fmt: skip

    def load(self, pack: Pack, number: int) -> PackedPairShard:
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

    def problem_of(self, pack: Pack, parts: AnswerParts) -> tuple[PackedPairs, None]:
        """Return a pack as the data of a problem, and its prior."""
        return PackedPairs(pack, parts), None

    def capped(self, fit: Fit, most: float) -> Fit:
        """Return the fit with less certain scores."""
        return replace(fit, answers=ItemAnswers.of(fit.answers).capped(most))

    def learned(self, pack: Pack, fit: Fit) -> dict[str, Any]:
        """Return the items, and the attributes of their scores."""
        return {"items_": pack.items, **fit.answers.attributes({})}

    def item_table(self, learned: Mapping[str, Any]) -> dict[str, NDArray[Any]]:
        """Return one row per item, the best first."""
        table = ItemAnswers.main_columns(learned)
        order = table["rank"].argsort(kind="stable")
        return {name: values[order] for name, values in table.items()}


PACKED = PackedComparisons()


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

    def count_votes(self, shards: Any, ties: str) -> ShardVotes:
        """Return the votes of all shards, of which methods take the sums that they need."""
        return ShardVotes(self, shards, ties)


@dataclass(frozen=True)
class VoteSteps:
    """Sums over the votes of a shard; every step returns a tuple of statistics.

    Attributes
    ----------
    n_items, n_workers : int
    ties : {"half", "drop"}
    """

    n_items: int
    n_workers: int
    ties: str

    def begin(self, shard: PackedPairShard) -> None:
        """Return None: a shard has no state."""

    def count(
        self, shard: PackedPairShard, state: Any, params: Any
    ) -> tuple[Any, tuple[Floats, Floats, int]]:
        """Return votes (pairs, 3) by outcome, votes of each item, and tasks with votes."""
        n, turned = self.n_items, shard.left > shard.right
        low = np.where(turned, shard.right, shard.left).astype(np.int64)
        high = np.where(turned, shard.left, shard.right)
        won = np.where(shard.outcome == TIE, np.int64(TIE), shard.outcome ^ turned)
        pair = low * (2 * n - low - 1) // 2 + high - low - 1
        size = n * (n - 1) // 2
        table = np.bincount(pair * 3 + won, shard.weight, 3 * size).reshape(size, 3)
        both = np.bincount(shard.left, minlength=n) + np.bincount(shard.right, minlength=n)
        voted = np.bincount(shard.task, shard.weight, len(shard.indptr) - 1) > 0
        return state, (table.astype(np.float64), both.astype(np.float64), int(voted.sum()))

    def worker_sums(
        self, shard: PackedPairShard, state: Any, params: tuple[Floats, int, int]
    ) -> tuple[Any, tuple[Floats]]:
        """Return the gradient of a block of workers, (workers, n_items)."""
        scores, first, last = params
        mine = (shard.worker >= first) & (shard.worker < last)
        pull = self._pull(shard, scores)[mine]
        row = (shard.worker[mine].astype(np.int64) - first) * self.n_items
        size = (last - first) * self.n_items
        found = np.bincount(row + shard.left[mine], pull, size).astype(np.float64)
        found -= np.bincount(row + shard.right[mine], pull, size)
        return state, (found.reshape(last - first, self.n_items),)

    def task_meat(
        self, shard: PackedPairShard, state: Any, scores: Floats
    ) -> tuple[Any, tuple[Floats]]:
        """Return the sum over tasks of the outer products of their gradients."""
        pull, n = self._pull(shard, scores), self.n_items
        if not len(pull):
            return state, (np.zeros((n, n)),)
        nothing = np.zeros((len(pull), 0))
        meat = cluster_meat(shard.left, shard.right, pull, shard.task, nothing, n)
        return state, (np.ascontiguousarray(meat),)

    def agree(
        self, shard: PackedPairShard, state: Any, scores: Floats
    ) -> tuple[Any, tuple[Floats]]:
        """Return the weight of each worker's votes for the item with the higher score."""
        right = agreeing(shard, scores)
        return state, (np.bincount(shard.worker, right, self.n_workers).astype(np.float64),)

    def _pull(self, shard: PackedPairShard, scores: Floats) -> Floats:
        """Return the derivative of the log-likelihood of each vote in its gap."""
        weight = shard.weights
        if self.ties == "drop":
            weight = np.where(shard.outcome == TIE, 0.0, weight)
        won = np.array([1.0, 0.0, 0.5])[shard.outcome]
        gap = scores[shard.left] - scores[shard.right]
        return np.asarray(weight * (won - sigmoid(gap)))


class ShardVotes:
    """Votes of a pack, summed over its shards.

    Parameters
    ----------
    data : PackedPairs
    shards : shards of an engine
    ties : {"half", "drop"}
    """

    def __init__(self, data: PackedPairs, shards: Any, ties: str) -> None:
        if data.n_items > MOST_DENSE:
            raise DataError(
                f"The pack has {data.n_items} items, and a fit by shards counts the pairs of at "
                f"most {MOST_DENSE}; read it into memory."
            )
        self.data, self.shards = data, shards
        self.steps = VoteSteps(data.n_items, data.n_workers, ties)
        table, both, self.n_voted_tasks = self._sum("count", None)
        self.comparisons_per_item = both.astype(np.int64)
        self.votes = self._votes(table)

    def _sum(self, step: str, params: Any) -> Any:
        return self.shards.map_reduce(self.steps, step, self.shards.begin(self.steps), params)[1]

    def _votes(self, table: Floats) -> Votes:
        left, right = np.triu_indices(self.data.n_items, 1)
        used = table.any(axis=1)
        counts = table[used]
        if self.steps.ties == "drop":
            counts[:, TIE] = 0
        n = self.data.n_items
        return Votes(left[used], right[used], None, counts, n, self.data.n_workers)

    def clusters(self, cluster: str) -> Clusters:
        """Return the clusters of the votes, without the code of each vote."""
        data = self.data
        active = int((data.worker_totals > 0).sum())
        found = named_clusters(cluster, active, data.n_annotations)
        return replace(found, number=self.n_voted_tasks) if found.by == "tasks" else found

    def meat(self, scores: Floats, clusters: Clusters) -> Floats:
        """Return the sum over clusters of the outer products of their gradients."""
        if clusters.by == "tasks":
            found: Floats = self._sum("task_meat", scores)[0]
            return found
        return gram(self._worker_blocks(scores), self.data.n_items)

    def _worker_blocks(self, scores: Floats) -> Iterator[Floats]:
        step = max(1, BLOCK // self.data.n_items)
        for first in range(0, self.data.n_workers, step):
            last = min(first + step, self.data.n_workers)
            yield self._sum("worker_sums", (scores, first, last))[0]

    def agreement(self, scores: Floats) -> tuple[Floats, Floats]:
        """Return the accuracy of workers and its standard error, (n_workers,)."""
        return agreement_share(self._sum("agree", scores)[0], self.data.worker_totals)
