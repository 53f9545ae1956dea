"""Edit distances of texts as codes of words, for many pairs of texts at once."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Codes = NDArray[np.integer[Any]]

CELLS = 1 << 20  # entries of a row of costs of all pairs that are compared at once


def edit_distances(words: Codes, pointer: Ints, first: Ints, second: Ints) -> Ints:
    """Return the least numbers of words to change, insert or remove, one per pair of texts.

    Parameters
    ----------
    words : (n_words,)
        Codes of words, one text after the other.
    pointer : (n_texts + 1,)
        Text ``e`` is ``words[pointer[e]:pointer[e + 1]]``.
    first, second : (n_pairs,)
        Numbers of the texts to compare.

    Examples
    --------
    >>> words, pointer = np.array([3, 5, 7, 3, 7, 8]), np.array([0, 3, 6, 6])
    >>> edit_distances(words, pointer, np.array([0, 0]), np.array([1, 2]))
    array([2, 3])
    """
    length = np.diff(pointer)
    swap = length[first] > length[second]
    short, long = np.where(swap, second, first), np.where(swap, first, second)
    found = np.zeros(len(first), dtype=np.int64)
    order = np.argsort(length[long], kind="stable")
    width = length[long[order]] + 1
    start = 0
    while start < len(order):  # pairs of similar length together
        size = max(1, int(CELLS // width[start]))
        end = int(min(start + size, np.searchsorted(width, 2 * width[start] + 8, side="right")))
        rows = order[start : max(end, start + 1)]
        found[rows] = _batch(words, pointer, short[rows], long[rows])
        start += len(rows)
    return found


def _batch(words: Codes, pointer: Ints, short: Ints, long: Ints) -> Ints:
    """Return the distances of some pairs; the table of costs has one row per word of ``short``."""
    n, m = np.diff(pointer)[short], np.diff(pointer)[long]
    columns = np.arange(int(m.max()))
    at = np.minimum(pointer[long][:, None] + columns, max(len(words) - 1, 0))
    other = words[at] if len(words) else np.zeros(at.shape, np.int64)
    step = np.arange(len(columns) + 1)
    row = np.tile(step, (len(n), 1))
    for s in range(1, int(n.max(initial=0)) + 1):
        own = words[np.minimum(pointer[short] + s - 1, len(words) - 1)]
        new = row + 1
        np.minimum(new[:, 1:], row[:, :-1] + (own[:, None] != other), out=new[:, 1:])
        new = np.minimum.accumulate(new - step, axis=1) + step  # inserted words
        row = np.where((s <= n)[:, None], new, row)
    return np.asarray(row[np.arange(len(n)), m])
