"""Tasks with exactly the same labels, which share one row of a pack."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.integer[Any]]
_FACTORS = (np.uint64(0x9E3779B97F4A7C15), np.uint64(0xFF51AFD7ED558CCD))


class Patterns(NamedTuple):
    """Distinct rows of labels.

    Attributes
    ----------
    pattern : (n_tasks,) int32
        The row of each task.
    repeat : (n_rows,) int64
        Tasks that share a row.
    first : (n_rows,) int64
        The first task of a row.
    """

    pattern: NDArray[np.int32]
    repeat: NDArray[np.int64]
    first: NDArray[np.int64]


def find_patterns(indptr: NDArray[np.int64], cell: Ints) -> Patterns:
    """Return which tasks have the same cells, in the order of their first tasks.

    Tasks are compared by a sum of mixed cells, then cell by cell. Two different rows with the same
    sum are left apart, so rows are exact.

    Examples
    --------
    >>> find_patterns(np.array([0, 2, 3, 5]), np.array([1, 4, 1, 1, 4]))
    Patterns(pattern=array([0, 1, 0], dtype=int32), repeat=array([2, 1]), first=array([0, 1]))
    """
    n = len(indptr) - 1
    size = np.diff(indptr)
    with np.errstate(over="ignore"):
        mixed = (cell.astype(np.uint64) + np.uint64(1)) * _FACTORS[0]
        mixed ^= mixed >> np.uint64(29)
        mixed *= _FACTORS[1]
        total = np.append(np.uint64(0), np.cumsum(mixed))
        key = (total[indptr[1:]] - total[indptr[:-1]]) * _FACTORS[0] + size.astype(np.uint64)
    _, first, group = np.unique(key, return_index=True, return_inverse=True)
    leader = first[group]
    alone = _differs(indptr, cell, leader)
    leader = np.where(alone, np.arange(n), leader)
    heads, pattern, repeat = np.unique(leader, return_inverse=True, return_counts=True)
    return Patterns(pattern.astype(np.int32), repeat.astype(np.int64), heads.astype(np.int64))


def _differs(indptr: NDArray[np.int64], cell: Ints, leader: Ints) -> NDArray[np.bool_]:
    """Return (n_tasks,): whether a task differs from its leader."""
    size = np.diff(indptr)
    differs = np.asarray(size != size[leader])
    shift = np.repeat(np.where(differs, 0, indptr[leader] - indptr[:-1]), size)
    other = cell[np.arange(len(cell)) + shift] != cell
    task = np.repeat(np.arange(len(size)), size)
    differs[task[other]] = True
    return differs
