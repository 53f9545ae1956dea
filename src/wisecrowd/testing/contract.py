"""Checks of the API: parameters and their ranges, copies, files, scikit-learn, tables."""

from __future__ import annotations

import inspect
import pickle
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any
from unittest import SkipTest

import numpy as np

from wisecrowd.core.exceptions import NotFittedError, ParameterError
from wisecrowd.core.registry import get_method, kebab_case
from wisecrowd.kinds.classes.container import CrowdLabels
from wisecrowd.storage.saved_methods import can_be_loaded, load
from wisecrowd.testing.crowds import example, n_classes_for, simulated
from wisecrowd.testing.foundation import (
    Make,
    assert_close,
    assert_same_bits,
    check,
    dense,
    numbers_of,
    optional,
    require,
    with_params,
)

BAD_VALUES: dict[str, tuple[Any, ...]] = {
    "max_iter": (0, -1, 2.5, "many", None, True),
    "tol": (float("nan"), -1e-3, "small", None),
    "n_init": (0, -2, 1.5, "x"),
    "random_state": ("x", -1, 1.5),
    "class_prior": ("no-such-word", [0.5] * 7, [float("nan"), 1.0, 1.0], [-1.0, 1.0, 1.0]),
    "accelerate": ("yes", 1.5),
}
VALUES: tuple[Any, ...] = (
    float("nan"), float("inf"), -float("inf"), 1e308, -1, 0, 10**30, 10**400, True, "x", None, [],
    (1e308, 1e308), (float("nan"), 1.0), 5e-324, np.array([0.5, 0.5]), np.array([]), {}, b"x", 1j,
)  # fmt: skip
SECONDS = 60.0  # time limit; a fit to a few labels takes less than one second on an idle machine
_RESULTS = ("probas_", "confidence_", "worker_accuracy_", "worker_accuracy_error_", "confusion_",
            "class_prior_")  # fmt: skip


def _assert_raises(error: type[Exception], attempt: Callable[[], object], what: str) -> None:
    try:
        attempt()
    except error as caught:
        require(len(str(caught)) >= 15, f"the refusal of {what} explains nothing")
        return
    raise AssertionError(f"{what} raises no {error.__name__}")


@check
def check_parameters(make: Make) -> None:
    """Require that __init__ only stores parameters, and that get_params and set_params match it."""
    method = make()
    signature = inspect.signature(type(method).__init__).parameters
    params = method.get_params(deep=False)
    require(set(params) == set(signature) - {"self"}, "get_params and __init__ differ")
    for name, value in params.items():
        require(getattr(method, name) is value, f"{name} is not stored under its own name")
    rebuilt = type(method)(**params)
    for name, value in params.items():
        require(getattr(rebuilt, name) is value, f"__init__ changes {name}")
    require(method.set_params(**params) is method, "set_params does not return the method")
    require(type(method).__name__ in repr(method), "the repr does not name the method")
    _assert_raises(ParameterError, lambda: make().set_params(no_such_thing=1), "an unknown name")
    fitted = make().fit(example(make))
    same = all(fitted.get_params(deep=False)[name] is params[name] for name in params
               if not hasattr(params[name], "fit"))  # fmt: skip
    require(same, "fit changes a parameter")


@check
def check_bad_parameters(make: Make) -> None:
    """Require that ``fit`` refuses invalid values with a ParameterError."""
    labels = example(make)
    own = make().get_params(deep=False)
    for name, values in BAD_VALUES.items():
        for value in values:
            if name in own:
                method = with_params(make, **{name: value})
                _assert_raises(ParameterError, partial(method.fit, labels), f"{name}={value!r}")


@check
def check_not_fitted(make: Make) -> None:
    """Require that results requested before ``fit`` raise NotFittedError."""
    labels = example(make)
    needed = [name for name, one in make()._kind().answers.saves.items() if one.optional is False]
    for what in needed:
        _assert_raises(NotFittedError, partial(getattr, make(), what), f"{what} before fit")
    for name in ("task_table", "worker_table"):
        _assert_raises(NotFittedError, getattr(make(), name), f"{name} before fit")
    _assert_raises(NotFittedError, lambda: make().predict(labels), "predict before fit")
    _assert_raises(NotFittedError, lambda: make().predict_proba(labels), "predict before fit")
    _assert_raises(NotFittedError, lambda: make().score(labels), "score before fit")
    for what in needed:
        require(not hasattr(make(), what), f"an unfitted method has {what}")


