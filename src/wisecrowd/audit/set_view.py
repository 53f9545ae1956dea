r"""Sets compared with those of the other workers on the same tasks.

With :math:`y_e` the ticks of an annotation, one per class, and :math:`o_e` the shares of the others
who tick each class of the task, the correlation of worker :math:`j` is

.. math::
    r_j = \frac{\sum_e (y_e - \bar y)^\top (o_e - \bar o)}
    {\sqrt{\sum_e |y_e - \bar y|^2 \sum_e |o_e - \bar o|^2}}

with means over the worker's annotations. If the sets were dealt to the tasks at random, its
variance would be known (that of a permutation), however classes depend on each other.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.sets import CrowdSets

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class SetView:
    """Sets and what the others say of the same tasks.

    Attributes
    ----------
    data : CrowdSets
    n : (n_workers,) int64
        Number of sets on tasks that others labelled too.
    correlation : (n_workers,)
        With the shares of the others' ticks; 0 if it is undefined.
    information : (n_workers,)
        Standard scores that a correlation of 1 would have; 0 if it is undefined.
    set_code : (n_annotations,) int64
        Equal for equal sets.
    """

    data: CrowdSets
    n: NDArray[np.int64]
    correlation: Floats
    information: Floats
    set_code: NDArray[np.int64]

    @cached_property
    def compared(self) -> Mask:
        """(n_annotations,): whether others labelled the task."""
        return self.data.labels_per_task[self.data.task] > 1


def set_view(data: CrowdSets, fit: Any = None) -> SetView:
    """Return the view of sets.

    Examples
    --------
    >>> sets = ["x", "x", "y", "y", "", "", "x|y", "x|y"]
    >>> data = CrowdSets.from_arrays([0, 0, 1, 1, 2, 2, 3, 3], list("abababab"), sets)
    >>> set_view(data).correlation
    array([1., 1.])
    """
    counts = np.zeros((data.n_tasks, data.n_classes))
    np.add.at(counts, (data.task[data.annotation], data.members), 1.0)
    per_task = data.labels_per_task
    J = data.n_workers
    n, correlation, information = np.zeros(J, np.int64), np.zeros(J), np.zeros(J)
    indptr, order = data.by_worker
    for j in range(J):
        rows = order[indptr[j] : indptr[j + 1]]
        rows = rows[per_task[data.task[rows]] > 1]
        n[j] = len(rows)
        if len(rows) > 1:
            ticks = _ticks(data, rows)
            task = data.task[rows]
            others = (counts[task] - ticks) / (per_task[task] - 1)[:, None]
            correlation[j], information[j] = _correlation(ticks, others)
    return SetView(data, n, correlation, information, set_codes(data))


def _ticks(data: CrowdSets, rows: NDArray[np.int64]) -> Floats:
    """Return the (n, n_classes) ticks of some annotations."""
    size = data.sizes[rows]
    begin = np.repeat(data.pointer[rows] - np.append(0, np.cumsum(size)[:-1]), size)
    found = np.zeros((len(rows), data.n_classes))
    found[np.repeat(np.arange(len(rows)), size), data.members[begin + np.arange(len(begin))]] = 1.0
    return found


def _correlation(first: Floats, second: Floats) -> tuple[float, float]:
    """Return the correlation of two tables, and its standard score per unit by permutation."""
    a, b = first - first.mean(axis=0), second - second.mean(axis=0)
    scale = float(np.sqrt((a * a).sum() * (b * b).sum()))
    # The squares of the products of all rows; the smaller of two equal sums of squares.
    cross = a @ b.T if len(a) < a.shape[1] else None
    spread = float((cross**2).sum()) if cross is not None else float(((a.T @ a) * (b.T @ b)).sum())
    if scale <= 1e-12 or spread <= 1e-12:
        return 0.0, 0.0
    return float((a * b).sum()) / scale, scale / np.sqrt(spread / (len(a) - 1))


def set_codes(data: CrowdSets) -> NDArray[np.int64]:
    """Return (n_annotations,) numbers that are equal for equal sets."""
    keys = np.random.default_rng(0).integers(0, 2**63, data.n_classes, dtype=np.uint64)
    total = np.concatenate([np.zeros(1, np.uint64), np.cumsum(keys[data.members])])
    return np.unique(total[data.pointer[1:]] - total[data.pointer[:-1]], return_inverse=True)[1]
