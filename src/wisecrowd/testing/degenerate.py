"""Checks that unusual but valid data give a finite result or a clear error.

Of few labels, a method claims no more than they show, or a finding says so.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from wisecrowd.core.aggregator import Aggregator
from wisecrowd.core.result import dense_rows
from wisecrowd.kinds.classes.container import CrowdLabels
from wisecrowd.testing.behaviour import assert_sound
from wisecrowd.testing.crowds import n_classes_for, named_columns, small_labels
from wisecrowd.testing.foundation import (
    Make,
    assert_alike,
    check,
    class_names,
    fit_or_refusal,
    is_stochastic,
    require,
    short_run,
)

BUSY = 5000  # labels by the worker who labels every task
N_TASKS, N_WORKERS = 60, 5
FREQUENT = 0.7  # frequency of the first class, if classes are skewed
EVEN = 0.02  # tolerated distance of an even split from equal probabilities
TINY_CROWDS = 8  # number of crowds of four tasks and three workers


def _fit_or_refusal(make: Make, labels: CrowdLabels, when: str) -> Any:
    """Return a fitted method whose results are finite, or None if it refuses the labels."""
    fitted = fit_or_refusal(make(), labels)
    if fitted is None:
        return None
    assert_sound(fitted, labels, when)
    if fitted.tags().inductive:
        probas = fitted.predict_proba(labels)
        require(np.isfinite(np.asarray(probas.sum())).all(), f"predict_proba is not finite {when}")
    fitted.task_table()
    fitted.worker_table()
    return fitted


@check
def check_one_annotation(make: Make) -> None:
    """Require a valid result for one label by one worker on one task, with one or two classes."""
    for classes in (["a"], ["a", "b"]):
        labels = CrowdLabels.from_arrays(["t"], ["w"], ["a"], classes=classes)
        fitted = _fit_or_refusal(make, labels, f"on one annotation of {len(classes)} classes")
        if fitted is not None:
            require(fitted.labels_.tolist() == ["a"], "the only label given is not the label")


@check
def check_one_worker(make: Make) -> None:
    """Require that the labels of a single worker are the result."""
    classes = class_names(n_classes_for(make))
    given = [classes[i % len(classes)] for i in range(12)]
    labels = CrowdLabels.from_arrays([f"t{i:02d}" for i in range(12)], ["w"] * 12, given)
    fitted = _fit_or_refusal(make, labels, "with one worker")
    if fitted is not None:
        require(fitted.labels_.tolist() == given, "the only worker is not followed")


@check
def check_one_class(make: Make) -> None:
    """Require that an undisputed label is kept, with and without a second class declared."""
    task, worker, _ = named_columns(small_labels(make))
    for classes in (["yes"], ["no", "yes"]):
        labels = CrowdLabels.from_arrays(task, worker, ["yes"] * len(task), classes=classes)
        fitted = _fit_or_refusal(make, labels, "when all labels are equal")
        if fitted is not None:
            require((fitted.labels_ == "yes").all(), "an undisputed label is not kept")


@check
def check_disconnected(make: Make) -> None:
    """Require a valid result if groups of workers share no task."""
    classes = class_names(n_classes_for(make))
    task = [f"t{i}" for i in range(8) for _ in range(3)]
    worker = [f"w{i // 2}-{j}" for i in range(8) for j in range(3)]
    label = [classes[i % 2] for i in range(8) for _ in range(3)]
    labels = CrowdLabels.from_arrays(task, worker, label, classes=classes)
    fitted = _fit_or_refusal(make, labels, "on a disconnected graph")
    if fitted is not None:
        expected = [classes[i % 2] for i in range(8)]
        require(fitted.labels_.tolist() == expected, "unanimous tasks have another label")


@check
def check_all_disagree(make: Make) -> None:
    """Require finite results if no two workers ever agree."""
    classes = class_names(n_classes_for(make))
    k = len(classes)
    task = [f"t{i}" for i in range(6) for _ in range(k)]
    worker = [f"w{j}" for _ in range(6) for j in range(k)]
    label = [classes[(i + j) % k] for i in range(6) for j in range(k)]
    _fit_or_refusal(make, CrowdLabels.from_arrays(task, worker, label), "in discord")


@check
def check_unused_class(make: Make) -> None:
    """Require that an unused class is kept and is never the label."""
    labels = small_labels(make)
    task, worker, label = named_columns(labels)
    if make().tags().binary:
        label = np.full(len(label), "class-000", dtype=object)
    classes = [*sorted(set(label)), "unused"]
    declared = CrowdLabels.from_arrays(task, worker, label, classes=classes)
    fitted = _fit_or_refusal(make, declared, "with a class that nobody chose")
    if fitted is not None:
        require(not (fitted.labels_ == "unused").any(), "a class that nobody chose is a label")


@check
def check_empty_rows(make: Make) -> None:
    """Require a valid result if a task and a worker, or all tasks of a fold, have no labels."""
    labels = small_labels(make)
    declared = CrowdLabels.from_arrays(
        *named_columns(labels),
        tasks=["task-99999", *labels.tasks.tolist()],
        workers=["worker-9999", *labels.workers.tolist()],
        classes=class_names(labels.n_classes),
    )
    fitted = _fit_or_refusal(make, declared, "with a task and a worker without labels")
    if fitted is not None and fitted.tags().inductive:
        alone = declared[[0]]
        probas = fitted.predict_proba(alone)
        require(probas.shape == (1, labels.n_classes), "a fold without labels has no posterior")


@check
def check_busy_worker(make: Make) -> None:
    """Require finite results if one worker labels every task and the others two tasks each."""
    rng = np.random.default_rng(0)
    k = n_classes_for(make)
    busy = np.arange(BUSY)
    few = rng.integers(0, BUSY, size=600)
    labels = CrowdLabels.from_arrays(
        np.concatenate([busy, few]),
        np.concatenate([np.zeros(BUSY, np.int64), 1 + np.arange(600) // 2]),
        rng.integers(0, k, size=BUSY + 600),
        duplicates="keep",
    )
    _fit_or_refusal(make, labels, "with a worker who labels everything")


@check
def check_busy_task(make: Make) -> None:
    """Require finite results for 2000 labels on one task, whose product would underflow."""
    n = 2000
    task = np.concatenate([np.zeros(n, np.int64), np.arange(1, 41)])
    worker = np.concatenate([np.arange(n), np.arange(40)])
    label = np.concatenate([np.arange(n) % 5 == 0, np.arange(40) % 2 == 0]).astype(np.int64)
    labels = CrowdLabels.from_arrays(task, worker, label)
    fitted = _fit_or_refusal(make, labels, "with 2000 labels on one task")
    if fitted is not None:
        require(fitted.labels_[0] == 0, "four of five workers are not followed")


@check
def check_zero_weights(make: Make) -> None:
    """Require that annotations of weight zero do not count, even if they are all of a task's."""
    columns = named_columns(small_labels(make))
    first = np.flatnonzero(columns[0][1:] != columns[0][:-1])[::2] + 1  # every other task
    weight = np.ones(len(columns[0]))
    weight[first] = 0.0
    workers, classes = sorted(set(columns[1])), sorted(set(columns[2]))
    declared: dict[str, Any] = {"workers": workers, "classes": classes}
    kept = (np.delete(column, first) for column in columns)
    dropped = short_run(make).fit(CrowdLabels.from_arrays(*kept, **declared))
    ignored = short_run(make).fit(CrowdLabels.from_arrays(*columns, weight=weight, **declared))
    assert_alike(make, dropped.probas_, ignored.probas_, "probas_", "between weight 0 and no label")
    weight[columns[0] == columns[0][0]] = 0.0
    labels = CrowdLabels.from_arrays(*columns, weight=weight, **declared)
    _fit_or_refusal(make, labels, "with a task whose labels have weight zero")


