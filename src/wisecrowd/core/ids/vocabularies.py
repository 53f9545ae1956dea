"""Vocabularies of text: Python strings if there are few ids, compact strings of NumPy if many.

A Python string of ten letters takes about 60 bytes and a pointer to it 8 more. NumPy's
``StringDType`` takes 16 bytes for ids of up to 15 bytes. Both give Python strings when they are
indexed or listed.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

MANY = 1 << 20  # ids from which the strings are compact; below, Python strings are faster to use
_BLOCK = 1 << 16  # strings that exist as Python objects at a time


def empty_texts(size: int) -> NDArray[Any]:
    """Return an array for text ids, to be filled.

    Examples
    --------
    >>> empty_texts(3).dtype
    dtype('O')
    """
    if size < MANY:
        return np.empty(size, dtype=object)
    return np.empty(size, dtype=np.dtypes.StringDType())


def text_vocabulary(texts: Any) -> NDArray[Any]:
    """Return a pyarrow array of texts as a vocabulary."""
    if len(texts) < MANY:
        return np.asarray(texts.to_numpy(zero_copy_only=False), dtype=object)
    ids = empty_texts(len(texts))
    for start in range(0, len(texts), _BLOCK):
        ids[start : start + _BLOCK] = texts[start : start + _BLOCK].to_numpy(zero_copy_only=False)
    return ids


def is_text_ids(ids: NDArray[Any]) -> bool:
    """Return whether a vocabulary holds text; other ids are numbers, booleans or times.

    Examples
    --------
    >>> is_text_ids(np.array(["a"], dtype=object)), is_text_ids(np.arange(3))
    (True, False)
    """
    return ids.dtype == object or ids.dtype.kind == "T"
