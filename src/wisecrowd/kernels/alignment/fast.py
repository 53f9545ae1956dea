"""Compiled edit distances and alignments; see :mod:`wisecrowd.kernels.alignment.reference`."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba.extending import register_jitable
from numpy.typing import NDArray

from wisecrowd.kernels.alignment import reference
from wisecrowd.kernels.compiling import compiled

__all__ = ["edit_distances", "slots_of_words"]

Ints = NDArray[np.int64]
Codes = NDArray[np.integer[Any]]


@compiled
def edit_distances(words: Codes, pointer: Ints, first: Ints, second: Ints) -> Ints:
    """Return the edits of pairs of texts; see :mod:`wisecrowd.core.edit_distance`."""
    found = np.zeros(len(first), dtype=np.int64)
    longest = 0
    for e in range(len(pointer) - 1):
        longest = max(longest, pointer[e + 1] - pointer[e])
    row = np.zeros(longest + 1, dtype=np.int64)
    for k in range(len(first)):
        a, b = pointer[first[k]], pointer[second[k]]
        n, m = pointer[first[k] + 1] - a, pointer[second[k] + 1] - b
        for t in range(m + 1):
            row[t] = t
        for s in range(1, n + 1):
            diagonal = row[0]
            row[0] = s
            for t in range(1, m + 1):
                change = diagonal + (words[a + s - 1] != words[b + t - 1])
                diagonal = row[t]
                row[t] = min(change, diagonal + 1, row[t - 1] + 1)
        found[k] = row[m]
    return found


for helper in (reference._fill, reference._follow, reference._aligned):
    register_jitable(helper)  # so that compiled code can call it
slots_of_words = compiled(reference.slots_of_words)
