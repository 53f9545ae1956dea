"""Parameter checks shared by populations, graphs and difficulties."""

from __future__ import annotations

import math
import numbers

import numpy as np
import numpy.typing as npt

from wisecrowd.core.exceptions import ParameterError
from wisecrowd.core.memory import available_memory, readable_bytes

__all__ = [
    "Codes", "Floats", "check_count", "check_number", "check_positive", "check_room", "check_share",
]  # fmt: skip

Codes = npt.NDArray[np.int32]
Floats = npt.NDArray[np.float64]


def check_number(name: str, value: object) -> float:
    """Return a finite float."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise ParameterError(f"`{name}` must be a number, but is {value!r}.")
    number = float(value)
    if not math.isfinite(number):
        raise ParameterError(f"`{name}` must be finite, but is {value!r}.")
    return number


def check_positive(name: str, value: object) -> float:
    """Return a finite float above zero."""
    number = check_number(name, value)
    if number <= 0:
        raise ParameterError(f"`{name}` must be above 0, but is {value!r}.")
    return number


def check_share(name: str, value: object) -> float:
    """Return a probability, ends included."""
    number = check_number(name, value)
    if not 0 <= number <= 1:
        raise ParameterError(f"`{name}` must lie between 0 and 1, but is {value!r}.")
    return number


def check_room(size: float, what: str) -> None:
    """Refuse what needs more bytes than there are, before any of them is taken."""
    limit = available_memory()
    if size > limit:
        raise ParameterError(
            f"{what} would need {readable_bytes(size)}, but the machine has "
            f"{readable_bytes(limit)}; simulate fewer."
        )


def check_count(name: str, value: object, least: int = 1) -> int:
    """Return a whole number of at least `least`."""
    if isinstance(value, bool) or not isinstance(value, numbers.Integral) or int(value) < least:
        raise ParameterError(f"`{name}` must be a whole number from {least} up, but is {value!r}.")
    return int(value)
