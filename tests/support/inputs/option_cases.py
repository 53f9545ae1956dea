"""Cases of options: weights, gold labels, task priors, starts and parameters."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from tests.support.inputs.case import (
    N_TASKS,
    Given,
    InputCase,
    Verdict,
    columns,
    csv_of,
    expected,
    file_case,
    python_case,
    rejected,
    right,
    table_case,
)

ONE_WEIGHT = 10


def _weighted(weights: list[Any]) -> dict[str, list[Any]]:
    return columns() | {"weight": weights}


def _one_weight(value: Any) -> dict[str, list[Any]]:
    weights: list[Any] = [1.0] * 48
    weights[ONE_WEIGHT] = value
    return _weighted(weights)


def _weight_cases() -> list[InputCase]:
    where, remedy = "in row 11", "finite and at least 0"
    bad: dict[str, Any] = {"NaN": float("nan"), "infinite": float("inf"), "negative": -1.0}
    return [
        *(table_case(f"a weight that is {what}", rejected("weight", where, remedy),
                     _one_weight(value)) for what, value in bad.items()),
        table_case("a weight that is missing", rejected("weight", where), _one_weight(None)),
        table_case("a weight that is text", rejected("weight", "'much'", where, "number"),
                   _one_weight("much") | {"weight": ["1"] * 10 + ["much"] + ["1"] * 37}),
        table_case("weights of zero among others", right(), _one_weight(0.0)),
        table_case("weights that are all zero", rejected("weight", "all zero", "scale"),
                   _weighted([0.0] * 48)),
        table_case("weights too large to add up", rejected("weight", "scale"),
                   _weighted([1e308] * 48)),
        table_case("very small weights", rejected("weight", "1e-300", "scale"),
                   _weighted([1e-300] * 48)),
        table_case("weights of a thousand", right(may_refuse=True), _weighted([1000.0] * 48)),
        table_case("very large weights", right(may_refuse=True), _weighted([1e15] * 48)),
        table_case("whole weights", right(), _weighted([2] * 48)),
        python_case("too few weights",
                    rejected("different lengths", "weight 3", "one value per annotation"),
                    lambda: tuple(columns().values()), reading={"weight": [1.0, 2.0, 3.0]}),
        table_case("weights in a column that does not exist",
                   rejected("no column 'wt' for the weight"), options={"weight": "wt"},
                   arguments=("--weight", "wt")),
    ]  # fmt: skip


def _gold_case(name: str, verdict: Verdict, gold: dict[str, str]) -> InputCase:
    """Return a case with gold as an object for Python and as a file for the command line."""

    def make() -> Given:
        content = csv_of({"task": list(gold), "label": list(gold.values())})[1]
        return Given(data=columns(), fit={"gold": gold}, file=csv_of(columns()), gold=content)

    return InputCase(name=name, verdict=verdict, make=make)


def _gold_cases() -> list[InputCase]:
    return [
        _gold_case("gold", right(expected() | {"t00": "dog"}), {"t00": "dog", "t01": "dog"}),
        _gold_case("gold for a task that is not there",
                   rejected("Gold names task 't99'", "no row in the labels", "remove it"),
                   {"t99": "cat"}),
        _gold_case("gold of a class that is not there",
                   rejected("task 't01'", "'cow'", "not among the classes ('cat', 'dog')",
                            "classes=[...]", shell=("'t01'", "'cow'", "--classes")),
                   {"t00": "cat", "t01": "cow"}),
        file_case("gold that contradicts itself", rejected("'t00' two classes", "keep one"),
                  gold=b"task,label\nt00,cat\nt00,dog\n"),
        InputCase(name="a gold frame that contradicts itself", needs="pandas",
                  verdict=rejected("'t00' two classes", "keep one"), make=_two_classes),
        python_case("gold with gaps", right(expected()), columns,
                    fit={"gold": ["cat", None, *[None] * 10]}),
        python_case("too few gold labels", rejected("gold array has shape (2,)", "(12)"), columns,
                    fit={"gold": ["cat", "dog"]}),
        python_case("gold that is a number", rejected("gold", "mapping from task to class"),
                    columns, fit={"gold": 3}),
        python_case("gold that is a text", rejected("gold", "mapping from task to class"),
                    columns, fit={"gold": "t00"}),
        python_case("gold of another type", rejected("'t00'", "class 0", "not among"),
                    columns, fit={"gold": {"t00": 0}}),
        file_case("gold without its columns", rejected("gold.csv", "No column looks like the task"),
                  gold=b"a,b\n1,2\n"),
        file_case("gold without rows", rejected("gold.csv has a header but no rows"),
                  gold=b"task,label\n"),
    ]  # fmt: skip


def _two_classes() -> Given:
    import pandas as pd

    gold = pd.DataFrame({"task": ["t00", "t00"], "label": ["cat", "dog"]})
    return Given(data=columns(), fit={"gold": gold})


def _prior(**changes: Any) -> Any:
    prior = np.full((N_TASKS, 2), 0.5)
    for place, value in changes.get("at", {}).items():
        prior[place] = value
    return prior


def _fit_case(name: str, verdict: Verdict, option: str, value: Callable[[], Any]) -> InputCase:
    return InputCase(
        name=name, verdict=verdict, make=lambda: Given(data=columns(), fit={option: value()})
    )


def _prior_cases() -> list[InputCase]:
    shape = rejected("task prior has shape", "(2,)", "(12, 2)")
    cases: dict[str, tuple[Verdict, Callable[[], Any]]] = {
        "a uniform task prior": (right(), lambda: np.array([0.5, 0.5])),
        "task priors that do not add up to one": (right(), lambda: 7 * _prior()),
        "a task prior with too many classes": (shape, lambda: np.ones(3) / 3),
        "task priors with too few tasks": (shape, lambda: _prior()[1:]),
        "task priors of three dimensions": (shape, lambda: _prior()[None]),
        "a task prior with NaN": (
            rejected("task prior", "NaN", "row 3", "probabilities"),
            lambda: _prior(at={(2, 0): np.nan}),
        ),
        "a task prior of mixed signs": (
            rejected("task prior", "negative", "row 2"), lambda: _prior(at={(1, 0): -0.5}),
        ),
        "a task prior without a possible class": (
            rejected("task prior of row 5", "no class possible"), lambda: _prior(at={4: 0.0}),
        ),
        "an infinite task prior": (
            rejected("task prior of row 1", "infinite"), lambda: _prior(at={(0, 0): np.inf}),
        ),
        "a task prior of text": (
            rejected("task prior", "numbers"), lambda: [["much", "little"]] * N_TASKS,
        ),
        "task priors that differ in length": (
            rejected("task prior", "shape"), lambda: [[0.5, 0.5], [1.0]],
        ),
        "a task prior of complex numbers": (
            rejected("task prior", "numbers"), lambda: _prior() + 1j,
        ),
    }  # fmt: skip
    return [_fit_case(name, verdict, "task_prior", value)
            for name, (verdict, value) in cases.items()]  # fmt: skip


def _start_cases() -> list[InputCase]:
    cases: dict[str, tuple[Verdict, Callable[[], Any]]] = {
        "a start": (right(may_refuse=True), lambda: _votes()),
        "a start of a wrong shape": (
            rejected("init has shape (12, 3)", "(12, 2)"), lambda: np.ones((N_TASKS, 3))),
        "a start with NaN": (
            rejected("init", "finite", "row 1"), lambda: _prior(at={(0, 0): np.nan})),
        "a negative start": (
            rejected("init", "not negative", "row 1"), lambda: _prior(at={(0, 0): -1.0})),
        "a start of zeros": (
            rejected("init", "not all zero", "row 1"), lambda: _prior(at={0: 0.0})),
        "a start of text": (rejected("init", "numbers"), lambda: [["a", "b"]] * N_TASKS),
        "a start that is a word": (rejected("init", "probabilities"), lambda: "majority"),
    }  # fmt: skip
    return [_fit_case(name, verdict, "init", value) for name, (verdict, value) in cases.items()]


def _votes() -> Any:
    labels = np.array(columns(classes=(0, 1))["label"]).reshape(N_TASKS, 4)
    return np.stack([(labels == 0).mean(axis=1), (labels == 1).mean(axis=1)], axis=1)


def _parameter_case(name: str, parameter: str, value: Any, text: str, *words: str) -> InputCase:
    """Return a case of a bad parameter; a method that lacks it says so, and what it has."""
    return InputCase(
        name=name,
        verdict=rejected(*words),
        make=lambda: Given(
            data=columns(), params={parameter: value}, file=csv_of(columns()),
            arguments=("-p", f"{parameter}={text}"),
        ),
    )  # fmt: skip


def _parameter_cases() -> list[InputCase]:
    nan = float("nan")
    return [
        _parameter_case("max_iter of 0", "max_iter", 0, "0", "max_iter is 0", "at least 1"),
        _parameter_case("max_iter of -5", "max_iter", -5, "-5", "max_iter is -5", "at least 1"),
        _parameter_case("max_iter of 2.5", "max_iter", 2.5, "2.5", "max_iter is 2.5", "integer"),
        _parameter_case("max_iter in words", "max_iter", "ten", "ten", "max_iter is 'ten'", "give"),
        _parameter_case("max_iter of none", "max_iter", None, "none", "max_iter is None"),
        _parameter_case("max_iter of true", "max_iter", True, "true", "max_iter is", "give"),
        _parameter_case("tol of NaN", "tol", nan, "nan", "tol is nan", "finite number"),
        _parameter_case("tol below 0", "tol", -1.0, "-1", "tol is -1.0", "at least 0"),
        _parameter_case("tol in words", "tol", "small", "small", "tol is 'small'", "number"),
        _parameter_case("infinite tol", "tol", float("inf"), "inf", "tol is inf", "finite"),
        _parameter_case("n_init of 0", "n_init", 0, "0", "n_init is 0", "at least 1"),
        _parameter_case("random_state in words", "random_state", "x", "x", "random_state is 'x'"),
        _parameter_case("random_state below 0", "random_state", -1, "-1", "random_state is -1"),
        _parameter_case("class_prior in words", "class_prior", "flat", "flat", "class_prior"),
        _parameter_case("class_prior of a wrong length", "class_prior", [0.2] * 5,
                        "[0.2,0.2,0.2,0.2,0.2]", "class_prior"),
        _parameter_case("a parameter that does not exist", "no_such", 1, "1",
                        "has no parameter 'no_such'", "it has"),
        file_case("a parameter without a value", rejected("NAME=VALUE", "-p max_iter=20"),
                  arguments=("-p", "max_iter")),
        file_case("a seed below 0", rejected("--seed", "greater than or equal to 0"),
                  arguments=("--seed", "-1")),
        file_case("no threads", rejected("--threads", "greater than or equal to 1"),
                  arguments=("--threads", "0")),
        file_case("a seed for a method that may have none", right(), arguments=("--seed", "3")),
    ]  # fmt: skip


CASES = (
    *_weight_cases(), *_gold_cases(), *_prior_cases(), *_start_cases(), *_parameter_cases(),
)  # fmt: skip
