"""What values parameters may have: tables of limits, and checks that say what is allowed."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np

from wisecrowd.core.exceptions import ParameterError
from wisecrowd.core.messages.descriptions import describe_value
from wisecrowd.core.messages.option_spelling import for_reader

# Beyond these limits a sum or product overflows, or a fit never ends.
LARGEST_NUMBER = 1e9
SMALLEST_NUMBER = 1e-150  # except 0: the square of its inverse is finite
LARGEST_COUNT = 10**9
MOST_ITERATIONS = 10**6
MOST_STARTS = 10**4  # number of fits, chains or rounds, each with its own iterations


def check_integer(name: str, value: Any, minimum: int, maximum: float = LARGEST_COUNT) -> None:
    """Require an integer from ``minimum`` to ``maximum``, inclusive; a bool is refused."""
    good = isinstance(value, Integral) and not isinstance(value, bool)
    if not good or not minimum <= value <= maximum:
        most = "" if maximum == math.inf else f", at most {maximum}"
        raise ParameterError(
            f"{name} is {describe_value(value)}; give an integer of at least {minimum}{most}."
        )


def check_number(name: str, value: Any, low: float, high: float = LARGEST_NUMBER) -> None:
    """Require a finite number from ``low`` to ``high``, inclusive."""
    good = isinstance(value, Real) and not isinstance(value, bool)
    if not good or not low <= value <= high or abs(value) == math.inf:
        span = (
            f"between {low} and {high}"
            if high != LARGEST_NUMBER
            else f"of at least {low}, at most {high:g}"
        )
        raise ParameterError(f"{name} is {describe_value(value)}; give a finite number {span}.")
    if 0 < abs(value) < SMALLEST_NUMBER:
        raise ParameterError(
            f"{name} is {describe_value(value)}, too small to compute with; give a number of at "
            f"least {SMALLEST_NUMBER:g}" + (", or 0." if low <= 0 else ".")
        )


def is_auto(value: Any) -> bool:
    """Return whether a parameter is the text "auto"; arrays, which compare by element, are not."""
    return isinstance(value, str) and value == "auto"


def check_flag(name: str, value: Any) -> None:
    """Require True or False."""
    if not isinstance(value, bool | np.bool_):
        either = for_reader("True or False", "true or false")
        raise ParameterError(f"{name} is {describe_value(value)}; give {either}.")


def check_choice(name: str, value: Any, choices: Sequence[str]) -> None:
    """Require one of the given words."""
    if not isinstance(value, str) or value not in choices:
        raise ParameterError(
            f"{name} is {describe_value(value)}; choose one of {', '.join(choices)}."
        )


def as_generator(random_state: Any) -> np.random.Generator:
    """Return a random generator from None, an integer or a generator."""
    if isinstance(random_state, np.random.Generator):
        return random_state
    if random_state is not None:
        check_integer("random_state", random_state, 0, math.inf)
    return np.random.default_rng(random_state)


@dataclass(frozen=True, kw_only=True)
class Limit:
    """What values a parameter may have; a class lists its own in ``limits``, by name.

    Parameters
    ----------
    auto, none : bool
        Whether "auto" and None are allowed as well.
    """

    auto: bool = False
    none: bool = False

    def check(self, name: str, value: Any) -> None:
        """Refuse a value outside the limit."""
        if not ((self.auto and is_auto(value)) or (self.none and value is None)):
            self._check(name, value)

    def _check(self, name: str, value: Any) -> None:
        raise TypeError(f"{type(self).__name__} must define _check.")


@dataclass(frozen=True)
class Count(Limit):
    """An integer from ``minimum`` to ``maximum``."""

    minimum: int
    maximum: float = LARGEST_COUNT

    def _check(self, name: str, value: Any) -> None:
        check_integer(name, value, self.minimum, self.maximum)


@dataclass(frozen=True)
class Number(Limit):
    """A finite number from ``low`` to ``high``."""

    low: float
    high: float = LARGEST_NUMBER

    def _check(self, name: str, value: Any) -> None:
        check_number(name, value, self.low, self.high)


class Flag(Limit):
    """True or False."""

    def _check(self, name: str, value: Any) -> None:
        check_flag(name, value)


@dataclass(frozen=True)
class Choice(Limit):
    """One of the given words."""

    choices: Sequence[str]

    def _check(self, name: str, value: Any) -> None:
        check_choice(name, value, self.choices)


# By name of the parameter: a limit, or a function that refuses a value.
Limits = dict[str, Limit | Callable[[Any], object]]


def check_limits(limits: Limits, params: dict[str, Any]) -> None:
    """Refuse parameters outside their limits; limits of other parameters are left."""
    for name, limit in limits.items():
        if name in params:
            if isinstance(limit, Limit):
                limit.check(name, params[name])
            else:
                limit(params[name])
