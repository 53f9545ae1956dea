"""Checks of fits to packs: sums over shards, and the checks of a sample of the tasks.

In memory, most checks of a large crowd look at a subsample, too. What needs all labels at once is
named as not checked.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.exceptions import ParameterError
from wisecrowd.core.findings import Finding
from wisecrowd.core.registry import get_method
from wisecrowd.core.result import Fit
from wisecrowd.core.types import Floats
from wisecrowd.kinds.classes.container import ENOUGH, CrowdLabels
from wisecrowd.kinds.classes.findings.data_checks import (
    abstention_classes,
    connects,
    separate_finding,
    sheet_findings,
    unseen_classes,
    unusually_many,
)
from wisecrowd.kinds.classes.findings.fit_checks import findings_of, result_findings
from wisecrowd.kinds.classes.packed.crowd import PackedCrowd, rows_of
from wisecrowd.kinds.classes.packed.shard import PackedShard
from wisecrowd.packs.answers import posterior_of_rows
from wisecrowd.packs.kind import PackFindings
from wisecrowd.packs.pack import Pack

MOST_PASSES = 4  # passes that look for separate parts; most crowds need two


def check_pack_fit(crowd: PackedCrowd, shards: Any, result: Fit) -> PackFindings:
    """Run the common checks of a fit on a pack whose answers have been made.

    Parameters
    ----------
    crowd : PackedCrowd
    shards : PackShards
    result : Fit
    """
    sample, gold = crowd.sample_with_gold(ENOUGH)
    whole = crowd.n_annotations <= ENOUGH
    ids, probas = crowd.sampled_ids(ENOUGH), _posterior_of_sample(crowd)
    if whole:
        order = np.argsort(ids, kind="stable")
        ids, probas = ids[order], probas[order]
    sample, answered = replace(sample, tasks=ids), replace(result, answers=probas)
    if whole:
        found = findings_of(sample, answered, gold >= 0)
        return PackFindings(tuple(found), ())
    found = [*unseen_classes(crowd), *abstention_classes(crowd), *sheet_findings(sample)]
    unchecked = []
    separate = _separate_parts(crowd, shards, sample)
    if separate is None:
        unchecked.append("separate-parts")
    found += separate or []
    if crowd.pack.summary.labels_per_task[1] >= unusually_many(sample.labels_per_task):
        unchecked.append("ballot-stuffing by workers of one task")
    if (gold >= 0).any():
        sample = sample.select_annotations(gold[sample.task] < 0)
    if sample.n_annotations:
        found += result_findings(
            sample, answered, crowd.class_totals, crowd.worker_totals, subsample=True
        )
    return PackFindings(tuple(found), tuple(unchecked))


def _posterior_of_sample(crowd: PackedCrowd) -> Any:
    """Return the posterior of the sampled tasks, from the step that gave the answers."""
    job, found = crowd.parts.job, []
    for shard, tasks in crowd.sampled(ENOUGH):
        state = job.model.begin(shard) if job.states is None else job.states.load(job.model, shard)
        rows, _ = getattr(job.model, job.step)(shard, state, job.params)
        found.append(posterior_of_rows(rows, shard)[rows_of(crowd.pack, shard, tasks)])
    if hasattr(found[0], "tocsr"):
        from scipy.sparse import vstack

        return vstack(found).tocsr()
    return np.concatenate(found)


# ---------------------------------------------------------------------------------- separate parts


class ReachStats(NamedTuple):
    """Additive: labels (J,) of each worker on reached tasks, and the number of these tasks."""

    labels: Floats
    n_tasks: float


@dataclass(frozen=True, eq=False)
class ReachModel:
    """Counts the labels of tasks that some workers labelled."""

    n_workers: int

    def begin(self, shard: PackedShard) -> None:
        """Return nothing: there is no state."""

    def local_step(
        self, shard: PackedShard, state: None, reached: NDArray[np.bool_]
    ) -> tuple[None, ReachStats]:
        """Return the labels on tasks with a label by one of the ``reached`` workers (J,)."""
        task = np.repeat(np.arange(shard.n_tasks), np.diff(shard.indptr))
        times = np.ones(shard.n_tasks) if shard.repeat is None else shard.repeat
        here = np.zeros(shard.n_tasks, dtype=bool)
        here[task[reached[shard.worker]]] = True
        labels = np.bincount(shard.worker, (here * times)[task], self.n_workers)
        return None, ReachStats(labels.astype(np.float64), float(times[here].sum()))


def _separate_parts(crowd: PackedCrowd, shards: Any, sample: CrowdLabels) -> list[Finding] | None:
    """Return the finding on separate parts, if there is one; None if it takes too many passes."""
    present = crowd.worker_totals > 0
    if connects(sample, present):
        return []
    model, reached = ReachModel(crowd.n_workers), np.zeros(crowd.n_workers, dtype=bool)
    reached[int(crowd.worker_totals.argmax())] = True
    for _ in range(MOST_PASSES):
        _, stats = shards.map_reduce(model, "local_step", shards.begin(model), reached)
        before, reached = int(reached.sum()), stats.labels > 0
        if reached[present].all():
            return []
        if int(reached.sum()) == before:
            break
    else:
        return None
    if 2 * stats.n_tasks < crowd.pack.summary.n_labelled:
        return None  # the busiest worker is not in the largest part
    outside = 1 - float(stats.labels.sum()) / crowd.n_annotations
    return list(separate_finding(crowd.workers[present & ~reached], outside))


def candidates_for_packs(method: Any, pack: Pack) -> list[str]:
    """Return the candidates that "auto" can choose from on a pack: those that fit it by shards."""
    if not isinstance(method.class_prior, str) or method.class_prior != "auto":
        raise ParameterError(
            "class_prior of auto needs all labels in memory; leave it out, or name the method to "
            "fit."
        )
    tags = {name: get_method(name).promises for name in method.candidates}
    able = [
        name
        for name, tag in tags.items()
        if tag.shardable and (tag.repeatable or not pack.summary.patterns)
    ]
    if not able:
        raise ParameterError(
            f"candidates are {', '.join(method.candidates)}, which need all labels in memory; "
            f"give {', '.join(type(method).candidates)}."
        )
    return able
