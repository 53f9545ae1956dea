"""Checks of methods that take ordered classes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from wisecrowd.core.aggregator import Aggregator
from wisecrowd.core.exceptions import DataError
from wisecrowd.core.kinds import Symmetry
from wisecrowd.kinds.classes.checks import reverse_classes
from wisecrowd.kinds.classes.container import CrowdLabels
from wisecrowd.kinds.ordered.answers import DECISIONS, decided
from wisecrowd.simulate import PerTask, graded_responses
from wisecrowd.testing.foundation import (
    Check,
    Make,
    assert_alike,
    assert_close,
    assert_same_bits,
    check,
    dense,
    fit_or_refusal,
    optional,
    require,
    short_run,
    text_ids,
    who_labels_what,
    with_both_kernels,
    with_params,
)

TINY_CROWDS = 6  # crowds of four tasks and three workers
CERTAIN = 0.99999


# ----------------------------------------------------------------------------------------- example


def example(make: Make, seed: int = 0) -> CrowdLabels:
    """Return 40 tasks with ordered labels by 4 of 7 workers each, with text ids."""
    rng = np.random.default_rng(seed)
    task, worker = who_labels_what(rng)
    level = rng.normal(0, 1, 40)
    seen = level[task] + 0.3 * rng.normal(size=7)[worker] + 0.5 * rng.normal(size=len(task))
    label = np.searchsorted([-0.6, 0.2, 1.1], seen)
    names = np.array(["1", "2", "3", "4"], dtype=object)
    return CrowdLabels.from_arrays(
        *text_ids(task, worker), names[label], classes=names.tolist(), ordered=True
    )


def _reversed_grades(learned: Mapping[str, Any]) -> dict[str, Any]:
    last = len(learned["classes_"]) - 1
    return {"probas_": learned["probas_"][:, ::-1], "grade_": last - learned["grade_"]}


SYMMETRIES = (
    Symmetry(name="reversing the order", change=reverse_classes, expected=_reversed_grades),
)


# ------------------------------------------------------------------------------------------ checks


def grades(rows: Any, classes: Any, **options: Any) -> CrowdLabels:
    """Return ordered labels from (task, worker, label) columns."""
    return CrowdLabels.from_arrays(*rows, classes=classes, ordered=True, **options)


def _sound(fitted: Aggregator, labels: CrowdLabels, when: str) -> None:
    probas = dense(fitted.probas_)
    require(probas.shape == (labels.n_tasks, labels.n_classes), f"the shape of probas_ {when}")
    require(np.isfinite(probas).all() and (probas >= 0).all(), f"probas_ is not finite {when}")
    require(np.abs(probas.sum(axis=1) - 1).max() <= 1e-9, f"probas_ do not sum to one {when}")
    low, high = fitted.grade_.min(), fitted.grade_.max()
    require(low >= -1e-9 and high <= labels.n_classes - 1 + 1e-9, f"grade_ off the scale {when}")
    require(set(fitted.labels_.tolist()) <= set(labels.classes.tolist()), f"labels_ {when}")
    fitted.task_table()
    fitted.worker_table()
    if fitted.tags().inductive:
        again = dense(fitted.predict_proba(labels))
        require(np.isfinite(again).all(), f"predict_proba is not finite {when}")


def _require_sound(make: Make, labels: CrowdLabels, when: str, **options: Any) -> Any:
    fitted = fit_or_refusal(make(), labels, **options)
    if fitted is not None:
        _sound(fitted, labels, when)
    return fitted


# ------------------------------------------------------------------------------ answers and order


@check
def check_decisions(make: Make) -> None:
    """Require that labels follow from the posterior by the rule of ``decide``."""
    labels = example(make)
    for rule in DECISIONS:
        fitted = with_params(make, decide=rule).fit(labels)
        codes, _ = decided(fitted.probas_, labels.class_totals, rule)
        require((labels.classes[codes] == fitted.labels_).all(), f"labels_ are not the {rule}")
        if fitted.tags().inductive:
            again = fitted.predict(labels)
            require((again == fitted.labels_).all(), f"predict does not repeat the {rule}")
    try:
        with_params(make, decide="middle").fit(labels)
    except Exception as error:
        require("median" in str(error), "the refusal of a bad decide names no rule")
        return
    raise AssertionError("decide='middle' is accepted")


@check
def check_numeric_order(make: Make) -> None:
    """Require the numeric order for classes without a declared one, and a refusal of names."""
    labels = example(make)
    names = np.array(["2", "9", "10", "11"], dtype=object)
    columns = labels.to_dict()
    rows = columns["task"], columns["worker"], names[labels.label]
    plain = CrowdLabels.from_arrays(*rows, classes=["10", "2", "11", "9"])
    given = short_run(make).fit(plain)
    expected = short_run(make).fit(labels)
    require(given.classes_.tolist() == names.tolist(), f"classes_ are {given.classes_.tolist()}")
    assert_close(expected.probas_, given.probas_, "probas_", "with classes in numeric order")
    words = CrowdLabels.from_arrays(["t", "t"], ["a", "b"], ["good", "bad"])
    try:
        make().fit(words)
    except DataError as error:
        require("order" in str(error), "the refusal of names does not mention their order")
        return
    raise AssertionError("classes without a known order are accepted")


@check
def check_recovers_grades(make: Make) -> None:
    """Require labels closer to the truth than a guess, on simulated graded responses."""
    made = graded_responses(300, 15, PerTask(6), n_classes=4, random_state=1)
    fitted = make().fit(made.labels)
    error = float(np.abs(fitted.labels_ - made.truth).mean())
    require(error <= 0.5, f"the mean absolute error is {error:.2f}")


@check
def check_objective_never_falls(make: Make) -> None:
    """Require a history that never falls, if the method promises it."""
    if not make().tags().monotone:
        return
    for seed in range(2):
        history = np.array(make().fit(example(make, seed)).history_)
        drop = float(-np.diff(history).min(initial=0.0))
        require(drop <= 1e-8 * max(np.abs(history).max(), 1.0), f"the objective falls by {drop:g}")


@check
def check_predict_repeats_grades(make: Make) -> None:
    """Require that predictions for the fitted labels repeat the fit, and accept new workers."""
    labels = example(make)
    fitted = make().fit(labels)
    if not fitted.tags().inductive:
        return
    assert_close(
        fitted.probas_, fitted.predict_proba(labels), "predict_proba", "on the same labels"
    )
    columns = labels.to_dict()
    new = np.array([f"new-{name}" for name in columns["worker"]], dtype=object)
    strange = grades((columns["task"], new, columns["label"]), labels.classes)
    probas = dense(fitted.predict_proba(strange))
    require(np.isfinite(probas).all(), "unknown workers give no finite posterior")


@check
def check_order_kernels(make: Make) -> None:
    """Require that the compiled kernels and the reference give the same posteriors."""
    optional("numba")
    labels = example(make)
    reference, fast = with_both_kernels(partial(short_run, make), labels)
    assert_close(reference.probas_, fast.probas_, "probas_", "between reference and compiled code")


# ------------------------------------------------------------------------------ gold and priors


@check
def check_gold_grades(make: Make) -> None:
    """Require that gold tasks keep their class, in fits and predictions."""
    labels = example(make)
    codes = {labels.tasks[i]: labels.classes[(3 * i) % 4] for i in range(0, 40, 4)}
    fitted = make().fit(labels, gold=codes)
    rows = list(range(0, 40, 4))
    require(fitted.labels_[rows].tolist() == list(codes.values()), "gold tasks have other labels")
    require((fitted.confidence_[rows] >= 1 - 1e-9).all(), "gold is not certain")
    if fitted.tags().inductive:
        again = fitted.predict_proba(labels, gold=codes)
        assert_close(fitted.probas_, again, "predict_proba", "with the same gold")


@check
def check_grade_prior(make: Make) -> None:
    """Require that a task prior moves posteriors its way, and rules out classes."""
    labels = example(make)
    high = np.tile([0.05, 0.05, 0.2, 0.7], (labels.n_tasks, 1))
    up = make().fit(labels, task_prior=high).grade_.mean()
    down = make().fit(labels, task_prior=high[:, ::-1]).grade_.mean()
    require(up > down + 0.01, f"a prior of high classes gives {up:.3f}, of low ones {down:.3f}")
    never = np.tile([0.5, 0.0, 0.25, 0.25], (labels.n_tasks, 1))
    probas = dense(make().fit(labels, task_prior=never).probas_)
    require(np.isfinite(probas).all() and probas[:, 1].max() <= 1e-9, "a class that is ruled out")


@check
def check_start(make: Make) -> None:
    """Require that a start is accepted, and leaves the result sound."""
    labels = example(make)
    start = np.full((labels.n_tasks, 4), 0.25)
    fitted = make().fit(labels, init=start)
    _sound(fitted, labels, "from a start")


# ------------------------------------------------------------------------------ unusual data


@check
def check_unused_grades(make: Make) -> None:
    """Require that workers and tasks without labels change nothing else."""
    labels = example(make)
    columns = labels.to_dict()
    rows = columns["task"], columns["worker"], columns["label"]
    alone = short_run(make).fit(labels)
    more = {"tasks": [*labels.tasks, "task-99999"], "workers": [*labels.workers, "worker-9999"]}
    beside = short_run(make).fit(grades(rows, labels.classes, **more))
    when = "when a task and a worker without labels are added"
    assert_alike(make, alone.probas_, dense(beside.probas_)[:-1], "probas_", when)
    _sound(beside, grades(rows, labels.classes, **more), when)
    accuracy = getattr(beside, "worker_accuracy_", None)
    require(accuracy is None or np.isfinite(accuracy).all(), "worker_accuracy_ is not finite")


@check
def check_few_grades(make: Make) -> None:
    """Require sound results for one annotation, one worker, one task and equal labels."""
    for classes in ([1], [1, 2], [1, 2, 3, 4]):
        fitted = _require_sound(make, grades((["t"], ["w"], [1]), classes), "on one annotation")
        require(fitted is None or fitted.labels_.tolist() == [1], "the only label is not kept")
    tasks, scale = [f"t{i:02d}" for i in range(12)], [1, 2, 3]
    given = [scale[i % 3] for i in range(12)]
    _require_sound(make, grades((tasks, ["w"] * 12, given), scale), "with one worker")
    _require_sound(make, grades((["t"] * 5, list("abcde"), [1, 2, 2, 2, 3]), scale), "on one task")
    labels = example(make)
    columns = labels.to_dict()
    for classes in ([2], [1, 2], [1, 2, 3]):
        same = grades((columns["task"], columns["worker"], [2] * len(columns["task"])), classes)
        fitted = _require_sound(make, same, "when all labels are equal")
        require(fitted is None or (fitted.labels_ == 2).all(), "an undisputed label is not kept")


@check
def check_odd_grades(make: Make) -> None:
    """Require sound results without agreement, without connection, and with repeated rows."""
    scale = [1, 2, 3]
    task = [f"t{i}" for i in range(6) for _ in range(3)]
    discord = [scale[(i + j) % 3] for i in range(6) for j in range(3)]
    _require_sound(make, grades((task, list("abc") * 6, discord), scale), "in discord")
    apart = [f"w{i // 2}-{j}" for i in range(6) for j in range(3)]
    agreed = [scale[i % 3] for i in range(6) for _ in range(3)]
    fitted = _require_sound(make, grades((task, apart, agreed), scale), "on a disconnected graph")
    if fitted is not None:
        wrong = int((np.abs(fitted.labels_ - agreed[::3]) > 1).sum())
        require(wrong == 0, f"{wrong} unanimous labels are off by two grades")
    twice = grades((task * 2, list("abc") * 12, discord * 2), scale, duplicates="keep")
    _require_sound(make, twice, "with repeated rows")
    labels = example(make)
    weight = np.ones(labels.n_annotations)
    weight[labels.task == 0] = 0.0
    _require_sound(make, replace(labels, weight=weight), "with weights of zero")


@check
def check_unused_class_between(make: Make) -> None:
    """Require sound results if nobody chose a class in the middle or at an end of the scale."""
    labels = example(make)
    for unused in range(5):
        code = labels.label + (labels.label >= unused)
        wider = replace(labels, label=code.astype(np.int32), classes=np.arange(5))
        fitted = _require_sound(make, wider, f"if nobody chose class {unused} of five")
        if fitted is not None and unused in (0, 4):
            share = dense(fitted.probas_)[:, unused].mean()
            require(share < 0.2, f"an end that nobody chose has the probability {share:.2f}")


@check
def check_humble_grades(make: Make) -> None:
    """Require that four tasks and three workers are not certain, unless a finding warns."""
    rng = np.random.default_rng(0)
    for _ in range(TINY_CROWDS):
        truth = rng.integers(1, 4, (4, 1))
        given = np.clip(truth + rng.choice([-1, 0, 0, 0, 1], (4, 3)), 1, 3).ravel()
        rows = np.repeat(np.arange(4), 3), np.tile(np.arange(3), 4), given
        fitted = fit_or_refusal(make(), grades(rows, [1, 2, 3]))
        if fitted is not None and not fitted.findings_:
            top = float(fitted.confidence_.mean())
            require(top < CERTAIN, f"four tasks and three workers give {top:.6f}")


@check
def check_refit_grades(make: Make) -> None:
    """Require that labels of another scale leave nothing of the previous fit."""
    method = make().fit(example(make))
    other = graded_responses(30, 5, PerTask(3), n_classes=3).labels
    assert_same_bits(make().fit(other), method.fit(other), "after another fit")


CHECKS: tuple[Check, ...] = (
    check_decisions,
    check_numeric_order,
    check_recovers_grades,
    check_objective_never_falls,
    check_predict_repeats_grades,
    check_order_kernels,
    check_gold_grades,
    check_grade_prior,
    check_start,
    check_unused_grades,
    check_few_grades,
    check_odd_grades,
    check_unused_class_between,
    check_humble_grades,
    check_refit_grades,
)
