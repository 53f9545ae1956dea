"""Declarations of the learned attributes of a method: axes and values.

A class declares in ``saves`` the attributes that its fits set, in addition to those of its bases.
Saving refuses undeclared attributes. Loading refuses attributes that do not match their
declaration, because predictions pass the arrays to compiled code that does not check bounds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.exceptions import DataError
from wisecrowd.core.findings import Finding
from wisecrowd.core.messages.descriptions import describe_value

ANY_LENGTH = "*"
_ROUNDING = 1e-4  # tolerance for sums of probabilities in single precision


@dataclass(frozen=True)
class SavedArray:
    """A learned array.

    Attributes
    ----------
    axes : str
        Names of its axes: ``N`` tasks, ``J`` workers, ``K`` classes, ``features``, a number, a name
        in the method's ``_axis_sizes``, or ``*`` for any length. Alternative shapes are separated
        by ``|``.
    values : str
        Type of the values, one of ``VALUES``; all except "log" are finite.
    optional : bool or callable
        Whether some fits do without, or whether a given method's fit does.

    Examples
    --------
    >>> SavedArray("J K K", "distribution").shapes({"J": 5, "K": 2})
    [(5, 2, 2)]
    """

    axes: str
    values: str = "number"
    optional: bool | Callable[[Any], bool] = False

    def shapes(self, sizes: Mapping[str, int]) -> list[tuple[int | None, ...]]:
        """Return the possible shapes; None stands for any length."""
        return [tuple(_size(axis, sizes) for axis in one.split()) for one in self.axes.split("|")]

    def fault(self, value: Any, sizes: Mapping[str, int]) -> str:
        """Return what is wrong with a value, or nothing."""
        if fault := self.shape_fault(value, sizes):
            return fault
        table = value.data if hasattr(value, "tocsr") else value
        dtypes, good, words = VALUES[self.values]
        if dtypes and table.dtype.newbyteorder("=") not in dtypes:
            return f"has the type {table.dtype}, which is not that of {words}"
        return "" if good(value, sizes) else f"holds something else than {words}"

    def shape_fault(self, value: Any, sizes: Mapping[str, int]) -> str:
        """Return what is wrong with the shape of a value, or nothing."""
        table = getattr(value, "data", None) if hasattr(value, "tocsr") else value
        if not isinstance(table, np.ndarray):
            return f"is {describe_value(value)} and not an array"
        shape, possible = tuple(value.shape), self.shapes(sizes)
        if any(_fits(shape, one) for one in possible):
            return ""
        expected = " or ".join(str(one).replace("None", ANY_LENGTH) for one in possible)
        return f"has the shape {shape} where {expected} is needed"


@dataclass(frozen=True)
class SavedValue:
    """A learned value that is not an array.

    Attributes
    ----------
    good : callable
        Whether a value is valid.
    words : str
        Description of valid values, for a message.
    optional : bool or callable
        Whether some fits do without, or whether a given method's fit does.
    """

    good: Callable[[Any], bool]
    words: str
    optional: bool | Callable[[Any], bool] = False

    def fault(self, value: Any, sizes: Mapping[str, int]) -> str:
        """Return what is wrong with a value, or nothing."""
        return "" if self.good(value) else f"is {describe_value(value)}, which is not {self.words}"


Saved = SavedArray | SavedValue


# ------------------------------------------------------------------------------- values of arrays


def _finite(value: Any, sizes: Mapping[str, int]) -> bool:
    return bool(np.isfinite(_entries(value)).all())


def _between(low: float, high: float) -> Callable[[Any, Mapping[str, int]], bool]:
    def good(value: Any, sizes: Mapping[str, int]) -> bool:
        entries = _entries(value)
        return bool(((entries >= low) & (entries <= high)).all())

    return good


def _sums_to_one(value: Any, sizes: Mapping[str, int]) -> bool:
    if not _between(-_ROUNDING, 1 + _ROUNDING)(value, sizes):
        return False
    total = np.asarray(value.sum(axis=-1))
    if hasattr(value, "tocsr"):  # the rest is spread over the classes not stored
        return bool((total <= 1 + _ROUNDING).all())
    return bool((np.abs(total - 1) <= _ROUNDING).all())


def _below_infinity(value: Any, sizes: Mapping[str, int]) -> bool:
    return bool((_entries(value) < np.inf).all())


def _groups(value: Any, sizes: Mapping[str, int]) -> bool:
    return bool(((value >= -1) & (value < sizes["J"])).all())


def _ids(value: Any, sizes: Mapping[str, int]) -> bool:
    items = value.ravel().tolist()
    try:
        return len(set(items)) == len(items)
    except TypeError:  # a list or a mapping, not an id
        return False


def _entries(value: Any) -> NDArray[Any]:
    entries: NDArray[Any] = value.data if hasattr(value, "tocsr") else value
    return entries


_FLOATS = (np.dtype(np.float64),)
_INTEGERS = (np.dtype(np.int32), np.dtype(np.int64))
_TINY = np.finfo(np.float64).tiny
_LARGEST = np.finfo(np.float64).max
# Name → dtypes (empty: any), test of the values, and their description in a message.
VALUES: dict[
    str, tuple[tuple[np.dtype[Any], ...], Callable[[Any, Mapping[str, int]], bool], str]
] = {
    "number": (_FLOATS, _finite, "finite numbers"),
    "positive": (_FLOATS, _between(_TINY, _LARGEST), "finite numbers above zero"),
    "amount": ((*_FLOATS, *_INTEGERS), _between(0, _LARGEST), "finite numbers from zero up"),
    "count": (_INTEGERS, _between(0, np.iinfo(np.int64).max), "counts"),
    "probability": (_FLOATS, _between(-_ROUNDING, 1 + _ROUNDING), "probabilities"),
    "distribution": (_FLOATS, _sums_to_one, "probabilities that sum to one"),
    "log": (_FLOATS, _below_infinity, "logarithms"),
    "flag": ((np.dtype(np.bool_),), lambda value, sizes: True, "true and false"),
    "group": (_INTEGERS, _groups, "numbers of groups, or -1"),
    "id": ((), _ids, "ids that differ"),
    "label": ((), lambda value, sizes: True, "classes"),
}


# ---------------------------------------------------------------------------------- other values


def saved_float(low: float, high: float, *, or_nan: bool = False) -> SavedValue:
    """Return the declaration of a number in a range, or NaN where it may not be known."""

    def good(value: Any) -> bool:
        if not isinstance(value, float):
            return False
        return low <= value <= high or (or_nan and value != value)

    return SavedValue(good, f"a number from {low:g} to {high:g}")


def is_count(value: Any) -> bool:
    """Return whether a value is an integer of at least zero."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool) and int(value) >= 0