@check
def check_tables(make: Make) -> None:
    """Require that the tables and fitted attributes are aligned with the ids of the data."""
    labels = example(make)
    fitted = make().fit(labels)
    require(fitted is not None, "fit returns nothing")
    for name, ids in labels.vocabularies().items():
        require(np.array_equal(getattr(fitted, f"{name}_"), ids), f"{name}_ are not the user's ids")
    tasks, workers = fitted.task_columns(), fitted.worker_columns()
    require({len(column) for column in tasks.values()} == {labels.n_tasks}, "task_table's length")
    lengths = {len(column) for column in workers.values()}
    require(lengths == {labels.n_workers}, "worker_table's length")
    frames = fitted.task_table("pyarrow"), fitted.worker_table("pyarrow")
    require(frames[0].column_names == list(tasks), "task_table's columns")
    require(frames[1].column_names == list(workers), "worker_table's columns")
    require(np.array_equal(tasks["n_labels"], labels.labels_per_task), "n_labels of tasks")
    require(np.array_equal(workers["n_labels"], labels.labels_per_worker), "n_labels of workers")
    if "agreement_with_result" in workers:
        share = workers["agreement_with_result"]
        require((share >= 0).all() and (share <= 1).all(), "the agreement of workers")
    n_iter = fitted.n_iter_
    require(isinstance(n_iter, int) and n_iter >= 1, f"n_iter_ is {n_iter!r}")
    require(isinstance(fitted.converged_, bool), f"converged_ is {fitted.converged_!r}")
    require(isinstance(fitted.history_, tuple), "history_ is not a tuple")
    if "max_iter" in fitted.get_params(deep=False):
        brief = with_params(make, max_iter=1).fit(labels)
        require(brief.n_iter_ == 1, f"n_iter_ is {brief.n_iter_} at max_iter=1")


@check
def check_pickle(make: Make) -> None:
    """Require that a pickled fit has the same bits and still predicts."""
    labels = example(make)
    fitted = make().fit(labels)
    copy = pickle.loads(pickle.dumps(fitted))
    assert_same_bits(fitted, copy, "after pickling")
    _assert_same_predictions(fitted, copy, labels, "after pickling")
    fresh = pickle.loads(pickle.dumps(make()))
    assert_same_bits(fitted, fresh.fit(labels), "when an unfitted method was pickled")


def _assert_same_predictions(fitted: Any, other: Any, data: Any, when: str) -> None:
    """Require equal answers to tasks, if the method predicts."""
    if fitted.tags().inductive:
        known = vars(fitted)
        first, second = (m._predicted(data, None, None).attributes(known) for m in (fitted, other))
        for name in numbers_of(fitted):
            if name in first:
                assert_close(first[name], second[name], f"the prediction of {name}", when)


@check
def check_save_and_load(make: Make) -> None:
    """Require that a saved and loaded method has equal results and still predicts."""
    if not can_be_loaded(type(make())):
        raise SkipTest("only methods that wisecrowd.methods() lists can be loaded again")
    labels = example(make)
    fitted = make().fit(labels)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model"
        fitted.save(path)
        loaded = load(path)
        _assert_raises(NotFittedError, lambda: make().save(path), "saving before fit")
    require(type(loaded) is type(fitted), f"a {type(loaded).__name__} comes back")
    assert_same_bits(fitted, loaded, "after saving and loading")
    for name in set(fitted._kind().container.saves) & set(vars(fitted)):
        same = np.array_equal(getattr(fitted, name), getattr(loaded, name))
        require(same, f"{name} differs after loading")
    require(repr(loaded) == repr(fitted), f"parameters differ: {loaded!r}, {fitted!r}")
    _assert_same_predictions(fitted, loaded, labels, "after loading")
    if fitted.tags().likelihood:
        require(abs(fitted.score(labels) - loaded.score(labels)) <= 1e-9, "score after loading")


@check
def check_clone(make: Make) -> None:
    """Require that scikit-learn's ``clone`` returns an unfitted method with equal parameters."""
    clone = optional("sklearn.base").clone
    labels = example(make)
    fitted = make().fit(labels)
    copy = clone(fitted)
    require(not copy.__sklearn_is_fitted__(), "the clone is fitted")
    require(repr(copy) == repr(make()), f"the clone is {copy!r}, not {make()!r}")
    assert_same_bits(fitted, copy.fit(labels), "in a clone")


