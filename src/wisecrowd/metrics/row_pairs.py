"""All pairs of rows in the same group, without a loop over the rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from wisecrowd.metrics._inputs import IntArray


def pairs_within(indptr: npt.NDArray[np.integer[Any]]) -> tuple[IntArray, IntArray]:
    """Return positions (first, second), first < second, of all pairs of rows of the same group.

    Parameters
    ----------
    indptr : (n_groups + 1,) int
        Group g has the rows ``indptr[g]`` to ``indptr[g + 1]``.

    Examples
    --------
    >>> first, second = pairs_within(np.array([0, 2, 3, 6]))
    >>> list(zip(first.tolist(), second.tolist()))
    [(0, 1), (3, 4), (3, 5), (4, 5)]
    """
    start, size = np.asarray(indptr[:-1], dtype=np.intp), np.diff(indptr)
    first, second = [np.empty(0, np.intp)], [np.empty(0, np.intp)]
    for n in np.unique(size[size >= 2]).tolist():  # groups of equal size at once
        i, j = np.triu_indices(n, 1)
        begin = start[size == n][:, None]
        first.append((begin + i).ravel())
        second.append((begin + j).ravel())
    return np.concatenate(first), np.concatenate(second)
