"""``update`` of every method that iterates: new answers join a fit.

Methods with additive counts per worker take one answer at a time (``ONE_BY_ONE``). For the others
the new answers are one block: their tasks get the posterior that the current parameters predict,
all other tasks keep theirs, and the method's own passes over all tasks continue from there. Neal
and Hinton's argument covers any such schedule of partial E-steps.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.estimator import exclusive_fit
from wisecrowd.core.exceptions import DataError, ParameterError
from wisecrowd.core.ids.encoding import lookup
from wisecrowd.core.parameter_checks import check_flag, check_integer, check_number
from wisecrowd.core.problem import Problem
from wisecrowd.core.registry import get_method, method_names
from wisecrowd.core.result import Fit, Kept, dense_rows
from wisecrowd.core.types import Floats
from wisecrowd.kinds.classes.container import CrowdLabels, vote_table
from wisecrowd.kinds.classes.families.incremental import (
    Arrival,
    StreamState,
    joined,
    latest,
    stepwise_confusion,
    union,
    updated_coin,
    updated_confusion,
)
from wisecrowd.kinds.classes.methods.dawid_skene import DawidSkene
from wisecrowd.kinds.classes.methods.one_coin import OneCoinEM
from wisecrowd.kinds.classes.prior import as_task_prior
from wisecrowd.kinds.numbers.answers import NumberPrior
from wisecrowd.kinds.numbers.container import CrowdNumbers

MOST_SWEEPS = 100_000
FORGETS = (1.0, 0.9, 0.7, 0.5)  # that "auto" compares
LEAST_ANSWERS = 20  # with fewer new answers "auto" forgets nothing
EVIDENCE = 3.0  # nats by which forgetting must predict better; without drift, leads stay below 1


# Methods with counts per worker, and (method, problem, arrival, sweeps) -> (fit, weight per task).
ONE_BY_ONE: dict[type[Any], Callable[[Any, Problem, Arrival, int], tuple[Fit, Floats]]] = {
    DawidSkene: updated_confusion,
    OneCoinEM: updated_coin,
}


def one_by_one(cls: type[Any]) -> Callable[[Any, Problem, Arrival, int], tuple[Fit, Floats]] | None:
    """Return the function that updates methods of a class by one answer at a time, if it exists.

    Examples
    --------
    >>> one_by_one(get_method("zen-crowd")).__name__
    'updated_coin'
    """
    return next((update for base, update in ONE_BY_ONE.items() if issubclass(cls, base)), None)


def updatable(kind: str = "labels") -> list[str]:
    """Return the names of the methods of a kind that have online updates.

    Examples
    --------
    >>> updatable("numbers")
    ['gaussian-em', 'student-em']
    """
    names = method_names("aggregation", kind)
    return [name for name in names if get_method(name).promises.online]


def update_method(
    method: Any, answers: Any, *, sweeps: int, forget: float | str, stepwise: bool
) -> None:
    """Update a fitted method with new answers and publish the result."""
    check_integer("sweeps", sweeps, 0, MOST_SWEEPS)
    check_flag("stepwise", stepwise)
    _check_forget(method, forget)
    kept = _kept_of(method)
    if kept.given:
        raise DataError("A fit with a task prior cannot be updated; fit again with all labels.")
    new = method._kind().gate(answers)
    if new.n_annotations == 0:
        raise DataError("There are no answers to update with; give at least one.")
    if stepwise or kept.stream is not None:
        _update_stepwise(method, kept, new, stepwise)
    elif isinstance(new, CrowdNumbers):
        _update_numbers(method, kept, new, sweeps)
    else:
        if isinstance(forget, str):
            forget = best_forget(method, new, sweeps)
        _update_classes(method, kept, new, sweeps, forget)


def _kept_of(method: Any) -> Kept:
    kept: Kept | None = vars(method).get("_kept")
    if kept is None:
        raise DataError(
            f"This {type(method).__name__} does not hold the labels of its fit, because it was "
            "loaded from a file without them; save it with its labels, or fit again with all "
            "labels."
        )
    return kept


def _check_forget(method: Any, forget: Any) -> None:
    if forget == "auto":
        forget = 0.5
    check_number("forget", forget, 0.0, 1.0)
    if forget == 0:
        raise ParameterError("forget is 0; give a number above 0, or fit again without old labels.")
    if forget < 1 and one_by_one(type(method)) is None:
        able = [name for name in updatable() if one_by_one(get_method(name)) is not None]
        raise ParameterError(
            f"{type(method).__name__} cannot forget, because it has no counts per answer; use one "
            f"of {', '.join(able)}, or leave out forget."
        )


def best_forget(method: Any, new: CrowdLabels, sweeps: int = 0) -> float:
    """Return the factor under which the earlier half of new answers predicts the later half.

    It is 1 unless another one predicts better by three nats.
    """
    if new.n_annotations < LEAST_ANSWERS:
        return 1.0
    times = new.columns.get("timestamp")
    order = np.arange(new.n_annotations) if times is None else np.argsort(times, kind="stable")
    early = np.zeros(new.n_annotations, dtype=bool)
    early[order[: len(order) // 2]] = True
    scores = []
    for factor in FORGETS:
        trial = copy.deepcopy(method)
        trial.update(new.select_annotations(early), sweeps=sweeps, forget=factor)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of workers who are new in the later half
            scores.append(trial.score(new.select_annotations(~early)) * (~early).sum())
    best = int(np.argmax(scores))
    return FORGETS[best] if scores[best] > scores[0] + EVIDENCE else FORGETS[0]


# ---------------------------------------------------------------------------------------- classes


def _update_classes(method: Any, kept: Kept, new: CrowdLabels, sweeps: int, forget: float) -> None:
    scale = np.ones(kept.labels.n_tasks) if kept.scale is None else kept.scale
    arrival = joined(kept.labels, method.probas_, scale, new, forget)
    gold = kept.gold
    if gold is not None:
        gold = np.append(gold, np.full(arrival.labels.n_tasks - len(gold), -1, dtype=np.int32))
    problem = method._problem(arrival.labels, as_task_prior(None, gold, arrival.labels))
    update = one_by_one(type(method))
    with exclusive_fit(method):
        if update is not None:
            result, weights = update(method, problem, arrival, sweeps)
        elif hasattr(method, "_continued"):
            result, weights = method._continued(problem, arrival, 1 + sweeps), None
        else:
            result, weights = continued_fit(method, problem, arrival, 1 + sweeps), None
        result = method._with_humility(
            arrival.labels, replace(result, findings=()), gold is not None
        )
        method._publish(arrival.labels, result)
        method.saw_gold_ = gold is not None
        method._kept = Kept(arrival.labels, gold, weights)


def continued_fit(method: Any, problem: Problem, arrival: Arrival, passes: int) -> Fit:
    """Return the fit after some passes of a method from its previous posterior."""
    short: dict[str, Any] = {"max_iter": passes, "n_init": 1}
    names = method._parameter_names()
    made = copy.deepcopy(method).set_params(**{k: v for k, v in short.items() if k in names})
    made._forget()
    result: Fit = made._fit(replace(problem, start=start_after(method, arrival)))
    return result


def start_after(method: Any, arrival: Arrival) -> Floats:
    """Return the posterior (n_tasks, n_classes) from which a fit continues.

    Tasks with new answers get the posterior under the current parameters, or their votes if a class
    is new or the method has no posterior for new tasks.
    """
    labels, start = arrival.labels, arrival.placed(method.probas_)
    touched = np.unique(labels.task[arrival.order])
    some = labels[touched]
    tags = method.tags()
    if len(arrival.place[1]) == labels.n_classes and (tags.inductive or tags.predicts):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of workers who are new
            start[touched] = dense_rows(method.predict_proba(some))
    else:
        start[touched] = vote_table(some, weighted=True)
    total = start.sum(axis=1, keepdims=True)
    even = np.full_like(start, 1 / labels.n_classes)
    return np.where(total > 0, start / np.where(total > 0, total, 1), even)


def _update_stepwise(method: Any, kept: Kept, new: CrowdLabels, stepwise: bool) -> None:
    if not stepwise:
        raise ParameterError(
            "After a stepwise update the old labels are gone; update with stepwise=True, or fit "
            "again."
        )
    if not isinstance(method, DawidSkene):
        raise ParameterError(
            f"{type(method).__name__} has no stepwise updates; use DawidSkene, or stepwise=False."
        )
    with exclusive_fit(method):
        data, result, state = stepwise_confusion(method, kept, new)
        saw_gold = vars(method).get("saw_gold_", False)
        method._publish(data, result)
        method.saw_gold_ = saw_gold
        method._kept = Kept(data, None, stream=state)


# ---------------------------------------------------------------------------------------- numbers


def _update_numbers(method: Any, kept: Kept, new: CrowdNumbers, sweeps: int) -> None:
    labels = joined_numbers(kept.labels, new)
    gold = kept.gold
    if gold is not None:
        gold = np.append(gold, np.full(labels.n_tasks - len(gold), np.nan))
    problem = method._problem(labels, NumberPrior(gold=gold))
    with exclusive_fit(method):
        result = method._continued(problem, 1 + sweeps)
        result = method._with_humility(labels, replace(result, findings=()), gold is not None)
        method._publish(labels, result)
        method.saw_gold_ = gold is not None
        method._kept = Kept(labels, gold)


def joined_numbers(old: CrowdNumbers, new: CrowdNumbers) -> CrowdNumbers:
    """Join new numbers to those of a fit; a repeated pair replaces the old number."""
    if ("question" in old.columns) != ("question" in new.columns):
        raise DataError(
            "Either the fit or the new answers have questions; give the column question in both or "
            "in neither."
        )
    ids = {name: union(getattr(old, name), getattr(new, name)) for name in ("tasks", "workers")}
    task, worker = (
        np.concatenate([lookup(getattr(data, name), ids[name])[codes]
                        for data, codes in ((old, getattr(old, role)), (new, getattr(new, role)))])
        for name, role in (("tasks", "task"), ("workers", "worker"))
    )  # fmt: skip
    is_new = np.arange(len(task)) >= old.n_annotations
    order = latest(task.astype(np.int64) * len(ids["workers"]) + worker, is_new)

    def both(before: NDArray[Any], after: NDArray[Any]) -> NDArray[Any]:
        return np.concatenate([before, after])[order]

    weight = None
    if old.weight is not None or new.weight is not None:
        weight = both(old.weights, new.weights)
    columns = {}
    if "question" in new.columns:
        columns["question"] = both(old.columns["question"], new.columns["question"])
    return CrowdNumbers(
        task=task[order].astype(np.int32), worker=worker[order].astype(np.int32),
        value=both(old.value, new.value), tasks=ids["tasks"], workers=ids["workers"],
        weight=weight, columns=columns, frame_library=new.frame_library,
    )  # fmt: skip


# ------------------------------------------------------------------------------------- model files


def state_of(method: Any) -> dict[str, Any]:
    """Return the labels of a fit and all else that updates need, as arrays for a model file."""
    if not method.tags().online:
        raise ParameterError(
            f"{type(method).__name__} cannot be updated, so that its labels are not saved; leave "
            f"out labels, or use one of {', '.join(updatable(method.takes))}."
        )
    kept = _kept_of(method)
    labels = kept.labels
    values = labels.value if isinstance(labels, CrowdNumbers) else labels.label
    state = {"task": labels.task, "worker": labels.worker, "value": values, "given": kept.given}
    parts = {"weight": labels.weight, "gold": kept.gold, "scale": kept.scale,
             "question": labels.columns.get("question")}  # fmt: skip
    if kept.stream is not None:
        stream = vars(kept.stream)
        parts |= {f"stream_{name}": stream[name] for name in ("table", "seen", "mass", "n")}
    return state | {name: value for name, value in parts.items() if value is not None}


def restore(method: Any, state: Mapping[str, Any]) -> None:
    """Give a loaded method what updates need; a file that does not fit the method is refused."""
    numbers = method.takes == "numbers"
    J, K = len(method.workers_), 0 if numbers else len(method.classes_)
    codes = {"task": len(method.tasks_), "worker": J} | ({} if numbers else {"value": K})
    n = len(state["task"])
    for name, size in codes.items():
        code = state[name]
        if code.dtype != np.int32 or code.shape != (n,) or not ((code >= 0) & (code < size)).all():
            raise DataError(f"the {name} codes of its labels are out of range")
    key = state["task"].astype(np.int64) * J + state["worker"]
    if (np.diff(key) < 0).any():
        raise DataError("its labels are not sorted")
    given: dict[str, Any] = {name: state.get(name) for name in ("weight", "gold", "scale")}
    for name, size in (("weight", n), ("scale", codes["task"]), ("gold", codes["task"])):
        array = given[name]
        if array is not None and (array.shape != (size,) or array.dtype.kind not in "if"):
            raise DataError(f"{name} of its labels has another length")
    for array in (given["weight"], given["scale"]):
        if array is not None and not ((array >= 0) & np.isfinite(array)).all():
            raise DataError("a weight of its labels is negative")
    shared = {
        "task": state["task"], "worker": state["worker"], "tasks": method.tasks_,
        "workers": method.workers_, "weight": given["weight"],
    }  # fmt: skip
    if numbers:
        value = np.asarray(state["value"], dtype=np.float64)
        if value.shape != (n,) or not np.isfinite(value).all():
            raise DataError("its numbers are not finite")
        columns = {"question": state["question"]} if "question" in state else {}
        labels: Any = CrowdNumbers(**shared, value=value, columns=columns)
    else:
        gold = given["gold"]
        if gold is not None and not ((gold >= -1) & (gold < K)).all():
            raise DataError("its gold is not among the classes")
        labels = CrowdLabels(**shared, label=state["value"], classes=method.classes_)
    stream = _restored_stream(state, J, K)
    method._kept = Kept(labels, given["gold"], given["scale"], bool(state["given"]), stream)


def _restored_stream(state: Mapping[str, Any], n_workers: int, n_classes: int) -> Any:
    if "stream_table" not in state:
        return None
    shapes = {"table": (n_workers * n_classes, n_classes), "seen": (n_workers,),
              "mass": (n_classes,)}  # fmt: skip
    for name, shape in shapes.items():
        array = state[f"stream_{name}"]
        if array.dtype != np.float64 or array.shape != shape or not np.isfinite(array).all():
            raise DataError(f"{name} of its stream has another shape")
    table, seen, mass = (np.array(state[f"stream_{name}"]) for name in shapes)
    return StreamState(table, seen, mass, float(state["stream_n"]))