@check
def check_many_classes(make: Make) -> None:
    """Require a valid result for more classes than labels."""
    if make().tags().binary:
        return
    n = 30
    given = np.repeat(np.arange(n), 3)
    label = np.where(np.arange(3 * n) % 3 == 2, given + n, given)  # two agree, the third differs
    labels = CrowdLabels.from_arrays(
        np.repeat(np.arange(n), 3), np.tile(np.arange(3), n), label, classes=np.arange(120)
    )
    fitted = _fit_or_refusal(make, labels, "with 120 classes")
    if fitted is not None:
        right = float(np.mean(fitted.labels_ == np.arange(n)))
        require(right == 1.0, f"two of three workers are followed on {right:.0%} of the tasks only")


def single_labels(n_classes: int, accuracy: float) -> Iterator[CrowdLabels]:
    """Yield crowds with one label per task, of equally frequent and of skewed classes."""
    skewed = np.full(n_classes, (1 - FREQUENT) / (n_classes - 1))
    skewed[0] = FREQUENT
    for number, frequency in enumerate((np.full(n_classes, 1 / n_classes), skewed)):
        rng = np.random.default_rng(number)
        truth = rng.choice(n_classes, N_TASKS, p=frequency)
        wrong = (truth + rng.integers(1, n_classes, N_TASKS)) % n_classes
        given = np.where(rng.random(N_TASKS) < accuracy, truth, wrong)
        task = np.arange(N_TASKS)
        yield CrowdLabels.from_arrays(task, task % N_WORKERS, given, classes=range(n_classes))


