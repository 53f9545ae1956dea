"""Moments of a pack: pair tables and soft votes as sums over shards.

Moment methods use labels only through such sums. :class:`PackedMoments` therefore stands where they
take the labels in memory.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.exceptions import DataError
from wisecrowd.core.types import Floats, Ints
from wisecrowd.kernels import kernels_for
from wisecrowd.kinds.classes.container import CrowdLabels
from wisecrowd.kinds.classes.families.moments.moment_method import (
    in_classes,
    labels_of_classes,
    vote_counts,
    vote_shares,
)
from wisecrowd.kinds.classes.families.moments.pair_moments import (
    PairMoments,
    agreed_classes,
    agreement_with_votes,
    counted_annotations,
    pair_moments,
    require_tables,
    selected_pairs,
    share_of_labels,
    with_gold_worker,
)
from wisecrowd.kinds.classes.families.skill_vote import (
    Pairs,
    beyond_chance,
    pair_agreement,
    vote_agreement,
)
from wisecrowd.kinds.classes.kernels.posteriors import soft_votes
from wisecrowd.kinds.classes.packed.shard import PackedShard
from wisecrowd.kinds.classes.prior import TaskPrior, certain_classes

MOST_PAIRS = 20_000_000  # pairs of workers who share a task, 16 bytes each


@dataclass(frozen=True, eq=False)
class PairTable:
    """Sums over the tasks that pairs of workers share, as a sparse table.

    Attributes
    ----------
    key : (n_pairs,) int64
        First worker times workers plus second worker, sorted.
    values : (n_pairs, n)
        The weight of the shared tasks and, in a second column, of those with equal labels.
    """

    key: NDArray[np.int64]
    values: Floats

    def __add__(self, other: PairTable) -> PairTable:
        """Return the sum; too many pairs are refused."""
        both = np.concatenate([self.key, other.key])
        key, place = np.unique(both, return_inverse=True)
        require_pairs(len(key))
        parts = np.concatenate([self.values, other.values])
        columns = [np.bincount(place, column, len(key)) for column in parts.T]
        return PairTable(key, np.stack(columns, axis=1).astype(np.float64, copy=False))


def require_pairs(n_pairs: int) -> None:
    """Refuse a table of more pairs than one process should hold."""
    if n_pairs > MOST_PAIRS:
        raise DataError(
            f"More than {MOST_PAIRS} pairs of workers share tasks, and the table of pairs holds no "
            "more; use one-coin or dawid-skene, which need no pairs."
        )


class VoteSums(NamedTuple):
    """Additive sums over tasks.

    Attributes
    ----------
    agreed : (n_classes,)
        Number of shards in which two workers gave a class to the same task.
    labels : (n_workers, n_classes)
        Weight of each worker's labels.
    votes : (n_workers, n_classes, n_classes)
        The same by the soft vote of the task, which is second.
    mass : (n_classes,)
        Sum of the soft votes of labelled tasks.
    """

    agreed: Floats
    labels: Floats
    votes: Floats
    mass: Floats


class TableSums(NamedTuple):
    """Additive: joint label counts (n_pairs, n_classes, n_classes) of pairs of workers."""

    counts: Floats


class SharedSums(NamedTuple):
    """Additive: weights of shared tasks."""

    table: PairTable


class AgreementSums(NamedTuple):
    """Additive: weights of shared tasks and equal labels, and agreement (J,) with the vote."""

    table: PairTable
    agreement: Floats


@dataclass(frozen=True, eq=False)
class MomentModel:
    """Sums of the shards of a pack.

    Attributes
    ----------
    kept : (n_classes,)
        Classes that count; labels of others are left out.
    n_workers : int
        With one more worker at the end, who gave the gold labels, if there are any.
    """

    kept: Ints
    n_workers: int

    def begin(self, shard: PackedShard) -> tuple[CrowdLabels, Floats]:
        """Return the labels of a shard in memory, and the number of tasks of each row."""
        task = np.repeat(np.arange(shard.n_tasks, dtype=np.int32), np.diff(shard.indptr))
        ids = np.arange(shard.n_tasks), np.arange(shard.n_workers), np.arange(shard.n_classes)
        labels = CrowdLabels(task, shard.worker, shard.label, *ids, weight=shard.weight)
        prior = TaskPrior(shard.prior_rows, shard.prior_index)
        labels = with_gold_worker(labels, certain_classes(prior, shard.n_tasks))
        labels = labels_of_classes(labels, self.kept)
        times = np.ones(shard.n_tasks) if shard.repeat is None else np.asarray(shard.repeat)
        return labels, times

    def look(
        self, shard: PackedShard, state: tuple[CrowdLabels, Floats], params: None
    ) -> tuple[None, VoteSums]:
        """Return the soft votes of one shard."""
        labels, times = state
        J, K = self.n_workers, len(self.kept)
        weight = labels.weights * times[labels.task]
        cell = labels.worker.astype(np.int64) * K + labels.label
        start = soft_votes(labels.indptr, labels.label, labels.weight, K)
        votes = np.empty((J, K, K))
        for k in range(K):
            votes[:, k] = np.bincount(cell, start[labels.task, k] * weight, J * K).reshape(J, K)
        labelled = times * (labels.labels_per_task > 0)
        of_workers = np.bincount(cell, weight, J * K).reshape(J, K).astype(np.float64)
        agreed = agreed_classes(labels).astype(np.float64)
        return None, VoteSums(agreed, of_workers, votes, labelled @ start)

    def share(
        self, shard: PackedShard, state: tuple[CrowdLabels, Floats], params: None
    ) -> tuple[None, SharedSums]:
        """Return the weight of the tasks that pairs of workers share in one shard."""
        task, worker, _, weight = _for_pairs(*state)
        per_task = np.bincount(task, minlength=1).astype(np.float64)
        require_tables(8 * min(float((per_task**2).sum()), float(self.n_workers) ** 2))
        kernel = kernels_for("pairs", shard.work)
        first, second, shared = kernel.shared_weight(task, worker, weight, self.n_workers, 0.0)
        require_pairs(len(first))
        key = first.astype(np.int64) * self.n_workers + second
        return None, SharedSums(PairTable(key, shared[:, None]))

    def agree(
        self, shard: PackedShard, state: tuple[CrowdLabels, Floats], params: None
    ) -> tuple[None, AgreementSums]:
        """Return how often pairs of workers agree in one shard, and workers with the vote."""
        labels, times = state
        table = self.share(shard, state, None)[1].table
        task, worker, label, weight = _for_pairs(labels, times)
        cell = np.unique(task.astype(np.int64) * len(self.kept) + label, return_inverse=True)[1]
        order = np.lexsort((worker, cell))
        first, second, equal = kernels_for("pairs", shard.work).shared_weight(
            cell[order], worker[order], weight[order], self.n_workers, 0.0
        )
        both = np.zeros((len(table.key), 2))
        both[:, :1] = table.values
        place = np.searchsorted(table.key, first.astype(np.int64) * self.n_workers + second)
        both[place, 1] = equal
        prior = TaskPrior(shard.prior_rows, shard.prior_index)
        gold = certain_classes(prior, shard.n_tasks)
        mine = labels.select_annotations(labels.worker < self.n_workers - 1)
        agreement = np.zeros(self.n_workers)
        found = agreement_with_votes(mine, gold, times)
        agreement[: len(found)] = found
        return None, AgreementSums(PairTable(table.key, both), agreement[:-1])

    def count(
        self, shard: PackedShard, state: tuple[CrowdLabels, Floats], params: tuple[Ints, Ints]
    ) -> tuple[None, TableSums]:
        """Return the joint label counts of pairs ``params`` (first, second) in one shard."""
        counts = kernels_for("pairs", shard.work).pair_counts(
            *_for_pairs(*state), *params, self.n_workers, len(self.kept)
        )
        return None, TableSums(counts)


def _for_pairs(labels: CrowdLabels, times: Floats) -> tuple[Ints, Ints, Ints, Floats]:
    """Return annotations whose products of weights count a row as often as it is repeated."""
    task, worker, label, weight = counted_annotations(labels)
    return task, worker, label, weight * np.sqrt(times[task])


@dataclass(frozen=True, eq=False)
class PackedMoments:
    """The labels of a pack, as far as moment methods use them.

    Attributes
    ----------
    shards : PackShards
    classes : (n_classes,)
    model : MomentModel
    """

    shards: Any
    classes: NDArray[Any]
    model: MomentModel

    @property
    def n_workers(self) -> int:
        """Number of workers, with the one who gave the gold labels."""
        return self.model.n_workers

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return len(self.classes)

    @property
    def class_totals(self) -> Floats:
        """(n_classes,) weight of the labels of each class."""
        return np.asarray(self.sums.labels.sum(axis=0))

    @property
    def worker_totals(self) -> Floats:
        """(n_workers,) weight of each worker's labels."""
        return np.asarray(self.sums.labels.sum(axis=1))

    @cached_property
    def sums(self) -> VoteSums:
        """The soft votes of all tasks."""
        found: VoteSums = self.run("look", None)
        return found

    @cached_property
    def shared(self) -> PairTable:
        """The weight of the tasks that pairs of workers share."""
        found: SharedSums = self.run("share", None)
        return found.table

    def run(self, step: str, params: Any) -> Any:
        """Return the statistics of a step over all shards."""
        return self.shards.map_reduce(self.model, step, self.shards.begin(self.model), params)[1]


