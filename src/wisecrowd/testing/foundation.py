"""Shared parts of the checks: making methods, reporting failures, comparing results and fits."""

from __future__ import annotations

import functools
import importlib
import re
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any
from unittest import SkipTest

import numpy as np
from numpy.typing import NDArray

from wisecrowd import kernels
from wisecrowd.core.aggregator import Aggregator
from wisecrowd.core.annotations import Annotations
from wisecrowd.core.estimator import Estimator
from wisecrowd.core.exceptions import WisecrowdError, WisecrowdWarning
from wisecrowd.core.result import TIE
from wisecrowd.core.saved_attributes import SavedArray
from wisecrowd.core.types import Floats

Make = Callable[[], Aggregator]
Check = Callable[[Make], None]

ROUNDING = 1e-9  # maximum change of a probability from summing in another order
SIMILAR = 0.1  # maximum mean change of posteriors with other random numbers
PUBLISHED = re.compile(r"[A-Za-z]\w*_")


def maker(method: Any) -> Make:
    """Return a function that makes new, unfitted copies of a method, given as instance or class.

    Examples
    --------
    >>> from wisecrowd.kinds.classes.methods.dawid_skene import DawidSkene
    >>> maker(DawidSkene(max_iter=7))().max_iter
    7
    """
    if isinstance(method, type):
        if not issubclass(method, Aggregator):
            raise TypeError(f"{method.__name__} is not an Aggregator.")
        return method
    if not isinstance(method, Aggregator):
        raise TypeError(f"{method!r} is not an Aggregator.")

    def make() -> Aggregator:
        params = method.get_params(deep=False)
        return type(method)(**{name: _fresh(value) for name, value in params.items()})

    return make


def _fresh(value: Any) -> Any:
    """Return an unfitted copy of a nested method, and any other value unchanged."""
    return maker(value)() if isinstance(value, Aggregator) else value


def check(function: Check) -> Check:
    """Turn every failure of a check into an AssertionError that names the check and the method.

    Numerical and other warnings count as failures: a method must not divide by zero, even if the
    result is correct. Warnings of wisecrowd itself are not failures.
    """

    @functools.wraps(function)
    def named(make: Make) -> None:
        method = type(make()).__name__
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                warnings.simplefilter("ignore", WisecrowdWarning)
                function(make)
        except SkipTest:
            raise
        except AssertionError as failure:
            raise AssertionError(f"{function.__name__} ({method}): {failure}") from failure
        except Exception as error:
            raise AssertionError(
                f"{function.__name__} ({method}): unexpected {type(error).__name__}: {error}"
            ) from error

    return named


def require(condition: Any, message: str) -> None:
    """Raise AssertionError with ``message`` unless the condition holds."""
    if not condition:
        raise AssertionError(message)


def optional(name: str) -> ModuleType:
    """Import a library that the check needs, or skip the check if it is not installed."""
    try:
        return importlib.import_module(name)
    except ImportError:
        raise SkipTest(f"{name} is not installed") from None


@contextmanager
def replaced(module: ModuleType, name: str, value: Any) -> Iterator[None]:
    """Replace a module's constant inside the ``with`` block."""
    former = getattr(module, name)
    setattr(module, name, value)
    try:
        yield
    finally:
        setattr(module, name, former)


# ------------------------------------------------------------------------------------- making fits


def with_params(make: Make, **params: Any) -> Aggregator:
    """Return a new method with the given parameters; ignore parameters that it does not have."""
    method = make()
    own = method.get_params(deep=True)
    return method.set_params(**{name: value for name, value in params.items() if name in own})


def short_run(make: Make, n_iter: int = 5) -> Aggregator:
    """Return a new method that runs ``n_iter`` iterations from its first start.

    Rounding may move the iteration at which a tolerance is met, so results that should agree to
    rounding are compared after a fixed number of iterations.
    """
    fixed: dict[str, Any] = {"max_iter": n_iter, "tol": 0.0, "n_init": 1}
    nested = [name for name in make().get_params() if name.rpartition("__")[2] in fixed]
    return with_params(make, **{name: fixed[name.rpartition("__")[2]] for name in nested})


def with_both_kernels(
    make: Make, data: Annotations, **options: Any
) -> tuple[Aggregator, Aggregator]:
    """Return fits of two new methods: with the reference kernels, and with the compiled ones."""
    with replaced(kernels, "COMPILE_FROM", 10**12):
        reference = make().fit(data, **options)
    with replaced(kernels, "COMPILE_FROM", 0):
        return reference, make().fit(data, **options)


def is_stochastic(make: Make) -> bool:
    """Return whether the method draws random numbers even when it starts once."""
    return make().tags().stochastic


def fit_or_refusal(method: Aggregator, labels: Annotations, **options: Any) -> Aggregator | None:
    """Return the fit, or None if the method refuses the data with a clear error."""
    try:
        return method.fit(labels, **options)
    except WisecrowdError as error:
        require(len(str(error)) >= 20, f"the refusal {str(error)!r} explains nothing")
        return None


# --------------------------------------------------------------------------------------- comparing


def dense(probas: Any) -> Floats:
    """Return posteriors as a dense array (the checks' data are small)."""
    full = probas.toarray() if hasattr(probas, "toarray") else probas
    return np.asarray(full, dtype=np.float64)


