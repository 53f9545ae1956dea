"""Confusion matrices with Dirichlet pseudo-counts, updated one answer at a time."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.labels import CrowdLabels
from wisecrowd.core.problem import Problem
from wisecrowd.core.result import Fit
from wisecrowd.core.task_prior import as_task_prior
from wisecrowd.core.worker_errors import worker_evidence
from wisecrowd.engines.memory import rows_into
from wisecrowd.families.confusion import ConfusionEM, ConfusionStats, as_table
from wisecrowd.families.incremental import (
    Arrival,
    Kept,
    StreamState,
    contributions,
    joined_stream,
    run_passes,
    stepwise_pass,
    stream_of,
)
from wisecrowd.inference.loop import LoopResult

Floats = NDArray[np.float64]


class IncrementalConfusionEM(ConfusionEM):
    """Methods whose model has Dirichlet pseudo-counts ``alpha``, with updates answer by answer."""

    def _update(self, problem: Problem, arrival: Arrival, sweeps: int) -> tuple[Fit, Floats]:
        """Return the fit after new answers, and the weight of each task in its counts."""
        data, K = problem.data, problem.data.n_classes
        model: Any = self._model(problem)  # has Dirichlet pseudo-counts
        alpha = _cell_alpha(model.alpha, data.n_workers)
        stream = stream_of(problem, arrival)
        counts, mass = np.zeros_like(alpha), np.zeros(K)
        totals = np.zeros((data.n_workers, K))
        cell = data.worker.astype(np.int64) * K + data.label

        def recount() -> None:
            weight, per_task = contributions(stream)
            for k in range(K):
                values = weight * stream.probas[stream.task, k]
                counts[:, k] = np.bincount(cell, values, len(counts))
            mass[:] = (per_task[:, None] * stream.probas).sum(axis=0)
            totals[:] = (counts + alpha).reshape(-1, K, K).sum(axis=1)

        fixed = np.zeros(K) if model.fixed_class is None else model.fixed_class
        is_fixed = model.fixed_class is not None

        def update(kernels: Any, order: NDArray[np.int64]) -> float:
            return float(kernels.confusion_updates(
                order, stream, alpha, counts, totals, mass, fixed, is_fixed
            ))  # fmt: skip

        n_sweeps = run_passes(arrival, stream, sweeps, update, recount, mass)
        recount()
        params = model.global_step(ConfusionStats(counts, mass, 0.0), None)
        return self._answered(problem, model, params, 1 + n_sweeps), stream.scale

    def _answered(self, problem: Problem, model: Any, params: Any, n_iter: int) -> Fit:
        """Return the fit at given parameters."""
        probas = np.empty((problem.data.n_tasks, problem.data.n_classes))
        shards = problem.cut(params.table.size)
        states = shards.begin(model)
        stats = shards.collect(model, "last_step", states, params, rows_into(probas))
        objective = (model.objective(stats, params),)
        best = LoopResult(params, stats, states, objective, n_iter, True)
        return self._result(model, problem.data, best, probas)

    def _stepwise(self, kept: Kept, new: CrowdLabels) -> tuple[CrowdLabels, Fit, StreamState]:
        """Return the answers in extended vocabularies, their fit, and the counts of the stream."""
        state = kept.stream
        if state is None:
            old = kept.labels
            counts = np.zeros((old.n_workers * old.n_classes, old.n_classes))
            cell = old.worker.astype(np.int64) * old.n_classes + old.label
            np.add.at(counts, cell, self.probas_[old.task])
            mass = self.probas_[old.labels_per_task > 0].sum(axis=0)
            mass *= old.n_annotations / max(mass.sum(), 1e-300)
            seen = old.labels_per_worker.astype(np.float64)
            state = StreamState(counts, seen, mass, float(old.n_annotations))
        data, state = joined_stream(state, self, new)
        problem = self._problem(data, as_task_prior(None, None, data))
        model: Any = self._model(problem)
        alpha = _cell_alpha(model.alpha, data.n_workers)
        state = stepwise_pass(data, state, alpha, model.fixed_class)
        params = model.global_step(ConfusionStats(state.table, state.mass, 0.0), None)
        fit = self._answered(problem, model, params, 1)
        evidence = worker_evidence(data, fit.probas).scaled_to(state.seen)
        return data, replace(fit, worker_evidence=evidence), state


def _cell_alpha(alpha: Floats, n_workers: int) -> Floats:
    """Return pseudo-counts (K, L) or (J, K, L) as a table by cell (J·L, K)."""
    return as_table(np.broadcast_to(alpha, (n_workers, *alpha.shape[-2:])))
