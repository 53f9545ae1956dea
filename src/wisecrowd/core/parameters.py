"""Checks of parameter values, each with a message that says what is allowed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np

from wisecrowd.core.exceptions import ParameterError
from wisecrowd.core.spelling import spelled


def check_integer(name: str, value: Any, minimum: int) -> None:
    """Require an integer of at least ``minimum`` (a bool is none)."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < minimum:
        raise ParameterError(f"{name} is {value!r}; give an integer of at least {minimum}.")


def check_number(name: str, value: Any, low: float, high: float = math.inf) -> None:
    """Require a finite number between ``low`` and ``high``, both allowed."""
    good = isinstance(value, Real) and not isinstance(value, bool)
    if not good or not math.isfinite(value) or not low <= value <= high:
        span = f"of at least {low}" if high == math.inf else f"between {low} and {high}"
        raise ParameterError(f"{name} is {value!r}; give a finite number {span}.")


def check_flag(name: str, value: Any) -> None:
    """Require True or False."""
    if not isinstance(value, bool | np.bool_):
        either = spelled("True or False", "true or false")
        raise ParameterError(f"{name} is {value!r}; give {either}.")


def check_choice(name: str, value: Any, choices: Sequence[str]) -> None:
    """Require one of a few words."""
    if not isinstance(value, str) or value not in choices:
        raise ParameterError(f"{name} is {value!r}; choose one of {', '.join(choices)}.")


def as_generator(random_state: Any) -> np.random.Generator:
    """Return a random generator from None, an integer or a generator."""
    if isinstance(random_state, np.random.Generator):
        return random_state
    if random_state is not None:
        check_integer("random_state", random_state, 0)
    return np.random.default_rng(random_state)
