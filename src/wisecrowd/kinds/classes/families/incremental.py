r"""Online updates of EM fits of Dawid and Skene's and the one-coin model: incremental EM.

New answers are used one at a time (Neal and Hinton): the task of an answer gets a new posterior
from the current counts, and its old contribution to the counts is replaced by the new one. There is
no step size, and the free energy never falls. Sweeps over all tasks then converge to EM's optimum.

With ``stepwise`` nothing but the counts is kept: an answer moves its worker's counts by the step
:math:`\lambda = n_j^{-0.6}`, and only the tasks of the new answers have posteriors.

References
----------
R. M. Neal and G. E. Hinton (1998). A view of the EM algorithm that justifies incremental, sparse,
and other variants. Learning in Graphical Models, 355-368.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.arrow import kind_of
from wisecrowd.core.exceptions import DataError
from wisecrowd.core.ids.encoding import lookup
from wisecrowd.core.problem import Problem
from wisecrowd.core.result import Fit, Kept, dense_rows
from wisecrowd.core.types import Floats, Longs
from wisecrowd.inference.engine import rows_into
from wisecrowd.inference.loop import LoopResult
from wisecrowd.inference.priors import as_coin_prior
from wisecrowd.kernels import kernels_for
from wisecrowd.kinds.classes.container import CrowdLabels
from wisecrowd.kinds.classes.families.class_prior import (
    fixed_class_prior,
    log_shares,
    shares_of_vote_if_drifted,
)
from wisecrowd.kinds.classes.families.confusion import (
    ConfusionStats,
    as_confusion,
    as_table,
    fit_of,
)
from wisecrowd.kinds.classes.families.posteriors import PosteriorMatrix
from wisecrowd.kinds.classes.kernels.incremental import Stream
from wisecrowd.kinds.classes.methods.dawid_skene import DawidSkene, DirichletModel
from wisecrowd.kinds.classes.methods.one_coin import CoinParams, CoinStats, OneCoinEM
from wisecrowd.kinds.classes.prior import as_task_prior
from wisecrowd.kinds.classes.worker_errors import worker_evidence

RECOUNT = 10_000  # answers after which counts are computed again, against rounding
WORK = 20  # annotations that take as long as one answer
STEP = 0.6  # exponent of the stepwise learning rate
STILL = 1e-12  # largest change of a posterior that ends the sweeps


@dataclass(frozen=True, eq=False)
class Arrival:
    """Labels of a fit joined with new answers.

    Attributes
    ----------
    labels : CrowdLabels
        All labels; a new answer replaces the old one of its pair.
    order : (n,) int
        Rows of the new answers, in their order.
    place : (n_old_tasks,), (n_old_classes,) int
        Positions of the tasks and classes of the previous fit.
    start : (n_tasks, n_classes)
        Posterior of the previous fit, zero for new tasks.
    scale : (n_tasks,)
        Weight of each task's contribution.
    fresh : (n_classes,)
        Votes for classes that the fit did not know, without which these would stay impossible.
    """

    labels: CrowdLabels
    order: Longs
    place: tuple[Longs, Longs]
    start: Floats
    scale: Floats
    fresh: Floats

    def placed(self, probas: Any) -> Floats:
        """Return a posterior of the previous fit for all tasks and classes, zero for new ones."""
        rows = np.zeros((self.labels.n_tasks, self.labels.n_classes))
        rows[np.ix_(*self.place)] = dense_rows(probas)
        return rows


def joined(
    old: CrowdLabels, probas: Any, scale: Floats, new: CrowdLabels, forget: float
) -> Arrival:
    """Join new answers to the labels of a fit; new tasks, workers and classes join."""
    ids = {name: union(getattr(old, name), getattr(new, name))
           for name in ("tasks", "workers", "classes")}  # fmt: skip
    parts = [recoded(data, ids) for data in (old, new)]
    task, worker, label = (
        np.concatenate([part[n] for part in parts]).astype(np.int64) for n in range(3)
    )
    is_new = np.arange(len(task)) >= old.n_annotations
    weight = None
    if old.weight is not None or new.weight is not None:
        weight = np.concatenate([old.weights, new.weights])
    order = latest(task * len(ids["workers"]) + worker, is_new)
    labels = CrowdLabels(
        task[order].astype(np.int32), worker[order].astype(np.int32),
        label[order].astype(np.int32), ids["tasks"], ids["workers"], ids["classes"],
        None if weight is None else weight[order], frame_library=new.frame_library,
        ordered=old.ordered,
    )  # fmt: skip
    arrived = np.flatnonzero(is_new[order])
    times = new.columns.get("timestamp")
    if times is not None:
        when = np.concatenate([np.zeros(old.n_annotations), times])[order][arrived]
        arrived = arrived[np.argsort(when, kind="stable")]
    rows, columns = (
        lookup(getattr(old, name), ids[name]).astype(np.int64) for name in ("tasks", "classes")
    )
    weights = np.ones(labels.n_tasks)
    weights[rows] = forget * scale
    fresh = np.zeros(labels.n_classes)
    np.add.at(fresh, labels.label, 1 / labels.labels_per_task[labels.task])
    fresh[columns] = 0.0
    found = Arrival(labels, arrived, (rows, columns), np.empty((0, 0)), weights, fresh)
    return replace(found, start=found.placed(probas))


def latest(key: Longs, is_new: NDArray[np.bool_]) -> Longs:
    """Return the rows sorted by the key of their pair, without those that were answered again."""
    order = np.argsort(key, kind="stable")
    answered_again = np.isin(key, key[is_new]) & ~is_new
    return np.asarray(order[~answered_again[order]])


def union(old: NDArray[Any], new: NDArray[Any]) -> NDArray[Any]:
    """Return the old ids, then those that are new; both must be of the same type."""
    if len(old) and len(new) and kind_of(old.tolist()[0]) != kind_of(new.tolist()[0]):
        raise DataError(
            f"The fit has ids such as {old.tolist()[0]!r} and the new answers have ids such as "
            f"{new.tolist()[0]!r}; give ids of the same type."
        )
    more = new[lookup(new, old) < 0]
    return old if not len(more) else np.concatenate([old.astype(object), more.astype(object)])


def recoded(data: CrowdLabels, ids: dict[str, NDArray[Any]]) -> list[NDArray[Any]]:
    """Return the codes of tasks, workers and labels in other vocabularies."""
    return [
        lookup(getattr(data, name), ids[name])[codes]
        for name, codes in (("tasks", data.task), ("workers", data.worker), ("classes", data.label))
    ]


def stream_of(problem: Problem, arrival: Arrival) -> Stream:
    """Return the state of all tasks before the new answers."""
    data, prior = problem.data, problem.prior
    active = np.ones(data.n_annotations, dtype=bool)
    active[arrival.order] = False
    index = prior.index
    if index is None:
        index = np.zeros(data.n_tasks, dtype=np.int32)
    return Stream(
        data.indptr, data.task, data.worker, data.label, data.weights, prior.rows, index,
        arrival.start.copy(), arrival.scale.copy(), active,
    )  # fmt: skip


def run_passes(
    arrival: Arrival,
    stream: Stream,
    sweeps: int,
    update: Callable[[Any, Longs], float],
    recount: Callable[[], None],
    mass: Floats,
) -> int:
    """Use the new answers, then sweep over all tasks; return the number of sweeps.

    ``update(kernels, order)`` updates tasks and returns the largest change of a posterior;
    ``recount()`` computes the counts from the posteriors, and the class ``mass`` (K,) with them.
    """
    kernels = kernels_for("incremental", WORK * len(arrival.order) * (1 + sweeps))
    for first in range(0, len(arrival.order), RECOUNT):
        recount()
        mass += arrival.fresh
        update(kernels, arrival.order[first : first + RECOUNT])
    one_each = stream.indptr[:-1][np.diff(stream.indptr) > 0].astype(np.int64)
    for number in range(sweeps):
        recount()
        if update(kernels, one_each) < STILL:
            return number + 1
    return sweeps


def contributions(stream: Stream) -> tuple[Floats, Floats]:
    """Return the weight of each annotation (E,) in the counts, and of each task (N,)."""
    per_row = np.where(stream.active, stream.weight * stream.scale[stream.task], 0.0)
    has = np.bincount(stream.task, stream.active, len(stream.scale)) > 0
    return per_row, np.where(has, stream.scale, 0.0)


# ---------------------------------------------------------------------------------------- stepwise


@dataclass(frozen=True, eq=False)
class StreamState:
    """Counts of a stream that keeps nothing else.

    ``table`` (J·K, K) has expected counts by cell, ``seen`` (J,) the answers of each worker,
    ``mass`` (K,) the class mass and ``n`` the answers so far.
    """

    table: Floats
    seen: Floats
    mass: Floats
    n: float


def joined_stream(state: StreamState, old: Any, new: CrowdLabels) -> tuple[CrowdLabels, Any]:
    """Return the new answers in extended vocabularies, and the counts in these.

    ``old`` has the ids of the fit, ``workers_`` and ``classes_``; tasks are those of the answers.
    """
    ids = {"tasks": new.tasks, "workers": union(old.workers_, new.workers),
           "classes": union(old.classes_, new.classes)}  # fmt: skip
    task, worker, label = recoded(new, ids)
    order = np.lexsort((worker, task))
    data = replace(
        new, task=task[order].astype(np.int32), worker=worker[order].astype(np.int32),
        label=label[order].astype(np.int32), workers=ids["workers"], classes=ids["classes"],
        columns={name: values[order] for name, values in new.columns.items()},
        weight=None if new.weight is None else new.weight[order],
        worker_columns={}, task_columns={}, rows=None, notes=(),
    )  # fmt: skip
    J, K, size = data.n_workers, data.n_classes, len(old.classes_)
    table = np.zeros((J, K, K))
    table[: len(old.workers_), :size, :size] = state.table.reshape(-1, size, size)
    seen, mass = np.zeros(J), np.zeros(K)
    seen[: len(old.workers_)], mass[:size] = state.seen, state.mass
    return data, StreamState(table.reshape(-1, K), seen, mass, state.n)


def stepwise_pass(
    data: CrowdLabels, state: StreamState, alpha: Floats, fixed: Floats | None
) -> StreamState:
    """Move the counts of each answer's worker by its step; tasks use the new answers alone."""
    times = data.columns.get("timestamp")
    order = np.arange(data.n_annotations)
    if times is not None:
        order = np.argsort(times, kind="stable")
    table, seen, mass = state.table.copy(), state.seen.copy(), state.mass.copy()
    kernels = kernels_for("incremental", WORK * len(order))
    known = np.zeros(data.n_classes) if fixed is None else fixed
    n = kernels.stepwise_updates(
        order, data.task, data.worker, data.label, alpha, table, seen, mass, state.n, STEP, known,
        fixed is not None,
    )  # fmt: skip
    return StreamState(table, seen, mass, n)


