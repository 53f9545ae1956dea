"""Edit distances of texts as codes of words, for many pairs of texts at once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Codes = NDArray[np.integer[Any]]

MARGIN = 32  # words, the first width of the band of costs that is computed
FAR = 1 << 40  # cost of what is outside
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
    order, margin = np.argsort(length[long], kind="stable"), MARGIN
    while len(order):
        rest = []
        for rows in _batches(order, length[long[order]] + 1):
            found[rows], exact = _batch(words, pointer, short[rows], long[rows], margin)
            rest.append(rows[~exact])
        order, margin = np.concatenate(rest), 4 * margin
    return found


def _batches(order: Ints, width: Ints) -> Iterator[Ints]:
    """Yield pairs of similar width together; widths are ascending."""
    start = 0
    while start < len(order):
        size = max(1, int(CELLS // width[start]))
        end = int(min(start + size, np.searchsorted(width, 2 * width[start] + 8, side="right")))
        end = max(end, start + 1)
        yield order[start:end]
        start = end


def _batch(
    words: Codes, pointer: Ints, short: Ints, long: Ints, margin: int
) -> tuple[Ints, NDArray[np.bool_]]:
    """Return the distances of some pairs, and whether they are exact.

    A way through the table of costs that goes on by more than ``margin`` words in one text alone,
    beyond the difference of the lengths, costs more than ``2 * margin`` and that difference. So a
    band of the table is enough for a smaller distance.
    """
    n, m = np.diff(pointer)[short], np.diff(pointer)[long]
    apart = m - n
    if 2 * margin + int(apart.max()) >= int(m.max()):
        return _whole_table(words, pointer, short, long), np.ones(len(n), dtype=bool)
    found = _band(words, pointer, short, long, margin)
    return found, found <= 2 * margin + apart


def _whole_table(words: Codes, pointer: Ints, short: Ints, long: Ints) -> Ints:
    """Return the distances; the table of costs has one row per word of ``short``."""
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


def _band(words: Codes, pointer: Ints, short: Ints, long: Ints, margin: int) -> Ints:
    """Return the least costs of ways inside of a band, whose columns move on with the rows."""
    n, m = np.diff(pointer)[short], np.diff(pointer)[long]
    step = np.arange(-margin, int((m - n).max()) + margin + 1)  # place in `long` minus the row
    row = np.tile(np.where(step >= 0, step, FAR), (len(n), 1))
    for s in range(1, int(n.max()) + 1):
        own = words[np.minimum(pointer[short] + s - 1, len(words) - 1)]
        at = pointer[long][:, None] + (s - 1 + step)
        new = row + (own[:, None] != words[np.clip(at, 0, len(words) - 1)])
        new[:, s + step < 1] = FAR
        np.minimum(new[:, :-1], row[:, 1:] + 1, out=new[:, :-1])  # removed words
        new = np.minimum.accumulate(new - step, axis=1) + step  # inserted words
        row = np.where((s <= n)[:, None], new, row)
    return np.asarray(row[np.arange(len(n)), m - n + margin])
