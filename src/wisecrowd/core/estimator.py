"""Estimator: parameters that follow the scikit-learn API, without importing scikit-learn.

A fit changes the method, so only one thread at a time may fit it.
"""

from __future__ import annotations

import copy
import inspect
import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.arrow import as_frame, frame_library
from wisecrowd.core.exceptions import (
    ConcurrentFitError,
    DataError,
    ParameterError,
    UnknownParameterError,
    not_fitted,
)
from wisecrowd.core.kinds import IN_BLOCK, LABELS, Kind, get_kind
from wisecrowd.core.messages.descriptions import suggestion
from wisecrowd.core.parameter_checks import (
    MOST_ITERATIONS,
    MOST_STARTS,
    Count,
    Limits,
    Number,
    as_generator,
    check_limits,
)
from wisecrowd.core.saved_attributes import COUNT, FINDINGS, FLAG, HISTORY, SAW_GOLD, TEXTS, Saved

if TYPE_CHECKING:
    from wisecrowd.kinds.classes.families.label_law import LabelLaw


class _FitLock:
    """The lock of one method; copies of the method, including pickled ones, get a new lock."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.process = os.getpid()

    def __reduce__(self) -> tuple[type[_FitLock], tuple[()]]:
        return _FitLock, ()


@contextmanager
def exclusive_fit(method: object) -> Iterator[None]:
    """Refuse a second thread that enters the ``with`` block with the same method.

    The same thread may enter again. The lock is released when the block ends, also by an error.

    Raises
    ------
    ConcurrentFitError
        If another thread is inside.

    Examples
    --------
    >>> from wisecrowd.aggregation import DawidSkene
    >>> method = DawidSkene()
    >>> with exclusive_fit(method):
    ...     with exclusive_fit(method):
    ...         print("twice in one thread")
    twice in one thread
    """
    held: _FitLock = vars(method).setdefault("_fit_lock", _FitLock())
    if held.process != os.getpid():  # the thread that held it does not exist in a forked process
        held = vars(method)["_fit_lock"] = _FitLock()
    if not held.lock.acquire(blocking=False):
        raise ConcurrentFitError(
            f"This {type(method).__name__} is being fitted in another thread; give every thread a "
            "copy of its own, by sklearn.base.clone or copy.deepcopy."
        )
    try:
        yield
    finally:
        held.lock.release()


class Estimator:
    """Base class with parameters: the arguments of ``__init__``, stored under the same names."""

    _fit_call = "fit(labels)"
    # The kind of labels that the method takes.
    takes: ClassVar[str] = LABELS
    # Learned attributes other than data and answers; subclasses declare additional ones.
    saves: ClassVar[dict[str, Saved]] = {
        "n_iter_": COUNT,
        "converged_": FLAG,
        "history_": HISTORY,
        "findings_": FINDINGS,
        "warnings_": TEXTS,
        "saw_gold_": SAW_GOLD,
    }

    # What values parameters may have; subclasses declare additional ones.
    limits: ClassVar[Limits] = {
        "max_iter": Count(1, MOST_ITERATIONS),
        "n_init": Count(1, MOST_STARTS),
        "tol": Number(0.0),
        "random_state": as_generator,
    }

    @classmethod
    def _kind(cls) -> Kind:
        """Return the kind of labels that the method takes."""
        try:
            return get_kind(cls.takes)
        except ParameterError:
            raise ParameterError(
                f"{cls.__name__} takes {cls.takes!r}, a kind that is not known here; use it inside "
                f"{IN_BLOCK}."
            ) from None

    def _validate_parameters(self) -> None:
        """Check the limits of all parameters; subclasses add what one value cannot tell alone."""
        limits: Limits = {}
        for base in reversed(type(self).__mro__):
            limits |= vars(base).get("limits", {})
        check_limits(limits, self.get_params(deep=False))

    def _saved_attributes(self) -> dict[str, Saved]:
        """Return the declarations of all attributes that a fit of this method may set, by name."""
        kind = self._kind()
        found: dict[str, Saved] = {**kind.container.saves, **kind.answers.saves}
        for base in reversed(type(self).__mro__):
            found |= vars(base).get("saves", {})
        return found

    def _saved_fault(self) -> str:
        """Describe an inconsistency between attributes that are valid one by one, or return ""."""
        return ""

    def _axis_sizes(self, sizes: Mapping[str, int]) -> dict[str, int]:
        """Return the lengths of axes that only this method's arrays have, by name."""
        return {}

    def __new__(cls, *positional: Any, **named: Any) -> Self:
        """Create an instance; the error for an unknown parameter suggests a name."""
        # Here, because a dataclass has no ``__init__`` yet when its class is created.
        if positional or named:
            _require_known(cls, positional, named)
        return super().__new__(cls)

    @classmethod
    def _parameter_names(cls) -> list[str]:
        parameters = inspect.signature(cls.__init__).parameters.values()
        open_ended = (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)
        return [p.name for p in parameters if p.name != "self" and p.kind not in open_ended]

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters; ``deep`` adds those of nested methods as ``name__parameter``."""
        params = {name: getattr(self, name) for name in self._parameter_names()}
        if deep:
            for name, value in list(params.items()):
                if hasattr(value, "get_params") and not isinstance(value, type):
                    params.update({f"{name}__{k}": v for k, v in value.get_params().items()})
        return params

    def set_params(self, **params: Any) -> Self:
        """Set parameters by name and return the method itself."""
        names = self._parameter_names()
        for name, value in params.items():
            own, _, nested = name.partition("__")
            if own not in names:
                raise _no_such_parameter(type(self), own)
            if nested and not hasattr(getattr(self, own), "set_params"):
                raise ParameterError(
                    f"{own} is {getattr(self, own)!r}, which has no parameter {nested!r}; give it "
                    "as an object to set what is inside."
                )
            if nested:
                getattr(self, own).set_params(**{nested: value})
            else:
                setattr(self, own, value)
        return self

    def _for_refit(self) -> Self:
        """Return an unfitted copy, for refits to simulated data."""
        return type(self)(**copy.deepcopy(self.get_params(deep=False)))

    def _counted(self, labels: Any) -> Any:
        """Return the labels with the weights that the method gives them before it fits."""
        return labels

    def __repr__(self) -> str:
        defaults = inspect.signature(type(self).__init__).parameters
        changed = [
            f"{name}={value!r}"
            for name, value in self.get_params(deep=False).items()
            if not _same(value, defaults[name].default)
        ]
        return f"{type(self).__name__}({', '.join(changed)})"

    def _repr_html_(self) -> str:
        text: str = import_module("wisecrowd.reporting.notebook").fit_html(self)
        return text

    def plot_workers(self, ax: Any = None) -> Any:
        """Draw the accuracy of every worker against its number of labels; needs matplotlib.

        Parameters
        ----------
        ax : matplotlib axes, optional
            Axes to draw on and return; the default is a new figure.
        """
        return _plots().plot_workers(self, ax)

    def plot_confusion(self, worker: Any, ax: Any = None) -> Any:
        """Draw the confusion matrix of one worker, by id; needs matplotlib."""
        return _plots().plot_confusion(self, worker, ax)

    def plot_convergence(self, ax: Any = None) -> Any:
        """Draw the objective after each iteration; needs matplotlib."""
        return _plots().plot_convergence(self, ax)

    def __sklearn_is_fitted__(self) -> bool:
        return "tasks_" in self.__dict__

    def label_law(self) -> LabelLaw:
        """Return p(label | class, worker, task) under the fit, with the class prior.

        See :class:`~wisecrowd.kinds.classes.families.label_law.LabelLaw`. Methods that do not model
        labels, such as votes, raise DataError.
        """
        self._require_fitted()
        law = self._label_law()
        if law is None:
            raise DataError(
                f"{type(self).__name__} has no label law, because it does not model how workers "
                "label; fit a method with confusion matrices, such as dawid-skene, to the same "
                "labels."
            )
        return law

    def _label_law(self) -> LabelLaw | None:
        """Return the law that the attributes define, or None; methods may override this."""
        law: LabelLaw | None = self._kind().answers.label_law(vars(self))
        return law

    def _require_fitted(self) -> None:
        if not self.__sklearn_is_fitted__():
            raise not_fitted(
                f"This {type(self).__name__} is not fitted; call {self._fit_call} first."
            )

    def __getattr__(self, name: str) -> Any:
        if name.endswith("_") and not name.startswith("_"):
            if not self.__sklearn_is_fitted__():
                raise not_fitted(
                    f"This {type(self).__name__} has no {name} yet; call {self._fit_call} first."
                )
            raise AttributeError(
                f"{type(self).__name__} has no {name}: its model has no such part."
            )
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def worker_table(
        self, library: str | None = None, *, checked: Any = None, labels: Any = None
    ) -> Any:
        """Return a frame, one row per worker: agreement with the result, and its standard error.

        Agreement is not accuracy: in published crowds that of methods without doubt was 7 to 9
        points higher, for workers with 100 labels or more. Checked tasks give the accuracy with its
        interval instead.

        Parameters
        ----------
        library : {"pandas", "polars", "pyarrow"}, optional
            The default is the library of the input. For labels from files and arrays it is the
            first that is installed: pandas, polars or pyarrow.
        checked : mapping from task to class, (task, label) frame, or (n_tasks,) array with None
            Answers to tasks drawn at random, for classes: see :func:`wisecrowd.truth.workers`,
            whose table is returned. The fit must not have seen gold.
        labels : data of any accepted form, optional
            The labels of the fit, which checked tasks need.
        """
        if checked is not None:
            return self._checked_workers(checked, labels).table(library)
        return self._as_frame(self.worker_columns(), library)

    def _checked_workers(self, checked: Any, labels: Any) -> Any:
        """Return the accuracies of workers by checked tasks."""
        self._require_fitted()
        if labels is None:
            raise ParameterError(
                "checked tasks need the labels of the fit; give labels beside checked."
            )
        return import_module("wisecrowd.truth").workers(labels, checked, fit=self)

    def task_table(self, library: str | None = None) -> Any:
        """Return a frame, one row per task: its label, confidence and number of labels.

        ``library`` is described in :meth:`worker_table`.
        """
        return self._as_frame(self.task_columns(), library)

    def _as_frame(self, table: dict[str, NDArray[Any]], library: str | None) -> Any:
        given = getattr(self, "_frame_library", None)  # unknown for a loaded method
        return as_frame(table, frame_library(library, given))

    def task_columns(self) -> dict[str, NDArray[Any]]:
        """Return the columns of :meth:`task_table` as arrays."""
        self._require_fitted()
        answers = self._kind().answers.task_columns(vars(self))
        return {"task": self.tasks_, **answers, "n_labels": self.labels_per_task_}

    def main_columns(self) -> dict[str, NDArray[Any]]:
        """Return the main table of the kind as arrays: tasks, or items if these are compared."""
        self._require_fitted()
        columns: dict[str, NDArray[Any]] = self._kind().answers.main_columns(vars(self))
        return columns

    def _answer_columns(self) -> dict[str, NDArray[Any]]:
        """Return the table with one row per answer: that of tasks, if the main one has spans."""
        several = "start" in self._kind().answers.shown
        return self.task_columns() if several else self.main_columns()

    def worker_columns(self) -> dict[str, NDArray[Any]]:
        """Return the columns of :meth:`worker_table` as arrays."""
        self._require_fitted()
        quality = self._kind().answers.worker_columns(vars(self))
        return {"worker": self.workers_, "n_labels": self.labels_per_worker_, **quality}

    def _forget(self) -> None:
        """Delete the attributes of the previous fit."""
        for name in [x for x in vars(self) if x.endswith("_") and not x.startswith("_")]:
            delattr(self, name)


def _plots() -> Any:
    """Return the module of the plots, which lies above and needs matplotlib."""
    return import_module("wisecrowd.reporting.plots")


def _require_known(
    cls: type[Estimator], positional: tuple[Any, ...], named: dict[str, Any]
) -> None:
    """Refuse arguments that ``__init__`` does not take."""
    parameters = list(inspect.signature(cls.__init__).parameters.values())[1:]  # all but self
    kinds = {parameter.kind for parameter in parameters}
    names = [parameter.name for parameter in parameters]
    if inspect.Parameter.VAR_KEYWORD not in kinds:
        for name in named:
            if name not in names:
                raise _no_such_parameter(cls, name)
    by_place = [p for p in parameters if p.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD]
    if inspect.Parameter.VAR_POSITIONAL not in kinds and len(positional) > len(by_place):
        given = positional[len(by_place)]
        raise UnknownParameterError(
            f"{cls.__name__} was given {given!r} without a name; give parameters by name, such as "
            f"{cls.__name__}({names[0] if names else 'name'}=...)."
        )


def _no_such_parameter(cls: type[Estimator], name: str) -> UnknownParameterError:
    names = cls._parameter_names()
    return UnknownParameterError(
        f"{cls.__name__} has no parameter {name!r}{suggestion(name, names)}; it has "
        f"{', '.join(names) or 'none'}."
    )


def _same(a: Any, b: Any) -> bool:
    if a is b:
        return True
    if type(a) is not type(b) or isinstance(a, np.ndarray):
        return False
    return bool(a == b)
