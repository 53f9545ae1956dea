"""Methods that reduce a problem of several classes to problems of two, for any method of these."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.aggregator import Aggregator, Tags
from wisecrowd.core.problem import Problem
from wisecrowd.core.saved_attributes import Saved, SavedValue
from wisecrowd.core.task_prior import TaskPrior
from wisecrowd.families.wrapped_method import WrappedMethod
from wisecrowd.inference.class_prior import check_fixed_class_prior

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]


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

    def tags(self) -> Tags:
        """Return the method's tags, without those that the reduction does not preserve."""
        inside = self.method.tags() if isinstance(self.method, Aggregator) else self.promises
        return replace(inside, monotone=False, likelihood=False, confusion=False, binary=False)

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

    def _validate_parameters(self) -> None:
        super()._validate_parameters()
        check_fixed_class_prior(self.class_prior)


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
