"""Checks of methods that take numbers."""

from __future__ import annotations

import random
from collections.abc import Mapping
from contextvars import copy_context
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from wisecrowd.core.aggregator import Aggregator
from wisecrowd.core.exceptions import DataError, ParameterError
from wisecrowd.core.kinds import Symmetry
from wisecrowd.engines.threads import set_threads
from wisecrowd.inference import engine
from wisecrowd.kinds.numbers.container import CrowdNumbers
from wisecrowd.testing.contract import unsound_parameters
from wisecrowd.testing.crowds import columns_of
from wisecrowd.testing.foundation import (
    Check,
    Make,
    assert_close,
    assert_same_bits,
    check,
    fit_or_refusal,
    numbers_of,
    optional,
    replaced,
    require,
    short_run,
    text_ids,
    who_labels_what,
    with_both_kernels,
    with_params,
)
from wisecrowd.testing.kind_checks import assert_finite

# ----------------------------------------------------------------------------------------- example


def example(make: Make, seed: int = 0) -> CrowdNumbers:
    """Return 40 tasks with numbers by 4 of 7 workers each, with text ids."""
    rng = np.random.default_rng(seed)
    task, worker = who_labels_what(rng)
    noise, bias = rng.uniform(0.2, 1.5, 7), rng.normal(0, 0.5, 7)
    value = rng.normal(10, 2, 40)[task] + bias[worker] + noise[worker] * rng.normal(size=len(task))
    return CrowdNumbers.from_arrays(*text_ids(task, worker), value)


def _scaled(data: CrowdNumbers) -> CrowdNumbers:
    return replace(data, value=3.0 + 2.0 * data.value)


def _scaled_results(learned: Mapping[str, Any]) -> dict[str, Any]:
    places, amounts = ("values_", "low_", "high_"), ("noise_", "bias_")
    found = {name: 3.0 + 2.0 * learned[name] for name in places}
    found |= {name: 2.0 * learned[name] for name in amounts if name in learned}
    return found | {"variance_": 4.0 * learned["variance_"]}


def _negated(data: CrowdNumbers) -> CrowdNumbers:
    return replace(data, value=-data.value)


def _negated_results(learned: Mapping[str, Any]) -> dict[str, Any]:
    found = {"values_": -learned["values_"], "low_": -learned["high_"], "high_": -learned["low_"]}
    return found | {"variance_": learned["variance_"]}


SYMMETRIES = (
    Symmetry(name="shift and scale", change=_scaled, expected=_scaled_results),
    Symmetry(name="turning the sign", change=_negated, expected=_negated_results),
)


# ------------------------------------------------------------------------------------------ checks


SHIFT, SCALE = 1000.0, 7.0  # of the labels, for the check of equivariance
_NO_UNITS = ("worker_weight_", "freedom_")


def _assert_sound(fitted: Aggregator, data: CrowdNumbers, when: str) -> None:
    """Require finite numbers of the declared shapes, and values inside their intervals."""
    assert_finite(fitted, when)
    require(len(fitted.values_) == data.n_tasks, f"values_ has a wrong length {when}")
    require((fitted.variance_ >= 0).all(), f"variance_ is negative {when}")
    inside = (fitted.low_ <= fitted.values_) & (fitted.values_ <= fitted.high_)
    require(inside.all(), f"a value is outside of its interval {when}")
    fitted.task_table()
    fitted.worker_table()


def _fit(make: Make, data: CrowdNumbers, when: str) -> Aggregator | None:
    fitted = fit_or_refusal(make(), data)
    if fitted is not None:
        _assert_sound(fitted, data, when)
        if fitted.tags().inductive or fitted.tags().predicts:
            require(np.isfinite(fitted.predict(data)).all(), f"a prediction is not finite {when}")
    return fitted


@check
def check_degenerate_numbers(make: Make) -> None:
    """Require a finite answer or a clear error for one label, worker or task, and for no spread."""
    build = CrowdNumbers.from_arrays
    one = _fit(make, build(["t"], ["w"], [3.5]), "on one annotation")
    if one is not None:
        require(np.isclose(one.values_[0], 3.5), "the only label given is not the value")
    tasks, workers = [f"t{i}" for i in range(9)], [f"w{j}" for j in range(9)]
    for labels in (np.arange(9.0), np.full(9, 2.5)):
        alone = _fit(make, build(tasks, ["w"] * 9, labels), "with one worker")
        if alone is not None:
            order = np.argsort(alone.values_, kind="stable")
            require(np.array_equal(order, np.arange(9)), "the order of the only worker is lost")
    task = _fit(make, build(["t"] * 9, workers, np.arange(9.0)), "with one task")
    if task is not None:
        require(0 <= task.values_[0] <= 8, "the value is outside of the labels of the only task")
    columns = columns_of(example(make))
    equal = _fit(make, build(*columns[:2], np.full(len(columns[0]), 4.25)), "with equal labels")
    if equal is not None:
        require(np.allclose(equal.values_, 4.25, rtol=1e-6), "undisputed labels are not kept")
    for offset in (0.0, 1e6):
        twice = build(*(np.repeat(c, 2) for c in columns[:2]), np.repeat(columns[2] + offset, 2),
                      duplicates="keep")  # fmt: skip
        _fit(make, twice, "with repeated rows")


