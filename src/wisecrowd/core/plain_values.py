"""Conversion of values to plain JSON types."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

_JSON_TYPES = frozenset({str, int, bool, type(None)})


class PlainRows(list[dict[str, Any]]):
    """Rows whose values are plain already, so that millions are not converted again."""


def text_or_null(value: Any) -> str | None:
    """Return None for a float that is not finite, and the text of any other value."""
    return None if isinstance(value, float) else str(value)


def plain(value: Any, other: Callable[[Any], Any] = text_or_null) -> Any:
    """Convert a value to JSON types: arrays to lists, numbers to Python's, NaN to None.

    Parameters
    ----------
    value : object
    other : function, optional
        Converts values that JSON cannot represent: floats that are not finite, and objects.

    Examples
    --------
    >>> plain({"score": np.array([0.5, np.nan]), "n": np.int64(3)})
    {'score': [0.5, None], 'n': 3}
    >>> plain([float("inf"), {1, 2}], other=repr)
    ['inf', '{1, 2}']
    """
    kind = type(value)
    if kind in _JSON_TYPES or kind is PlainRows:  # the most common types first: tables are large
        return value
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else other(float(value))
    if isinstance(value, Mapping):
        return {str(key): plain(item, other) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item, other) for item in value]
    if isinstance(value, np.ndarray | np.generic):
        return plain(value.tolist(), other)
    return value if isinstance(value, int | str) else other(value)
