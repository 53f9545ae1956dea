"""A pack of classes as the data of a problem, with a sample of its labels in memory.

Functions of methods that take labels in memory are registered here for packs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.problem import Problem
from wisecrowd.core.types import Floats, Ints
from wisecrowd.kinds.classes.container import ENOUGH, LEAST_SHARED, CrowdLabels
from wisecrowd.kinds.classes.families.class_prior import (
    frequencies_identified,
    shares_of_vote_if_drifted,
)
from wisecrowd.kinds.classes.families.opinion_pool import has_large_posterior
from wisecrowd.kinds.classes.families.posteriors import Start, posterior_matrix, random_start
from wisecrowd.kinds.classes.packed.moments import MomentModel, PackedAgreement, PackedMoments
from wisecrowd.kinds.classes.packed.shard import PackedShard
from wisecrowd.kinds.classes.prior import TaskPrior
from wisecrowd.kinds.classes.worker_errors import WorkerEvidence
from wisecrowd.packs.answers import AnswerParts, PartPlan
from wisecrowd.packs.arrays import open_column
from wisecrowd.packs.kind import PackedData
from wisecrowd.packs.pack import Pack, as_vocabulary, load_shard


@dataclass(frozen=True, eq=False)
class PackedCrowd(PackedData):
    """A pack as the data of a problem: sizes and sums, but no annotations.

    Attributes
    ----------
    pack : Pack
    parts : AnswerParts
        Where the answers go.
    """

    weight: None = field(default=None, init=False)
    n_tasks_in_memory: int = field(default=0, init=False)

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return len(self.pack.summary.classes)

    @property
    def classes(self) -> NDArray[Any]:
        """(n_classes,) classes."""
        return self.pack.classes

    @property
    def ordered(self) -> bool:
        """Whether the classes are ordered."""
        return self.pack.summary.ordered

    @property
    def class_totals(self) -> Floats:
        """(n_classes,) total weight of the labels of each class."""
        return np.array(self.pack.summary.class_totals)

    @property
    def n_labelled(self) -> int:
        """Number of tasks with labels."""
        return self.pack.summary.n_labelled

    @property
    def evidence(self) -> WorkerEvidence:
        """Sums over each worker's labels under the answers that were written."""
        sums = self.parts.sums
        return WorkerEvidence(np.array(self.pack.worker_totals), sums.right, sums.unsure)

    def member(self) -> PackedCrowd:
        """Return the same data for one method of several; its answers are not written."""
        return PackedCrowd(self.pack, AnswerParts(PartPlan(), self.parts.by_frequency))

    def moments(self, problem: Problem) -> PackedMoments:
        """Return the sums of all classes that moment methods use."""
        J, K = self.n_workers, self.n_classes
        model = MomentModel(np.arange(K), J + (self.pack.summary.n_gold > 0 and K > 1))
        return PackedMoments(problem.cut(J * K * K), self.classes, model)

    def agreement(self, shards: Any) -> PackedAgreement:
        """Return the sums that tell who agrees with whom."""
        return PackedAgreement(shards, self.n_workers, self.n_classes, self.worker_totals)

    def sample(self, most: int) -> CrowdLabels:
        """Return the labels of the first tasks, which are in the order of a hash: a random sample.

        Tasks have their positions as ids; about ``most`` annotations are returned.
        """
        return self.sample_with_gold(most)[0]

    def sample_with_gold(self, most: int) -> tuple[CrowdLabels, NDArray[np.int32]]:
        """Return a sample of the tasks, and their known classes, -1 where unknown.

        If these are all tasks, they are in the order of their ids, as they would be in memory.
        """
        found = [_sampled(self.pack, shard, tasks) for shard, tasks in self.sampled(most)]
        sizes, workers, labels, weights, known = (
            np.concatenate(part) for part in zip(*found, strict=True)
        )
        n = len(sizes)
        sample = CrowdLabels(
            np.repeat(np.arange(n, dtype=np.int32), sizes),
            workers,
            labels,
            np.arange(n),
            self.workers,
            self.classes,
            weight=weights if len(weights) else None,
        )
        if self.n_annotations > most:
            return sample, known
        order = np.argsort(self.sampled_ids(most), kind="stable")
        return replace(sample[order], tasks=sample.tasks, rows=None), known[order]

    def sampled(self, most: int) -> Iterator[tuple[PackedShard, NDArray[np.int64]]]:
        """Yield shards and the positions of their first tasks, with ``most`` labels or more."""
        size = 0
        for number in range(len(self.pack.summary.shards)):
            shard = load_shard(self.pack, number)
            tasks = _first_tasks(self.pack, shard, most - size)
            size += int(np.diff(shard.indptr)[rows_of(self.pack, shard, tasks)].sum())
            yield shard, tasks
            if size >= most:
                break

    def sampled_ids(self, most: int) -> NDArray[Any]:
        """Return the ids of the tasks of a sample."""
        return np.concatenate(
            [as_vocabulary(self.pack.tasks(s.number))[tasks] for s, tasks in self.sampled(most)]
        )


def rows_of(pack: Pack, shard: PackedShard, tasks: NDArray[np.int64]) -> Ints:
    """Return the rows of tasks of a shard."""
    pattern = open_column(pack, shard.number, "pattern")
    return tasks if pattern is None else np.asarray(pattern[tasks])


def _first_tasks(pack: Pack, shard: PackedShard, most: int) -> NDArray[np.int64]:
    """Return the positions of the first tasks, with about ``most`` labels."""
    n_tasks = pack.summary.shards[shard.number].n_tasks
    sizes = np.diff(shard.indptr)[rows_of(pack, shard, np.arange(n_tasks))]
    n = int(np.searchsorted(np.cumsum(sizes), max(most, 1))) + 1
    return np.arange(min(n, n_tasks))


def _sampled(pack: Pack, shard: PackedShard, tasks: NDArray[np.int64]) -> tuple[Any, ...]:
    """Return sizes, workers, labels, weights and gold of some tasks of a shard."""
    rows = rows_of(pack, shard, tasks)
    sizes = np.diff(shard.indptr)[rows]
    start = np.cumsum(sizes) - sizes
    place = np.repeat(shard.indptr[:-1][rows] - start, sizes) + np.arange(sizes.sum())
    gold = open_column(pack, shard.number, "gold")
    return (
        sizes,
        shard.worker[place],
        shard.label[place],
        np.empty(0) if shard.weight is None else shard.weight[place],
        np.full(len(tasks), -1, np.int32) if gold is None else gold[tasks],
    )


# ------------------------------------------------- what methods ask of labels, answered for packs


@posterior_matrix.register
def _(labels: PackedCrowd) -> AnswerParts:
    return labels.parts  # the files of its answers


@has_large_posterior.register
def _(labels: PackedCrowd) -> bool:
    return labels.parts.by_frequency is not None


@random_start.register
def _(data: PackedCrowd, given: Floats | None, rng: np.random.Generator) -> Start:
    return Start(noise_seed=int(rng.integers(2**62)))  # shards draw their own rows


@frequencies_identified.register
def _(labels: PackedCrowd, prior: TaskPrior) -> bool:
    return labels.pack.summary.n_telling >= LEAST_SHARED * labels.n_labelled


@shares_of_vote_if_drifted.register(PackedCrowd)
def _(labels: PackedCrowd, params: Any) -> Floats | None:
    return shares_of_vote_if_drifted(labels.sample(ENOUGH), params)