@dataclass(frozen=True, eq=False)
class PackedAgreement:
    """The labels of a pack, as far as methods use them that only ask who agrees with whom.

    Attributes
    ----------
    shards : PackShards
    n_workers, n_classes : int
    worker_totals : (n_workers,)
        Weight of each worker's labels.
    """

    shards: Any
    n_workers: int
    n_classes: int
    worker_totals: Floats

    @cached_property
    def sums(self) -> AgreementSums:
        """Agreement of pairs, gold labels being those of one more worker, and with the vote."""
        model = MomentModel(np.arange(self.n_classes), self.n_workers + 1)
        found: AgreementSums = self.shards.map_reduce(
            model, "agree", self.shards.begin(model), None
        )[1]
        return found


# --------------------------------------------- what methods ask of labels, answered by these sums


@agreed_classes.register
def _(labels: PackedMoments) -> NDArray[np.bool_]:
    return labels.sums.agreed > 0


@in_classes.register
@labels_of_classes.register
def _(labels: PackedMoments, kept: Ints) -> PackedMoments:
    model = MomentModel(labels.model.kept[kept], labels.model.n_workers)
    return PackedMoments(labels.shards, labels.classes[kept], model)


@vote_counts.register
def _(labels: PackedMoments, start: None) -> Floats:
    return labels.sums.votes


