r"""Online updates of EM fits: incremental EM over extended vocabularies.

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

from wisecrowd.core.concurrency import exclusive_fit
from wisecrowd.core.exceptions import DataError, ParameterError
from wisecrowd.core.ids.encoding import lookup
from wisecrowd.core.labels import CrowdLabels
from wisecrowd.core.parameter_checks import check_flag, check_integer, check_number
from wisecrowd.core.problem import Problem
from wisecrowd.core.registry import get_method, method_names
from wisecrowd.core.result import dense_rows
from wisecrowd.core.task_prior import as_task_prior
from wisecrowd.kernels import kernels_for
from wisecrowd.kernels.incremental.reference import Stream

Floats = NDArray[np.float64]
Longs = NDArray[np.int64]

RECOUNT = 10_000  # answers after which counts are computed again, against rounding
WORK = 20  # annotations that take as long as one answer
STEP = 0.6  # exponent of the stepwise learning rate
MOST_SWEEPS = 100_000
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
    start : (n_tasks, n_classes)
        Posterior of the previous fit, zero for new tasks.
    scale : (n_tasks,)
        Weight of each task's contribution.
    fresh : (n_classes,)
        Votes for classes that the fit did not know, without which these would stay impossible.
    """

    labels: CrowdLabels
    order: Longs
    start: Floats
    scale: Floats
    fresh: Floats


def joined(
    old: CrowdLabels, probas: Any, scale: Floats, new: CrowdLabels, forget: float
) -> Arrival:
    """Join new answers to the labels of a fit; new tasks, workers and classes join."""
    ids = {name: _union(getattr(old, name), getattr(new, name))
           for name in ("tasks", "workers", "classes")}  # fmt: skip
    parts = [_recoded(data, ids) for data in (old, new)]
    task, worker, label = (
        np.concatenate([part[n] for part in parts]).astype(np.int64) for n in range(3)
    )
    is_new = np.arange(len(task)) >= old.n_annotations
    weight = None
    if old.weight is not None or new.weight is not None:
        weight = np.concatenate([_weights(old), _weights(new)])
    key = task * len(ids["workers"]) + worker
    order = np.argsort(key, kind="stable")
    answered_again = np.isin(key, key[is_new]) & ~is_new
    order = order[~answered_again[order]]
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
    start = np.zeros((labels.n_tasks, labels.n_classes))
    rows, columns = lookup(old.tasks, ids["tasks"]), lookup(old.classes, ids["classes"])
    start[np.ix_(rows, columns)] = dense_rows(probas)
    weights = np.ones(labels.n_tasks)
    weights[rows] = forget * scale
    fresh = np.zeros(labels.n_classes)
    np.add.at(fresh, labels.label, 1 / labels.labels_per_task[labels.task])
    fresh[columns] = 0.0
    return Arrival(labels, arrived, start, weights, fresh)


def _union(old: NDArray[Any], new: NDArray[Any]) -> NDArray[Any]:
    more = new[lookup(new, old) < 0]
    return old if not len(more) else np.concatenate([old.astype(object), more.astype(object)])


def _recoded(data: CrowdLabels, ids: dict[str, NDArray[Any]]) -> list[NDArray[Any]]:
    return [
        lookup(getattr(data, name), ids[name])[codes]
        for name, codes in (("tasks", data.task), ("workers", data.worker), ("classes", data.label))
    ]


def _weights(data: CrowdLabels) -> Floats:
    return np.ones(data.n_annotations) if data.weight is None else data.weight


def stream_of(problem: Problem, arrival: Arrival) -> Stream:
    """Return the state of all tasks before the new answers."""
    data, prior = problem.data, problem.prior
    active = np.ones(data.n_annotations, dtype=bool)
    active[arrival.order] = False
    index = prior.index
    if index is None:
        index = np.zeros(data.n_tasks, dtype=np.int32)
    return Stream(
        data.indptr, data.task, data.worker, data.label, _weights(data), prior.rows, index,
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
    ids = {"tasks": new.tasks, "workers": _union(old.workers_, new.workers),
           "classes": _union(old.classes_, new.classes)}  # fmt: skip
    task, worker, label = _recoded(new, ids)
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


# ------------------------------------------------------------------------------------ all methods


@dataclass(frozen=True, eq=False)
class Kept:
    """What a fit keeps for updates: its labels, gold codes, and the weights of tasks."""

    labels: CrowdLabels
    gold: NDArray[np.int32] | None
    scale: Floats | None = None
    given: bool = False
    stream: StreamState | None = None


def update_method(method: Any, answers: Any, *, sweeps: int, forget: float, stepwise: bool) -> None:
    """Update a fitted method with new answers and publish the result."""
    check_integer("sweeps", sweeps, 0, MOST_SWEEPS)
    check_number("forget", forget, 0.0, 1.0)
    if forget == 0:
        raise ParameterError("forget is 0; give a number above 0, or fit again without old labels.")
    check_flag("stepwise", stepwise)
    kept: Kept | None = vars(method).get("_kept")
    if kept is None:
        raise DataError(
            f"This {type(method).__name__} does not hold the labels of its fit, because it was "
            "loaded from a file; fit again with all labels."
        )
    if kept.given:
        raise DataError("A fit with a task prior cannot be updated; fit again with all labels.")
    kind = method._kind()
    new = kind.gate(answers)
    if new.n_annotations == 0:
        raise DataError("There are no answers to update with; give at least one.")
    if stepwise or kept.stream is not None:
        _update_stepwise(method, kept, new, stepwise)
        return
    scale = np.ones(kept.labels.n_tasks) if kept.scale is None else kept.scale
    arrival = joined(kept.labels, method.probas_, scale, new, forget)
    gold = kept.gold
    if gold is not None:
        gold = np.append(gold, np.full(arrival.labels.n_tasks - len(gold), -1, dtype=np.int32))
    problem = method._problem(arrival.labels, as_task_prior(None, gold, arrival.labels))
    with exclusive_fit(method):
        result, weights = method._update(problem, arrival, sweeps)
        method._publish(arrival.labels, result)
        method._kept = Kept(arrival.labels, gold, weights)


def _update_stepwise(method: Any, kept: Kept, new: CrowdLabels, stepwise: bool) -> None:
    if not stepwise:
        raise ParameterError(
            "After a stepwise update the old labels are gone; update with stepwise=True, or fit "
            "again."
        )
    if not hasattr(method, "_stepwise"):
        raise ParameterError(
            f"{type(method).__name__} has no stepwise updates; use DawidSkene, or stepwise=False."
        )
    with exclusive_fit(method):
        data, result, state = method._stepwise(kept, new)
        method._publish(data, result)
        method._kept = Kept(data, None, stream=state)


def updatable() -> list[str]:
    """Return the names of the methods that have online updates."""
    return [name for name in method_names() if get_method(name).promises.online]