def tied(probas: Any) -> NDArray[np.bool_]:
    """Return the rows whose two best classes are so close that rounding may swap them."""
    full = dense(probas)
    if full.shape[1] < 2:
        return np.zeros(len(full), dtype=bool)
    top = np.sort(full, axis=1)
    return np.asarray(top[:, -1] - top[:, -2] <= 2 * ROUNDING + TIE)


def assert_same_bits(first: Aggregator, second: Aggregator, when: str) -> None:
    """Require identical answers, numbers and history."""
    require(np.array_equal(answer_of(first), answer_of(second)), f"the answers differ {when}")
    assert_same_numbers(first, second, when)


def assert_same_numbers(first: Aggregator, second: Aggregator, when: str) -> None:
    """Require identical numbers for tasks and workers, and history, regardless of ids."""
    for name in numbers_of(first):
        a, b = dense(getattr(first, name)), dense(getattr(second, name))
        require(np.array_equal(a, b, equal_nan=True), f"{name} differs {when}{_largest(a, b)}")
    require(first.history_ == second.history_, f"history_ differs {when}")


def answer_of(fitted: Aggregator) -> NDArray[Any]:
    """Return the answers: the first column of the main table, behind the ids."""
    return list(fitted.main_columns().values())[1]


def numbers_of(fitted: Aggregator) -> dict[str, tuple[str, ...]]:
    """Return the axes of every numeric attribute of the answers, without ids."""
    declared = fitted._kind().answers.saves
    return {
        name: tuple(one.axes.split())
        for name, one in declared.items()
        if isinstance(one, SavedArray) and one.values != "label" and name in vars(fitted)
    }


def assert_close(first: Any, second: Any, what: str, when: str, within: float = ROUNDING) -> None:
    """Require equal shapes and a largest difference of at most ``within``."""
    a, b = dense(first), dense(second)
    require(a.shape == b.shape, f"{what} has shape {a.shape}, and {b.shape} {when}")
    close = np.abs(a - b) <= within
    require((close | (np.isnan(a) & np.isnan(b))).all(), f"{what} differs {when}{_largest(a, b)}")


def assert_alike(make: Make, first: Any, second: Any, what: str, when: str) -> None:
    """Require equality up to rounding, or similarity for methods that drew other random numbers."""
    if not is_stochastic(make):
        assert_close(first, second, what, when)
        return
    moved = float(np.abs(dense(first) - dense(second)).mean())
    require(moved <= SIMILAR, f"{what} differs {when}: by {moved:.3g} on average")


def assert_same_labels(
    first: NDArray[Any], second: NDArray[Any], except_for: NDArray[np.bool_], when: str
) -> None:
    """Require equal labels outside the rows in ``except_for``."""
    wrong = (first != second) & ~except_for
    require(not wrong.any(), f"{int(wrong.sum())} of {len(wrong)} labels differ {when}")


def _largest(a: Floats, b: Floats) -> str:
    if a.shape != b.shape or a.size == 0:
        return f": shapes {a.shape} and {b.shape}"
    with np.errstate(invalid="ignore"):
        return f": by up to {np.abs(a - b).max():.3g}"


def class_names(n_classes: int) -> list[str]:
    """Return class names in alphabetical order."""
    return [f"class-{k:03d}" for k in range(n_classes)]


def who_labels_what(rng: np.random.Generator) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return tasks and workers: 40 tasks, each with 4 of 7 workers."""
    worker = np.concatenate([rng.choice(7, 4, replace=False) for _ in range(40)])
    return np.repeat(np.arange(40), 4), worker


def text_ids(task: NDArray[Any], worker: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return ids of tasks and workers as text that sorts like their codes."""
    tasks = np.array([f"task-{i:05d}" for i in task.tolist()], dtype=object)
    return tasks, np.array([f"worker-{j:04d}" for j in worker.tolist()], dtype=object)


def assert_same_state(first: Estimator, second: Estimator, when: str) -> None:
    """Require that two fits have learned the same attributes with the same values."""
    one, other = learned(first), learned(second)
    require(one.keys() == other.keys(), f"{sorted(one.keys() ^ other.keys())} differ {when}")
    for name, value in one.items():
        require(same_value(value, other[name]), f"{name} differs {when}")


def learned(method: Estimator) -> dict[str, Any]:
    """Return the attributes that a fit publishes."""
    return {name: value for name, value in vars(method).items() if PUBLISHED.fullmatch(name)}


def same_value(one: Any, other: Any) -> bool:
    """Return whether two values are equal to the last bit; networks are compared by weights.

    Examples
    --------
    >>> same_value({"a": np.array([1.0, np.nan])}, {"a": np.array([1.0, np.nan])})
    True
    >>> same_value([np.zeros(2)], [np.zeros(3)])
    False
    """
    if type(one) is not type(other):
        return False
    if hasattr(one, "toarray"):
        return same_value(one.toarray(), other.toarray())
    if hasattr(one, "state_dict"):
        return same_value(dict(one.state_dict()), dict(other.state_dict()))
    if isinstance(one, np.ndarray) or hasattr(one, "numpy"):
        one, other = np.asarray(one), np.asarray(other)
        if one.shape != other.shape:
            return False
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same_value(one[k], other[k]) for k in one)
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(same_value, one, other))
    if type(one).__module__.startswith("wisecrowd.") and hasattr(one, "__dict__"):
        return same_value(vars(one), vars(other))
    same = (one == other) | ((one != one) & (other != other))  # NaN differs from itself
    return bool(np.all(same))