@vote_shares.register
def _(labels: PackedMoments, start: None) -> Floats:
    return np.asarray(labels.sums.mass / labels.sums.mass.sum())


@pair_moments.register
def _(
    labels: PackedMoments, *, min_shared: float, max_pairs: int, rng: np.random.Generator
) -> PairMoments:
    J, K = labels.n_workers, labels.n_classes
    weight = labels.shared.values[:, 0]
    enough = weight >= min_shared
    key, weight = labels.shared.key[enough], weight[enough]
    pairs = (key // J).astype(np.int32), (key % J).astype(np.int32), weight
    (first, second, weight), left_out = selected_pairs(*pairs, max_pairs, rng)
    require_tables(24.0 * len(first) * K * K)
    found: TableSums = labels.run("count", (first, second))
    shares = share_of_labels(labels.sums.labels)
    return PairMoments(first, second, found.counts, weight, J, K, shares, left_out)


@vote_agreement.register
def _(labels: PackedAgreement, gold: Ints) -> Floats:
    return labels.sums.agreement


@pair_agreement.register
def _(labels: PackedAgreement, gold: Ints) -> Pairs:
    table, n_workers = labels.sums.table, labels.n_workers + 1
    low, high = table.key // n_workers, table.key % n_workers
    first, second = np.concatenate([low, high]), np.concatenate([high, low])  # both ways
    order = np.lexsort((second, first))
    common, equal = np.tile(table.values.T, 2)[:, order]
    agreement = beyond_chance(equal, common, labels.n_classes)
    return Pairs(first[order], second[order].astype(np.int32), agreement, common, n_workers)
