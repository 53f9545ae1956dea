"""Base of methods that wrap another method for classes."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Self

from wisecrowd.core.aggregator import Aggregator
from wisecrowd.core.exceptions import ParameterError
from wisecrowd.core.messages.option_spelling import for_reader, parameter
from wisecrowd.core.parameter_checks import as_generator
from wisecrowd.core.problem import Problem
from wisecrowd.core.registry import get_method
from wisecrowd.core.result import Fit

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
