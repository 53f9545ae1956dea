"""Compiled edit distances and alignments; see :mod:`wisecrowd.kernels.alignment.reference`."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba.extending import register_jitable
from numpy.typing import NDArray

from wisecrowd.core.edit_distance import MARGIN
from wisecrowd.kernels.alignment import reference
from wisecrowd.kernels.compiling import compiled

__all__ = ["edit_distances", "slots_of_words"]

Ints = NDArray[np.int64]
Codes = NDArray[np.integer[Any]]


@compiled
def _band(words: Codes, a: int, n: int, b: int, m: int, margin: int, row: Ints) -> int:
    """Return the least cost of ways that stay near the diagonal; see the reference. n <= m."""
    far = n + m + 1
    high = min(m, m - n + margin)
    for t in range(high + 1):
        row[t] = t
    for s in range(1, n + 1):
        low, last = max(1, s - margin), high
        high = min(m, s + m - n + margin)
        if high > last:
            row[high] = far
        diagonal = row[low - 1]
        row[low - 1] = s if s <= margin else far
        for t in range(low, high + 1):
            change = diagonal + (words[a + s - 1] != words[b + t - 1])
            diagonal = row[t]
            row[t] = min(change, diagonal + 1, row[t - 1] + 1)
    return int(row[m])


@compiled
def edit_distances(words: Codes, pointer: Ints, first: Ints, second: Ints) -> Ints:
    """Return the edits of pairs of texts; see :mod:`wisecrowd.core.edit_distance`."""
    found = np.zeros(len(first), dtype=np.int64)
    longest = 0
    for e in range(len(pointer) - 1):
        longest = max(longest, pointer[e + 1] - pointer[e])
    row = np.zeros(longest + 1, dtype=np.int64)
    for k in range(len(first)):
        one, two = first[k], second[k]
        if pointer[one + 1] - pointer[one] > pointer[two + 1] - pointer[two]:
            one, two = two, one
        a, b = pointer[one], pointer[two]
        n, m = pointer[one + 1] - a, pointer[two + 1] - b
        margin = MARGIN
        found[k] = _band(words, a, n, b, m, margin, row)
        while found[k] > 2 * margin + m - n and margin < n:
            margin *= 4
            found[k] = _band(words, a, n, b, m, margin, row)
    return found


for helper in reference.HELPERS:
    register_jitable(helper)  # so that compiled code can call it
slots_of_words = compiled(reference.slots_of_words)