def updated_confusion(
    method: DawidSkene, problem: Problem, arrival: Arrival, sweeps: int
) -> tuple[Fit, Floats]:
    """Return the fit after new answers, and the weight of each task in its counts."""
    data, K = problem.data, problem.data.n_classes
    model = method._model(problem)
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
    return _fit_at(ConfusionStats(counts, mass, 0.0), model, problem, 1 + n_sweeps), stream.scale


def stepwise_confusion(
    method: DawidSkene, kept: Kept, new: CrowdLabels
) -> tuple[CrowdLabels, Fit, StreamState]:
    """Return the answers in extended vocabularies, their fit, and the counts of the stream."""
    state = kept.stream
    if state is None:
        old = kept.labels
        counts = np.zeros((old.n_workers * old.n_classes, old.n_classes))
        cell = old.worker.astype(np.int64) * old.n_classes + old.label
        np.add.at(counts, cell, method.probas_[old.task])
        mass = method.probas_[old.labels_per_task > 0].sum(axis=0)
        mass *= old.n_annotations / max(mass.sum(), 1e-300)
        seen = old.labels_per_worker.astype(np.float64)
        state = StreamState(counts, seen, mass, float(old.n_annotations))
    data, state = joined_stream(state, method, new)
    problem = method._problem(data, as_task_prior(None, None, data))
    model = method._model(problem)
    alpha = _cell_alpha(model.alpha, data.n_workers)
    state = stepwise_pass(data, state, alpha, model.fixed_class)
    fit = _fit_at(ConfusionStats(state.table, state.mass, 0.0), model, problem, 1)
    evidence = worker_evidence(data, fit.probas).scaled_to(state.seen)
    return data, replace(fit, worker_evidence=evidence), state


