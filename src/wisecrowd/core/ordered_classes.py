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
    same = np.flatnonzero(np.diff(numbers[order]) == 0)
    if len(same):
        twice = classes[order[same[0] : same[0] + 2]]
        raise DataError(
            f"The classes {describe_ids(twice)} are the same number; write each class in one way."
        )
    place = np.full(len(classes) + 1, -1, dtype=np.int32)
    place[order] = np.arange(len(classes), dtype=np.int32)
    return place[label], classes[order]


def complete_order(classes: NDArray[Any], others: NDArray[Any]) -> NDArray[Any]:
    """Return ordered classes with others among them: in their places if all are numbers.

    Examples
    --------
    >>> complete_order(np.array([1, 3]), np.array([2, 3])).tolist()
    [1, 2, 3]
    """
    known = set(classes.tolist())
    new = [value for value in dict.fromkeys(others.tolist()) if value not in known]
    if not new:
        return classes
    all_classes = np.empty(len(classes) + len(new), dtype=object)
    all_classes[:] = [*classes.tolist(), *new]
    return in_numeric_order(np.empty(0, dtype=np.int32), all_classes)[1]


def grades_like(labels: NDArray[Any], classes: Any) -> Any:
    """Return declared grades as whole numbers if they are their texts and labels are numbers.

    A scale that the shell declares is text, and labels of typed files are numbers.

    Examples
    --------
    >>> grades_like(np.array([2, 5]), ["1", "2", "3"])
    [1, 2, 3]
    >>> grades_like(np.array(["2"], dtype=object), ["1", "2"])
    ['1', '2']
    """
    if labels.dtype.kind not in "iu" or not isinstance(classes, list | tuple):
        return classes
    texts = [text for text in classes if isinstance(text, str) and _is_whole(text)]
    return [int(text) for text in texts] if len(texts) == len(classes) else classes


def _is_whole(text: str) -> bool:
    digits = text.removeprefix("-")
    return digits.isascii() and digits.isdigit() and text == str(int(text))