@check
def check_single_labels_kept(make: Make) -> None:
    """Require that single labels are the result, or that a finding warns of those that are not."""
    for n_classes in (2,) if make().tags().binary else (2, 3, 4):
        for accuracy in (1.0, 0.8):
            for labels in single_labels(n_classes, accuracy):
                fitted = fit_or_refusal(make(), labels)
                if fitted is None:
                    continue
                changed = int(np.count_nonzero(fitted.labels_ != labels.label))
                require(
                    changed == 0 or _warns(fitted, "one-label-per-task"),
                    f"{changed} of {N_TASKS} labels are not the only label given, and no finding "
                    f"says so ({n_classes} classes, workers right with probability {accuracy})",
                )


@check
def check_unanimous_labels(make: Make) -> None:
    """Require that labels of three workers who agree are kept, or that a finding says so."""
    rng = np.random.default_rng(0)
    for _ in range(TINY_CROWDS):
        truth = rng.integers(0, 2, (4, 1))
        given = np.where(rng.random((4, 3)) < 0.8, truth, 1 - truth)
        fitted = fit_or_refusal(make(), CrowdLabels.from_matrix(given, classes=[0, 1]))
        if fitted is None:
            continue
        unanimous = np.ptp(given, axis=1) == 0
        changed = int(np.count_nonzero(fitted.labels_[unanimous] != given[unanimous, 0]))
        require(
            changed == 0 or _warns(fitted, "unanimous-overruled"),
            f"{changed} labels on which three workers agree are overruled, and no finding says so",
        )


@check
def check_even_split(make: Make) -> None:
    """Require a tie where one worker says one thing and one another, or a finding.

    Nothing distinguishes the two workers, so only order or rounding could decide.
    """
    for given in ([[0, 1]], [[0, 1], [0, 1]], [[0, 1], [1, 0]]):
        labels = CrowdLabels.from_matrix(np.array(given), classes=[0, 1])
        fitted = fit_or_refusal(make(), labels)
        if fitted is None or _warns(fitted, "few-tasks"):
            continue
        apart = float(np.abs(dense_rows(fitted.probas_) - 0.5).max())
        require(apart <= EVEN, f"one label against one has probability {0.5 + apart:.3f}")
        tied = bool(fitted.ties_.all()) or is_stochastic(make)
        require(tied, "one label against one is not a tie")


def _warns(fitted: Aggregator, kind: str) -> bool:
    """Return whether the fit has a finding of this kind, medium or high."""
    return any(
        finding.id == kind and finding.severity in ("medium", "high")
        for finding in fitted.findings_
    )
