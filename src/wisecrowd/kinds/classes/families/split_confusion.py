r"""Confusion matrices that differ between parts of a worker's labels: time bins or groups of tasks.

.. math:: z_i \sim Cat(\pi), \qquad y_{ij} \mid z_i = k \sim Cat(\theta_{j p_{ij} k \cdot})

with the part :math:`p_{ij}` of each annotation. A method says how the matrices of a worker's parts
inform each other, in one number: its strength. The strength that makes the parts equal is
Dawid-Skene, which is then fitted as such.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.memory_check import require_memory
from wisecrowd.core.problem import Problem
from wisecrowd.core.result import Fit
from wisecrowd.core.types import Floats
from wisecrowd.inference.engine import rows_into
from wisecrowd.inference.held_out import HeldOutScore, annotation_folds, leader, paired_difference
from wisecrowd.inference.loop import LoopResult
from wisecrowd.inference.priors import pseudo_counts
from wisecrowd.kinds.classes.container import CrowdLabels
from wisecrowd.kinds.classes.families.confusion import (
    TINY,
    ConfusionEM,
    ConfusionParams,
    accuracy_of,
    as_confusion,
)
from wisecrowd.kinds.classes.methods.dawid_skene import DirichletModel

Parts = NDArray[np.int32]

FLOOR = 1e-12  # keeps the logarithm of a prediction finite
LEAD = 2.0  # standard errors by which a strength must lead the one of equal parts


class SplitModel(DirichletModel):
    """A confusion matrix per worker and part; the loop's worker is ``worker * n_parts + part``."""

    def extrapolate(
        self, first: ConfusionParams, second: ConfusionParams, third: ConfusionParams
    ) -> None:
        """Return None: an M-step that ties the parts need not raise the objective."""


class SplitConfusionEM(ConfusionEM):
    """Methods with a confusion matrix per worker and part of the annotations."""

    prior: Any

    def _split_model(self, shape: dict[str, Any], n_parts: int, strength: float) -> DirichletModel:
        """Return the model of ``n_parts`` parts with a given strength."""
        raise TypeError(f"{type(self).__name__} must define _split_model.")

    def _fit_parts(
        self, problem: Problem, part: Parts, n_parts: int, strength: float | None
    ) -> Fit:
        """Return the fit with a given strength; without one, or with a single part, Dawid-Skene.

        Its ``extra["by_part"]`` (n_parts, J, K, K) has the matrices, and its ``confusion`` their
        mean over the labels of each worker.
        """
        B = 1 if strength is None else n_parts
        labels = problem.data
        J, K = labels.n_workers, labels.n_classes
        require_memory(
            8 * (5 * J * B * K * K + 2 * labels.n_tasks * K),
            f"{type(self).__name__} with {J} workers, {K} classes and {B} parts would",
            "use dawid-skene, or one-coin",
        )
        split = replace(problem, data=_split_workers(labels, part, B)) if B > 1 else problem
        alpha = pseudo_counts(self.prior, labels)
        alpha = np.repeat(alpha, B, axis=0) if alpha.ndim == 3 else alpha
        shape = self._shape(split) | {"alpha": alpha}
        model = DirichletModel(**shape)
        if strength is not None and B > 1:
            model = self._split_model(shape, B, strength)
        shards, probas = split.cut(J * B * K * K), np.empty((labels.n_tasks, K))
        sink = rows_into(probas)
        best = self._climb(model, shards, split, sink)
        if not best.answered:
            shards.collect(model, "answer", best.states, best.params, sink)
        by_part = np.exp(as_confusion(best.params.table)).reshape(J, B, K, K).swapaxes(0, 1)
        return replace(_summary(labels, best, probas, by_part), extra={"by_part": by_part})

    def _best_strength(
        self, problem: Problem, part: Parts, n_parts: int, strengths: Sequence[float]
    ) -> float | None:
        """Return the strength that predicts hidden labels best; None unless it clearly leads.

        One fold of five is hidden. The last strength, which ties the parts least, wins a draw: one
        that is not worse than the best by a standard error is taken.
        """
        labels = problem.data
        hidden = annotation_folds(labels) == 0
        if n_parts == 1 or not hidden.any():
            return None
        seen = replace(problem, data=labels.select_annotations(~hidden))
        task, worker, label = labels.task[hidden], labels.worker[hidden], labels.label[hidden]
        weight = None if labels.weight is None else labels.weight[hidden]
        scores = {}
        for strength in (None, *strengths):
            fit = self._fit_parts(seen, part[~hidden], n_parts, strength)
            by_part = fit.extra["by_part"]
            rates = by_part[0 if strength is None else part[hidden], worker, :, label]
            expected = (fit.probas[task] * rates).sum(axis=1)
            scores[str(strength)] = HeldOutScore(np.log(expected + FLOOR), task, weight)
        best = leader(scores, n_errors=LEAD)
        if best == str(None):
            return None
        for strength in strengths[::-1]:
            behind, error = paired_difference(scores[best], scores[str(strength)])
            if behind <= error:
                return strength
        return float(best)


def _summary(labels: CrowdLabels, best: LoopResult, probas: Floats, by_part: Floats) -> Fit:
    B, J, K = by_part.shape[:3]
    class_prior = np.exp(best.params.log_class)
    class_prior = class_prior / class_prior.sum()
    counts = as_confusion(best.stats.counts).reshape(J, B, K, K)
    mean = by_part[0]
    if B > 1:
        share = counts.sum(axis=(2, 3)) + TINY
        share /= share.sum(axis=1, keepdims=True)
        mean = np.einsum("jb,bjkl->jkl", share, by_part)
    return Fit(
        probas,
        accuracy_of(mean, class_prior),
        class_prior=class_prior,
        confusion=mean,
        n_iter=best.n_iter,
        converged=best.converged,
        history=best.history,
    )


def _split_workers(labels: CrowdLabels, part: Parts, n_parts: int) -> CrowdLabels:
    """Return the labels with a worker in a part as a worker of its own."""
    worker = labels.worker.astype(np.int64) * n_parts + part
    return CrowdLabels(
        task=labels.task,
        worker=worker.astype(np.int32),
        label=labels.label,
        tasks=labels.tasks,
        workers=np.arange(labels.n_workers * n_parts),
        classes=labels.classes,
        weight=labels.weight,
    )