@check
def check_model_selection(make: Make) -> None:
    """Require that scikit-learn's searches work over folds of tasks, with and without truth."""
    selection = optional("sklearn.model_selection")
    method = with_params(make, max_iter=10)
    if not method.tags().inductive:
        return
    made = simulated(40, 5, n_classes_for(make), 4)
    folds = selection.KFold(3, shuffle=True, random_state=0)
    scores = selection.cross_val_score(
        method, made.labels, made.truth, cv=folds, error_score="raise"
    )
    require(scores.shape == (3,) and ((scores >= 0) & (scores <= 1)).all(), f"scores are {scores}")
    require(scores.mean() > 1 / n_classes_for(make), f"held-out accuracy is {scores.mean():.2f}")
    if method.tags().likelihood:
        scores = selection.cross_val_score(method, made.labels, cv=folds, error_score="raise")
        require(np.isfinite(scores).all() and (scores <= 1e-12).all(), f"scores are {scores}")
    if "max_iter" in method.get_params():
        grid = {"max_iter": [1, 5]}
        search = selection.GridSearchCV(method, grid, cv=folds, error_score="raise")
        search.fit(made.labels, made.truth)
        require(search.best_params_["max_iter"] in (1, 5), "the search has no best parameters")
        probas = dense(search.best_estimator_.probas_)
        require(len(probas) == made.labels.n_tasks, "the search does not refit to all tasks")


@check
def check_docstring(make: Make) -> None:
    """Require a docstring with a summary, advice on use, a reference and an example."""
    cls = type(make())
    text = inspect.cleandoc(cls.__doc__ or "")  # not inherited: that would describe another method
    lines = text.splitlines()
    require(bool(lines) and lines[0].endswith("."), "the summary is no sentence on one line")
    require("Use it when " in text, "the docstring does not say 'Use it when ...'")
    for section in ("References", "Examples"):
        require(f"{section}\n{'-' * len(section)}" in text, f"there is no section {section}")
    if cls.__init__ is not object.__init__:
        for name in make().get_params(deep=False):
            require(name in text, f"the parameter {name} is not described")
    require(">>>" in text, "the example does not run")


@check
def check_registered_name(make: Make) -> None:
    """Require that a method of the package is found by its command-line name."""
    cls = type(make())
    if cls.__module__.startswith("wisecrowd.kinds."):
        name = kebab_case(cls.__name__)
        require(get_method(name) is cls, f"{name} is another method")


def unsound_parameters(method: Any, fit: Callable[[Any], Any]) -> Iterator[str]:
    """Yield the parameter values that are neither refused nor give a finite result.

    Parameters
    ----------
    method : method
        Method whose copies are fitted with one parameter changed.
    fit : callable
        Fits a method to a tiny crowd.
    """
    for name in method.get_params(deep=False):
        for value in VALUES:
            fault = _fault(method, name, value, fit)
            if fault:
                yield f"{name}={_shown(value)}: {fault}"


@check
def check_parameter_ranges(make: Make) -> None:
    """Require that no parameter value gives NaN, an unexpected error or an endless fit."""
    n_classes = n_classes_for(make)
    votes = np.array([[0, 0, 1], [1, 1, 1], [0, 0, 0], [1, 0, 1], [0, 1, 0], [1, 1, 0]])
    labels = CrowdLabels.from_matrix(votes, classes=range(n_classes))
    # Only the first: without parameter checks, other values may cause an endless fit.
    fault = next(unsound_parameters(with_params(make), lambda method: method.fit(labels)), "")
    require(not fault, fault)


def _fault(method: Any, name: str, value: Any, fit: Callable[[Any], Any]) -> str:
    begin = time.monotonic()
    try:
        fitted = fit(type(method)(**{**method.get_params(deep=False), name: value}))
    except ParameterError as error:
        return "" if len(str(error)) >= 15 else f"the refusal {error!r} explains nothing"
    except Exception as error:  # users should never see any other error
        return f"{type(error).__name__}: {error}"
    took = time.monotonic() - begin
    if took > SECONDS:
        return f"the fit takes {took:.0f} seconds"
    for result in _RESULTS:
        found = vars(fitted).get(result)
        if (
            found is not None
            and not np.isfinite(found.data if hasattr(found, "tocsr") else found).all()
        ):
            return f"{result} is not finite"
    return ""


def _shown(value: Any) -> str:
    return f"10**{len(str(value)) - 1}" if isinstance(value, int) and value > 10**9 else repr(value)