def _fit_at(stats: ConfusionStats, model: DirichletModel, problem: Problem, n_iter: int) -> Fit:
    """Return the fit at the parameters that follow from these counts."""
    params = model.global_step(stats, None)
    probas = np.empty((problem.data.n_tasks, problem.data.n_classes))
    shards = problem.cut(params.table.size)
    states = shards.begin(model)
    found = shards.collect(model, "last_step", states, params, rows_into(probas))
    objective = (model.objective(found, params),)
    run = LoopResult(params, found, states, objective, n_iter, True)
    return fit_of(run, probas, np.exp(as_confusion(params.table)))


def _cell_alpha(alpha: Floats, n_workers: int) -> Floats:
    """Return pseudo-counts (K, L) or (J, K, L) as a table by cell (J·L, K)."""
    return as_table(np.broadcast_to(alpha, (n_workers, *alpha.shape[-2:])))


def updated_coin(
    method: OneCoinEM, problem: Problem, arrival: Arrival, sweeps: int
) -> tuple[Fit, Floats]:
    """Return the fit after new answers, and the weight of each task in its counts."""
    labels, K = problem.data, problem.data.n_classes
    if K == 1:  # every label is right
        return method._fit(problem), arrival.scale
    probas = PosteriorMatrix(labels)
    fixed = fixed_class_prior(method.class_prior, problem.prior, K, labels)
    params, scale, n_sweeps = _passes(method, problem, arrival, sweeps, fixed, probas)
    if fixed is None and isinstance(method.class_prior, str) and method.class_prior == "auto":
        shares = shares_of_vote_if_drifted(labels, params)
        if shares is not None:
            fixed = log_shares(shares)
            params, scale, n_sweeps = _passes(method, problem, arrival, sweeps, fixed, probas)
    model = method._model(labels, fixed, probas)
    shards = problem.cut(labels.n_workers + K)
    states = shards.begin(model)
    stats = shards.collect(model, "answer", states, params, probas.store)
    objective = (model.objective(stats, params),)
    best = LoopResult(params, stats, states, objective, 1 + n_sweeps, True)
    return method._result(labels, model, best, probas.matrix()), scale


