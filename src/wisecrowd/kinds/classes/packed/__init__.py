"""Packs of classes: what their files hold, and how methods see them.

Packing needs this; what only fits need is imported when there is a fit.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.annotations import Annotations
from wisecrowd.core.answers import MOST_ALONE, capped_rows
from wisecrowd.core.problem import Problem
from wisecrowd.core.result import Fit, choose_labels, confidence_of, dense_rows
from wisecrowd.core.types import Floats
from wisecrowd.kinds.classes.answers import ClassAnswers
from wisecrowd.kinds.classes.container import CrowdLabels
from wisecrowd.kinds.classes.packed.patterns import merged_rows
from wisecrowd.kinds.classes.packed.shard import PackedShard, load_labels
from wisecrowd.kinds.classes.prior import TaskPrior
from wisecrowd.packs.answers import (
    AnswerParts,
    AnswerSums,
    PartPlan,
    is_alone,
    posterior_of_rows,
    write_table,
)
from wisecrowd.packs.arrays import open_column
from wisecrowd.packs.kind import PackedKind, PackFindings
from wisecrowd.packs.pack import Pack

if TYPE_CHECKING:
    from wisecrowd.core.aggregator import Aggregator
    from wisecrowd.kinds.classes.packed.crowd import PackedCrowd


@dataclass(frozen=True)
class PackedClasses(PackedKind):
    """Packs of classes: cells are local workers times classes plus label."""

    container: ClassVar[type[CrowdLabels]] = CrowdLabels
    answer_columns: ClassVar[frozenset[str]] = frozenset(
        {"task", "label", "confidence", "tie", "n_labels"}
    )

    ordered: bool = False

    def known(self, gold: NDArray[Any]) -> NDArray[np.bool_]:
        """Return where the classes of tasks are known."""
        return gold >= 0

    def in_memory(
        self, pack: Pack, task: NDArray[np.int32], tasks: NDArray[Any],
        columns: dict[str, NDArray[Any]],
    ) -> Annotations:  # fmt: skip
        """Return the labels in memory."""
        return CrowdLabels(
            task=task, worker=columns.pop("worker"), label=columns.pop("label"), tasks=tasks,
            workers=pack.workers, classes=pack.classes, weight=columns.pop("weight", None),
            columns=columns, ordered=pack.summary.ordered, notes=tuple(pack.summary.notes),
        )  # fmt: skip

    def load(self, pack: Pack, number: int) -> PackedShard:
        """Return a shard of classes."""
        return load_labels(pack, number)

    def merged(self, pack: Pack) -> PackedShard | None:
        """Return the distinct rows of all shards, if tasks with the same labels share rows."""
        return merged_rows(pack)

    def problem_of(self, pack: Pack, parts: AnswerParts) -> tuple[PackedCrowd, TaskPrior]:
        """Return a pack as the data of a problem, and its prior."""
        from wisecrowd.kinds.classes.packed.crowd import PackedCrowd

        return PackedCrowd(pack, parts), TaskPrior(np.zeros((1, len(pack.classes))))

    def check(self, method: Aggregator, data: PackedCrowd) -> None:
        """Refuse methods for two classes if there are more."""
        method._require_binary(data)

    def write(self, pack: Pack, shard: PackedShard, rows: Any, plan: PartPlan) -> AnswerSums:
        """Write label, confidence and tie of each task of a shard, if asked for."""
        probas = posterior_of_rows(rows, shard)
        if is_alone(pack):
            probas = capped_rows(probas, MOST_ALONE)
        codes, ties = choose_labels(probas, np.array(pack.summary.class_totals))
        if plan.folder is not None:
            answers = {"label": codes, "confidence": confidence_of(probas, codes), "tie": ties}
            write_table(plan, shard.number, _table(pack, shard, answers, probas, plan.soft))
        tied = ties if shard.repeat is None else ties * shard.repeat
        return AnswerSums(*_worker_sums(shard, probas), int(tied.sum()))

    def finished(self, fit: Fit, data: PackedCrowd) -> Fit:
        """Return the fit with the evidence on workers and their judged accuracy."""
        fit = replace(fit, worker_evidence=fit.worker_evidence or data.evidence)
        return ClassAnswers(fit.answers).judged(fit, data)

    def findings(self, data: PackedCrowd, problem: Problem[Any, Any], fit: Fit) -> PackFindings:
        """Return the findings of sums over the shards and of a sample."""
        from wisecrowd.kinds.classes.packed.checks import check_pack_fit

        return check_pack_fit(data, problem.cut(0), fit)


PACKED = PackedClasses()


def _table(
    pack: Pack, shard: PackedShard, answers: Mapping[str, Any], probas: Any, soft: bool
) -> Any:
    """Return the answers of a shard as an Arrow table, one row per task."""
    import pyarrow as pa

    columns: dict[str, Any] = {
        "label": pa.array(pack.classes).take(pa.array(answers["label"])),
        "confidence": pa.array(answers["confidence"]),
        "tie": pa.array(answers["tie"]),
        "n_labels": pa.array(np.diff(shard.indptr)),
    }
    if soft:
        table = dense_rows(probas)
        columns |= {f"p_{name}": table[:, k] for k, name in enumerate(pack.classes.tolist())}
    rows = pa.table(columns)
    pattern = open_column(pack, shard.number, "pattern")
    if pattern is not None:
        rows = rows.take(pa.array(pattern))
    return rows.add_column(0, "task", pack.tasks(shard.number))


def _worker_sums(shard: PackedShard, probas: Any) -> tuple[Floats, Floats]:
    """Return the sums of r and r (1 - r) over each worker's labels."""
    task = np.repeat(np.arange(shard.n_tasks), np.diff(shard.indptr))
    r = np.asarray(probas[task, shard.label], dtype=np.float64).ravel()
    weight = np.ones(len(r)) if shard.weight is None else shard.weight
    if shard.repeat is not None:
        weight = weight * shard.repeat[task]
    right, unsure = (
        np.bincount(shard.worker, values * weight, shard.n_workers).astype(np.float64)
        for values in (r, r * (1 - r))
    )
    return right, unsure
