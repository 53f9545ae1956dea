"""Shared tasks and joint label counts of pairs of workers: the specification, by products.

Annotations are sorted by (task, worker); those of weight zero do not count. Pairs are
``first < second``, sorted by (first, second). Two annotations of one worker are not a pair.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array

from wisecrowd.core.types import Floats, Ints


def _product(task: Ints, column: Ints, weight: Floats, n_columns: int) -> Any:
    """Return the sparse sum over tasks of the products of all pairs of columns."""
    n_tasks = int(task[-1]) + 1 if len(task) else 1
    given = coo_array((weight, (task, column)), shape=(n_tasks, n_columns)).tocsr()
    return (given.T @ given).tocoo()


def shared_weight(
    task: Ints, worker: Ints, weight: Floats, n_workers: int, least: float
) -> tuple[NDArray[np.int32], NDArray[np.int32], Floats]:
    """Return first (P,), second (P,) and the weight of the shared tasks, where at least ``least``.

    The weight of a shared task is the product of the two labels' weights.
    """
    common = _product(task, worker, weight, n_workers)
    kept = np.flatnonzero((common.row < common.col) & (common.data > 0) & (common.data >= least))
    kept = kept[np.lexsort((common.col[kept], common.row[kept]))]
    first, second = common.row[kept].astype(np.int32), common.col[kept].astype(np.int32)
    return first, second, common.data[kept]


def pair_counts(
    task: Ints,
    worker: Ints,
    label: Ints,
    weight: Floats,
    first: Ints,
    second: Ints,
    n_workers: int,
    n_classes: int,
) -> Floats:
    """Return the joint label counts (P, K, K) of each pair of workers."""
    K, n_pairs = n_classes, len(first)
    cell = worker.astype(np.int64) * K + label
    joint = _product(task, cell, weight, n_workers * K)
    own, other = joint.row.astype(np.int64), joint.col.astype(np.int64)
    wanted = first.astype(np.int64) * n_workers + second
    key = (own // K) * n_workers + other // K
    place = np.searchsorted(wanted, key)
    found = np.flatnonzero(place < n_pairs)
    found = found[wanted[place[found]] == key[found]]
    index = (place[found] * K + own[found] % K) * K + other[found] % K
    counts = np.bincount(index, weights=joint.data[found], minlength=n_pairs * K * K)
    return counts.reshape(n_pairs, K, K).astype(np.float64, copy=False)