def _passes(
    method: OneCoinEM,
    problem: Problem,
    arrival: Arrival,
    sweeps: int,
    fixed: Floats | None,
    probas: PosteriorMatrix,
) -> tuple[CoinParams, Floats, int]:
    """Return the parameters after new answers, the weights of tasks, and the sweeps."""
    data, K = problem.data, problem.data.n_classes
    stream, coin = stream_of(problem, arrival), as_coin_prior(method.prior)
    correct, total, mass = np.zeros(data.n_workers), np.zeros(data.n_workers), np.zeros(K)
    known = np.zeros(K) if fixed is None else fixed

    def recount() -> None:
        weight, per_task = contributions(stream)
        right = weight * stream.probas[stream.task, stream.label]
        correct[:] = np.bincount(stream.worker, right, len(correct))
        total[:] = np.bincount(stream.worker, weight, len(total))
        mass[:] = (per_task[:, None] * stream.probas).sum(axis=0)

    def update(kernels: Any, order: NDArray[np.int64]) -> float:
        return float(kernels.coin_updates(
            order, stream, (coin.a, coin.b), correct, total, mass, known, fixed is not None
        ))  # fmt: skip

    n_sweeps = run_passes(arrival, stream, sweeps, update, recount, mass)
    recount()
    model = replace(method._model(data, fixed, probas), weights=total)
    return model.global_step(CoinStats(correct, mass, 0.0), None), stream.scale, n_sweeps
