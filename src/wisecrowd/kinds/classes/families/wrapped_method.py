"""Methods that wrap another method for classes, or fit it to several problems of two classes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self

import numpy as np

from wisecrowd.core.aggregator import Aggregator, Tags
from wisecrowd.core.exceptions import ParameterError
from wisecrowd.core.messages.option_spelling import for_reader, parameter
from wisecrowd.core.parameter_checks import Limits, as_generator
from wisecrowd.core.problem import Problem
from wisecrowd.core.registry import get_method
from wisecrowd.core.result import Fit
from wisecrowd.core.saved_attributes import Saved, SavedValue
from wisecrowd.core.types import Floats, Mask
from wisecrowd.kinds.classes.families.class_prior import check_fixed_class_prior
from wisecrowd.kinds.classes.prior import TaskPrior

DEFAULT = "dawid-skene"


@dataclass(eq=False, repr=False, kw_only=True)
class WrappedMethod(Aggregator):
    """A method with the parameter ``method``, another method for classes or its name."""

    method: Any = field(default=DEFAULT, kw_only=False)

    def __post_init__(self) -> None:
        if isinstance(self.method, str):
            self.method = get_method(self.method)()

    def set_params(self, **params: Any) -> Self:
        """Set parameters by name; a method may also be given by its name."""
        if "method" in params:
            self.method = params.pop("method")
            self.__post_init__()
        return super().set_params(**params)

    def _validate_parameters(self) -> None:
        super()._validate_parameters()
        if not isinstance(self.method, Aggregator):
            raise ParameterError(
                f"method is {self.method!r}; give a method such as {get_method(DEFAULT)()!r}, or "
                f"its name."
            )
        if self.method.takes != "labels":
            raise ParameterError(
                f"method is {type(self.method).__name__}, which takes {self.method.takes}; give a "
                f"method for classes, such as "
                + for_reader(f"{get_method(DEFAULT)()!r}.", f"{parameter('method', DEFAULT)}.")
            )
        self._fresh_method()._validate_parameters()

    def _fresh_method(self) -> Aggregator:
        """Return an unfitted copy; the given method itself never changes."""
        copy: Aggregator = type(self.method)(**self.method.get_params(deep=False))
        return copy

    def _fit_one(self, problem: Problem) -> tuple[Aggregator, Fit]:
        """Fit a fresh copy of the method, as its own ``fit`` would after checking the data."""
        fitted = self._fresh_method()
        fitted._validate_parameters()
        rng = as_generator(getattr(fitted, "random_state", None))
        result = fitted._fit(replace(problem, rng=rng))
        fitted._publish(problem.data, replace(result, findings=()))  # the whole reports them
        return fitted, result


@dataclass(eq=False, repr=False, kw_only=True)
class BinaryReduction(WrappedMethod):
    """Base of methods that fit a two-class method several times.

    A subclass says how many problems there are (``_n_problems``) and combines their results in
    ``_fit`` and ``_predict``. With two classes or one, it is the wrapped method.
    """

    class_prior: Any = "auto"

    saves: ClassVar[dict[str, Saved]] = {
        "methods_": SavedValue(
            lambda value: isinstance(value, list) and all(isinstance(m, Aggregator) for m in value),
            "a list of methods",
        ),
    }
    promises: ClassVar[Tags] = Tags()

    limits: ClassVar[Limits] = {"class_prior": check_fixed_class_prior}

    def tags(self) -> Tags:
        """Return the method's tags, without those that the reduction does not preserve."""
        inside = self.method.tags() if isinstance(self.method, Aggregator) else self.promises
        return replace(
            inside, monotone=False, likelihood=False, confusion=False, binary=False, shardable=False
        )

    @staticmethod
    def _n_problems(n_classes: int) -> int:
        raise TypeError("A reduction must define _n_problems.")

    def _saved_attributes(self) -> dict[str, Saved]:
        # With two classes there is one method, and its attributes are also those of the whole.
        inside = self.method._saved_attributes()
        return {name: replace(one, optional=True) for name, one in inside.items()} | (
            super()._saved_attributes()
        )

    def _axis_sizes(self, sizes: Mapping[str, int]) -> dict[str, int]:
        return self.methods_[0]._axis_sizes(sizes) if len(self.methods_) == 1 else {}

    def _saved_fault(self) -> str:
        n_classes, n_workers = len(self.classes_), len(self.workers_)
        n_methods = self._n_problems(n_classes)
        if len(self.methods_) != n_methods:
            return f"methods_ are {len(self.methods_)} where {n_methods} are needed"
        for fitted in self.methods_:
            if type(fitted) is not type(self.method) or not fitted.__sklearn_is_fitted__():
                return "methods_ are not those of the parameter method"
            if (len(fitted.workers_), len(fitted.classes_)) != (n_workers, min(n_classes, 2)):
                return "methods_ do not fit workers_ and classes_"
        return ""


def two_classes(problem: Problem, is_second: Mask, names: tuple[str, str]) -> Problem:
    """Return the problem with two classes: the classes in ``is_second`` (n_classes,) or not."""
    labels, start = problem.data, problem.start
    binary = replace(
        labels,
        label=is_second[labels.label].astype(np.int32),
        classes=np.array(names, dtype=object),
        ordered=False,
    )
    if start is not None:
        second = start[:, is_second].sum(axis=1)
        start = np.stack([1 - second, second], axis=1)
    prior = _summed_prior(problem.prior, is_second)
    return replace(problem, data=binary, prior=prior, start=start)


def _summed_prior(prior: TaskPrior, is_second: Mask) -> TaskPrior:
    """Return the log prior of the two classes, each summed over its own."""
    parts = [np.logaddexp.reduce(prior.rows[:, some], axis=1) for some in (~is_second, is_second)]
    rows = np.stack(parts, axis=1)
    if not prior.given:  # uninformative rows stay uninformative; gold rows do not
        rows[np.isfinite(prior.rows).all(axis=1)] = 0.0
    return TaskPrior(rows, prior.index, prior.given)


def as_dense(probas: Any) -> Floats:
    """Return a posterior as a dense array."""
    return np.asarray(probas.toarray() if hasattr(probas, "toarray") else probas)
