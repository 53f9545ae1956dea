"""Compiled edit distances and alignments; see :mod:`wisecrowd.kinds.texts.kernels`."""

from __future__ import annotations

import numpy as np
from numba.extending import register_jitable

from wisecrowd.core.types import Ints, Longs
from wisecrowd.kernels.compiling import compiled
from wisecrowd.kinds.texts import kernels

__all__ = ["edit_distances", "slots_of_words"]


@compiled
def _edits(words: Ints, a: int, n: int, b: int, m: int, reach: Longs) -> int:
    """Return the edits of two texts from how far each diagonal of the table is reached with few.

    ``reach`` holds, for every diagonal, the most words of the first text that so many edits lead
    through. Its cost is that of the edits' square and of the common words (Ukkonen 1985).
    """
    reach[: n + m + 3] = -2
    middle, goal = n + 1, m - n
    for edits in range(max(n, m) + 1):
        left = np.int64(-2)
        spare = max(n, m) - edits  # edits that are left for the way back to the last diagonal
        low = max(-edits, -n, goal - spare)
        if low > -n:
            left = reach[middle + low - 1]
        for k in range(low, min(edits, m, goal + spare) + 1):
            own = reach[middle + k]
            s = max(own + 1, left, reach[middle + k + 1] + 1) if edits else np.int64(0)
            s = min(s, n, m - k)
            while s >= 0 and s < n and s + k < m and words[a + s] == words[b + s + k]:
                s += 1
            reach[middle + k] = s
            left = own
        if reach[middle + goal] >= n:
            return edits
    return max(n, m)


@compiled
def edit_distances(words: Ints, pointer: Longs, first: Longs, second: Longs) -> Longs:
    """Return the edits of pairs of texts; see :mod:`wisecrowd.kinds.texts.kernels`."""
    found = np.zeros(len(first), dtype=np.int64)
    longest = 0
    for e in range(len(pointer) - 1):
        longest = max(longest, pointer[e + 1] - pointer[e])
    reach = np.zeros(2 * longest + 3, dtype=np.int64)
    for k in range(len(first)):
        a, b = pointer[first[k]], pointer[second[k]]
        n, m = pointer[first[k] + 1] - a, pointer[second[k] + 1] - b
        found[k] = _edits(words, a, n, b, m, reach)
    return found


for helper in kernels.HELPERS:
    register_jitable(helper)  # so that compiled code can call it
slots_of_words = compiled(kernels.slots_of_words)
