"""The order of classes: declared by the user, or that of numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.class_evidence import as_numbers_or_nan
from wisecrowd.core.exceptions import DataError
from wisecrowd.core.messages.descriptions import describe_ids
from wisecrowd.core.messages.option_spelling import for_reader

Codes = NDArray[np.int32]
ORDERED = "ordered"


def in_numeric_order(label: Codes, classes: NDArray[Any]) -> tuple[Codes, NDArray[Any]]:
    """Return codes and classes in the order of their numbers; other classes need a declared order.

    Examples
    --------
    >>> codes, classes = in_numeric_order(np.array([0, 1]), np.array(["10", "9.5"], object))
    >>> codes.tolist(), classes.tolist()
    ([1, 0], ['9.5', '10'])
    """
    numbers = as_numbers_or_nan(classes)
    if np.isnan(numbers).any():
        raise DataError(
            f"The order of the classes {describe_ids(classes)} is not known; give all of them, "
            "the lowest first, with "
            + for_reader("classes=[...] and type='ordered'.", "--scale LOW,...,HIGH.")
        )
    order = np.argsort(numbers, kind="stable")
    place = np.full(len(classes) + 1, -1, dtype=np.int32)
    place[order] = np.arange(len(classes), dtype=np.int32)
    return place[label], classes[order]
