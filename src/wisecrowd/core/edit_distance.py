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
    order, margin = np.argsort(length[long], kind="stable"), MARGIN
    while len(order):
        rest = []
        for rows in _batches(length[long[order]], margin, order):
            distance, exact = _batch(words, pointer, short[rows], long[rows], margin)
            found[rows] = distance
            rest.append(rows[~exact])
        order, margin = np.concatenate(rest), 4 * margin
    return found


def _batches(length: Ints, margin: int, order: Ints) -> Iterator[Ints]:
    """Yield pairs of similar length together; ``length`` is that of the longer texts, ascending."""
    width = length + 1
    start = 0
    while start < len(order):
        size = max(1, int(CELLS // width[start]))
        end = int(min(start + size, np.searchsorted(width, 2 * width[start] + 8, side="right")))
        yield order[start : max(end, start + 1)]
        start = max(end, start + 1)


def _batch(
    words: Codes, pointer: Ints, short: Ints, long: Ints, margin: int
) -> tuple[Ints, NDArray[np.bool_]]:
    """Return the distances of some pairs, and whether they are exact.

    The table of costs has one row per word of ``short``. Of each row only a band is computed: the
    words of ``long`` whose place differs from that of the row by at least ``-margin``, and at most
    ``margin`` more than the lengths do. A way that leaves the band costs more than ``2 * margin``
    and the difference of the lengths.
    """
    n, m = np.diff(pointer)[short], np.diff(pointer)[long]
    rows = int(n.max(initial=0))
    margin = min(margin, rows)
    step = np.arange(-margin, int((m - n).max()) + margin + 1)  # place in `long` minus the row
    if not len(words):
        return m, np.ones(len(n), dtype=bool)
    row = np.tile(np.where(step >= 0, step, FAR), (len(n), 1))
    for s in range(1, rows + 1):
        own = words[np.minimum(pointer[short] + s - 1, len(words) - 1)]
        at = pointer[long][:, None] + (s - 1 + step)
        other = words[np.clip(at, 0, len(words) - 1)]
        new = row + ((own[:, None] != other) | (s + step < 1) * FAR)
        np.minimum(new[:, :-1], row[:, 1:] + 1, out=new[:, :-1])  # removed words
        new = np.minimum.accumulate(new - step, axis=1) + step  # inserted words
        row = np.where((s <= n)[:, None], new, row)
    found = np.asarray(row[np.arange(len(n)), m - n + margin])
    return found, (found <= 2 * margin + (m - n)) | (margin >= rows)