def is_finite(value: Any) -> bool:
    """Return whether a value is a finite number."""
    return _is_number(value) and abs(value) < np.inf


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


def _all(good: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, tuple) and all(map(good, value))


def _is_record(value: Any) -> bool:
    return isinstance(value, dict) and all(
        isinstance(key, str) and _is_number(item) for key, item in value.items()
    )


def _is_finding(value: Any) -> bool:
    return (
        isinstance(value, Finding)
        and _is_number(value.score)
        and isinstance(value.affected, tuple)
        and all(isinstance(text, str) for text in (value.id, value.explanation, value.remedy))
    )


def number_between(low: float, high: float) -> SavedValue:
    """Return the declaration of a finite number from ``low`` to ``high``."""
    return SavedValue(
        lambda value: is_finite(value) and low <= value <= high, f"between {low} and {high}"
    )


COUNT = SavedValue(is_count, "a count")
FLAG = SavedValue(lambda value: isinstance(value, bool), "true or false")
# Whether known answers went into a fit, which they then cannot judge; older models lack it.
SAW_GOLD = SavedValue(lambda value: isinstance(value, bool), "true or false", optional=True)
NUMBER = SavedValue(is_finite, "a finite number")
TEXTS = SavedValue(_all(lambda value: isinstance(value, str)), "a tuple of texts")
FINDINGS = SavedValue(_all(_is_finding), "a tuple of findings", optional=True)  # older models
SIZES = SavedValue(_all(lambda value: is_count(value) and value > 0), "a tuple of sizes")
# A history may contain NaN or infinity, because a fit may have diverged.
HISTORY = SavedValue(_all(_is_number), "a tuple of numbers")
RECORDS = SavedValue(_all(_is_record), "a tuple of records")