@check
def check_disconnected_numbers(make: Make) -> None:
    """Require a sound answer if groups of workers share no task."""
    rng = np.random.default_rng(0)
    task = np.repeat(np.arange(12), 3)
    worker = np.tile(np.arange(3), 12) + 3 * (task // 3)
    data = CrowdNumbers.from_arrays(task, worker, task + rng.normal(0, 0.1, 36))
    fitted = _fit(make, data, "on a disconnected graph")
    if fitted is not None:
        near = np.abs(fitted.values_ - np.arange(12)).max() < 2
        require(near, "labels on which all workers agree are not kept")


@check
def check_unlabelled_numbers(make: Make) -> None:
    """Require that a task and a worker without labels change nothing else, and get a value."""
    data = example(make)
    tasks, workers = data.tasks.tolist(), data.workers.tolist()
    more = CrowdNumbers.from_arrays(
        *columns_of(data), tasks=[*tasks, "task-99999"], workers=[*workers, "worker-9999"]
    )
    alone, beside = short_run(make).fit(data), short_run(make).fit(more)
    _assert_sound(beside, more, "with a task and a worker without labels")
    for name, axes in numbers_of(alone).items():
        if axes in (("N",), ("J",)):
            assert_close(getattr(alone, name), getattr(beside, name)[:-1], name,
                         "when a task and a worker without labels are added")  # fmt: skip
    if beside.tags().inductive:
        empty = more[[len(tasks)]]
        require(np.isfinite(beside.predict(empty)).all(), "a task without labels has no prediction")


@check
def check_zero_weights_of_numbers(make: Make) -> None:
    """Require that labels of weight zero do not count."""
    columns = columns_of(example(make))
    dropped = np.flatnonzero(columns[0][1:] != columns[0][:-1])[::2] + 1
    weight = np.ones(len(columns[0]))
    weight[dropped] = 0.0
    workers = sorted(set(columns[1]))
    kept = tuple(np.delete(column, dropped) for column in columns)
    wild = columns[2].copy()
    wild[dropped] += 1e3
    first = fit_or_refusal(short_run(make), CrowdNumbers.from_arrays(*kept, workers=workers))
    if first is None:
        return
    data = CrowdNumbers.from_arrays(*columns[:2], wild, weight=weight, workers=workers)
    second = short_run(make).fit(data)
    for name in ("values_", "variance_"):
        assert_close(getattr(first, name), getattr(second, name), name,
                     "between weight 0 and no label", 1e-7)  # fmt: skip


@check
def check_equivariance(make: Make) -> None:
    """Require that shift and scale of the labels do the same to the values, to 1e-12."""
    data = example(make)
    task, worker, value = columns_of(data)
    plain = short_run(make).fit(data)
    moved = short_run(make).fit((task, worker, SHIFT + SCALE * value))
    size = SHIFT + SCALE * np.abs(value).max()
    for name in numbers_of(plain):
        first, second = getattr(plain, name), getattr(moved, name)
        if name in ("values_", "low_", "high_"):
            expected, unit = SHIFT + SCALE * first, size
        elif name == "variance_":
            expected, unit = SCALE**2 * first, SCALE**2 * first.max()
        elif name in _NO_UNITS:
            expected, unit = first, 1.0
        else:
            expected, unit = SCALE * first, size
        assert_close(expected / unit, second / unit, name, "after shift and scale", 1e-12)


@check
def check_number_gold(make: Make) -> None:
    """Require that known tasks keep their number, without doubt, also in predictions."""
    data = example(make)
    gold = {data.tasks[0]: 3.25, data.tasks[5]: 12.0}
    fitted = make().fit(data, gold=gold)
    _assert_sound(fitted, data, "with gold")
    for place, number in ((0, 3.25), (5, 12.0)):
        for name in ("values_", "low_", "high_"):
            same = np.isclose(getattr(fitted, name)[place], number, rtol=1e-12)
            require(same, f"{name} of a known task is not its number")
    if fitted.tags().inductive:
        predicted = fitted.predict(data, gold=gold)
        require(np.isclose(predicted[5], 12.0), "the prediction of a known task is another number")
    truth = dict(zip(data.tasks.tolist(), fitted.values_.tolist(), strict=True))
    everything = make().fit(data, gold=truth)
    require(np.allclose(everything.values_, fitted.values_), "all tasks known: values differ")


@check
def check_number_prior(make: Make) -> None:
    """Require that a task prior pulls values towards it, or is refused clearly."""
    data = example(make)
    far = np.where(np.arange(data.n_tasks) % 2, 30.0, -10.0)
    try:
        strong = make().fit(data, task_prior=(far, 1e-8))
    except ParameterError as error:
        require("task_prior" in str(error), "the refusal does not name task_prior")
        return
    require(np.abs(strong.values_ - far).max() < 0.1, "a nearly certain prior is not followed")
    weak, plain = make().fit(data, task_prior=(far, 1e8)), make().fit(data)
    require(np.abs(weak.values_ - plain.values_).max() < 2.0, "a vague prior changes the values")
    for wrong in ((1.0, -1.0), (np.nan, 1.0), "x", [[1.0]]):
        try:
            make().fit(data, task_prior=wrong)
        except DataError:
            continue
        raise AssertionError(f"the task prior {wrong!r} is not refused")


@check
def check_number_predictions(make: Make) -> None:
    """Require that predictions repeat the fit, and that unknown workers are accepted."""
    data = example(make)
    fitted = make().fit(data)
    if fitted.tags().inductive:
        answers = fitted._predicted(data, None, None)
        for name, values in answers.attributes({}).items():
            assert_close(getattr(fitted, name), values, name, "between fit and prediction", 1e-8)
    if fitted.tags().inductive or fitted.tags().predicts:
        new = CrowdNumbers.from_arrays(["x", "x"], ["worker-0001", "stranger"], [9.0, 11.0])
        predicted = fitted.predict(new)
        require(5 < predicted[0] < 15, f"the prediction from an unknown worker is {predicted[0]}")


@check
def check_number_objective(make: Make) -> None:
    """Require that the objective never decreases, where the method promises it."""
    if not make().tags().monotone:
        return
    for seed in range(3):
        history = np.array(with_params(make, tol=1e-9).fit(example(make, seed)).history_)
        fall = -np.diff(history).min(initial=0.0)
        require(fall <= 1e-10 * np.abs(history).max(), f"the objective falls by {fall:.3g}")


@check
def check_number_score(make: Make) -> None:
    """Require R² with truth, and a finite likelihood where the method promises one."""
    data = example(make)
    fitted = make().fit(data)
    truth = dict(zip(data.tasks.tolist(), fitted.values_.tolist(), strict=True))
    require(fitted.score(data, truth) > 0.99, "the score of the own values is not 1")
    if fitted.tags().likelihood:
        score = fitted.score(data)
        noisy = CrowdNumbers.from_arrays(*columns_of(data)[:2], columns_of(data)[2][::-1].copy())
        require(np.isfinite(score), "the likelihood is not finite")
        require(score > fitted.score(noisy), "shuffled labels are as probable as those of the fit")


@check
def check_log_scale(make: Make) -> None:
    """Require that the log scale is the linear one on logarithms, and refuses other numbers."""
    data = example(make)
    task, worker, value = columns_of(data)
    small = value / 5
    linear = short_run(make).fit((task, worker, small))
    log = short_run(lambda: with_params(make, scale="log")).fit((task, worker, np.exp(small)))
    for name in ("values_", "low_", "high_"):
        logs = np.log(getattr(log, name))
        assert_close(getattr(linear, name), logs, name, "between scales", 1e-8)
    assert_close(linear.variance_, log.variance_, "variance_", "between scales", 1e-8)
    bad = value.copy()
    bad[7] = 0.0
    try:
        with_params(make, scale="log").fit((task, worker, bad))
    except DataError as error:
        named = str(task[7]) in str(error) and str(worker[7]) in str(error)
        require(named, f"the refusal of 0 does not name the label: {error}")
        return
    raise AssertionError("a log scale accepts 0")


@check
def check_intervals(make: Make) -> None:
    """Require nested intervals, and calibrated ones that contain the gold they were fitted to.

    Of many known numbers level and slope are corrected, too.
    """
    data = example(make)
    fitted: Any = make().fit(data)
    low, high = fitted.interval(0.95)
    assert_close(low, fitted.low_, "low_", "and interval(0.95)")
    assert_close(high, fitted.high_, "high_", "and interval(0.95)")
    inner = fitted.interval(0.5)
    require(((low < inner[0]) & (inner[1] < high)).all(), "intervals are not nested")
    known = fitted.values_ + 3 * np.random.default_rng(0).normal(size=data.n_tasks)
    for n, most in ((29, 0.96), (data.n_tasks, 1.0)):  # of many, each is predicted without it
        gold = dict(zip(data.tasks[:n].tolist(), known[:n], strict=True))
        calibrated = fitted.calibrated(gold)
        wide = calibrated.interval(0.9)
        held = ((wide[0] <= known + 1e-9) & (known - 1e-9 <= wide[1]))[:n].mean()
        require(0.9 <= held <= most, f"calibrated 90% intervals contain {held:.0%} of the gold")
        require(fitted.interval_factor_ == 1.0, "calibration changes the fit itself")
        same = np.array_equal(calibrated.values_, fitted.values_)
        require(same == (n < 30), f"values change or stay by calibration on {n} tasks")
    line = dict(zip(data.tasks.tolist(), 3 + 2 * fitted.values_ + 0.1 * (known - fitted.values_),
                    strict=True))  # fmt: skip
    off = np.abs(fitted.calibrated(line).values_ - 3 - 2 * fitted.values_).max()
    require(off < 1, f"values with another level and slope are {off:.2f} off after calibration")
    try:
        fitted.calibrated({data.tasks[0]: 1.0})
    except DataError:
        return
    raise AssertionError("intervals are calibrated on one task")


@check
def check_number_kernels(make: Make) -> None:
    """Require that the compiled kernels and the reference give the same results."""
    optional("numba")
    data = example(make)
    for options in ({}, {"gold": {data.tasks[0]: 9.0}}):
        reference, fast = with_both_kernels(partial(short_run, make), data, **options)
        for name in numbers_of(reference):
            when = "between the reference and the compiled kernels"
            assert_close(getattr(reference, name), getattr(fast, name), name, when)


@check
def check_number_threads(make: Make) -> None:
    """Require that one and three threads give the same bits, and several shards similar ones."""
    data = example(make)

    def fit_with(threads: int) -> Aggregator:
        def fit() -> Aggregator:
            set_threads(threads)
            return short_run(make).fit(data)

        return copy_context().run(fit)

    whole = short_run(make).fit(data)
    with replaced(engine, "SMALLEST_SHARD", 1):
        one, three = fit_with(1), fit_with(3)
    assert_same_bits(one, three, "between 1 and 3 threads")
    assert_close(one.values_, whole.values_, "values_", "between block sizes")


@check
def check_numbers_untouched(make: Make) -> None:
    """Require that the data and the global random state do not change."""
    columns = tuple(column.copy() for column in columns_of(example(make)))
    copies = tuple(column.copy() for column in columns)
    gold = {columns[0][0]: 9.0}
    state, python = np.random.get_state(legacy=False)["state"], random.getstate()  # noqa: NPY002
    make().fit(columns, gold=gold)
    for before, after in zip(copies, columns, strict=True):
        require(np.array_equal(before, after), "a column of the input was changed")
    require(gold == {columns[0][0]: 9.0}, "the gold was changed")
    again = np.random.get_state(legacy=False)["state"]  # noqa: NPY002 - it is what is checked
    same = np.array_equal(state["key"], again["key"]) and state["pos"] == again["pos"]
    require(same and python == random.getstate(), "the global random state was used")


@check
def check_number_parameters(make: Make) -> None:
    """Require that no parameter value gives NaN, an unexpected error or an endless fit."""
    rng = np.random.default_rng(0)
    task, worker = np.repeat(np.arange(12), 3), np.tile(np.arange(3), 12)
    data = CrowdNumbers.from_arrays(task, worker, task % 5 + rng.normal(size=36))
    fault = next(unsound_parameters(with_params(make), lambda method: method.fit(data)), "")
    require(not fault, fault)


@check
def check_one_label_of_each_task(make: Make) -> None:
    """Require a finite answer that keeps the order of the labels, and a finding, on one label."""
    rng = np.random.default_rng(2)
    value = rng.normal(10, 2, 30)
    data = CrowdNumbers.from_arrays(np.arange(30), rng.integers(0, 5, 30), value)
    fitted = fit_or_refusal(with_params(make, bias=False), data)
    if fitted is None:
        return
    _assert_sound(fitted, data, "with one label per task")
    found = {finding.id for finding in fitted.findings_}
    require("one-label-per-task" in found, "there is no finding about one label per task")
    away = np.abs(fitted.values_ - value) / value.std()
    require(away.max() < 3, "values are far from the only labels")


CHECKS: tuple[Check, ...] = (
    check_degenerate_numbers,
    check_disconnected_numbers,
    check_unlabelled_numbers,
    check_zero_weights_of_numbers,
    check_equivariance,
    check_number_gold,
    check_number_prior,
    check_number_predictions,
    check_number_objective,
    check_number_score,
    check_log_scale,
    check_intervals,
    check_number_kernels,
    check_number_threads,
    check_numbers_untouched,
    check_number_parameters,
    check_one_label_of_each_task,
)