# --------------------------------------------------------------------------------- whole methods


def require_declared(method: Any, names: Iterable[str]) -> None:
    """Check that the class of a method declares all its learned attributes."""
    declared = method._saved_attributes()
    for name in names:
        if name not in declared:
            raise TypeError(
                f"{type(method).__name__} must declare {name} in `saves`: its axes and values."
            )


def require_shapes(method: Any, published: Mapping[str, Any]) -> None:
    """See that what a fit is about to publish has the shapes that the answers declare.

    Raises
    ------
    TypeError
        For the author of the method, with the first attribute that has not.
    """
    kind = method._kind()
    sizes = {axis: len(published[name]) for axis, name in kind.container.axes.items()}
    for name, one in kind.answers.saves.items():
        if name in published and isinstance(one, SavedArray) and _is_plain(one, sizes):
            fault = one.shape_fault(published[name], sizes)
            if fault:
                raise TypeError(f"{name} of {type(method).__name__} {fault}.")


def is_optional(one: Saved, method: Any) -> bool:
    """Return whether a declared attribute is optional for this method."""
    return one.optional(method) if callable(one.optional) else one.optional


def require_sound(method: Any) -> None:
    """Check that all learned attributes of a method match their declarations.

    Raises
    ------
    DataError
        Names the first attribute that does not match.
    """
    learned, declared, kind = vars(method), method._saved_attributes(), method._kind()
    sizes = {}
    for axis, name in kind.container.axes.items():
        if name not in learned:
            raise DataError(f"{name} is missing")
        ids = learned[name]
        if not isinstance(ids, np.ndarray) or ids.ndim != 1:
            raise DataError(f"{name} is no list of ids")
        sizes[axis] = len(ids)
    _require(method, declared, {"n_features_in_": COUNT}, sizes)
    sizes["features"] = learned.get("n_features_in_", 0)
    # Attributes that define sizes are checked before those sizes are used.
    plain = {n: one for n, one in declared.items() if _is_plain(one, sizes)}
    _require(method, declared, plain, sizes)
    for name, one in declared.items():
        if name not in learned and not is_optional(one, method):
            raise DataError(f"{name} is missing")
    sizes |= method._axis_sizes(sizes)
    _require(method, declared, {n: one for n, one in declared.items() if n not in plain}, sizes)
    if fault := method._saved_fault() or kind.answers.fault(learned):
        raise DataError(fault)


def _require(
    method: Any, declared: Mapping[str, Saved], some: Mapping[str, Saved], sizes: Mapping[str, int]
) -> None:
    for name in some:
        if name in vars(method) and name in declared:
            fault = declared[name].fault(vars(method)[name], sizes)
            if fault:
                raise DataError(f"{name} {fault}")


def _is_plain(one: Saved, sizes: Mapping[str, int]) -> bool:
    if isinstance(one, SavedValue):
        return True
    axes = one.axes.replace("|", " ").split()
    return all(axis in sizes or axis == ANY_LENGTH or axis.isdigit() for axis in axes)


def _size(axis: str, sizes: Mapping[str, int]) -> int | None:
    if axis == ANY_LENGTH:
        return None
    return int(axis) if axis.isdigit() else sizes[axis]


def _fits(shape: tuple[int, ...], expected: tuple[int | None, ...]) -> bool:
    return len(shape) == len(expected) and all(
        size is None or size == found for found, size in zip(shape, expected, strict=True)
    )
