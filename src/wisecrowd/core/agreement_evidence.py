r"""What the labels of a crowd say about agreement: coefficients, and what each label adds to them.

A kind of label gives its coefficients as an :class:`AgreementEvidence`, from which
:mod:`wisecrowd.truth` makes intervals. How a coefficient depends on tasks and workers is a
first-order expansion. :math:`\tau_e` and :math:`\omega_e` are the parts of label e, so that
:math:`\sum_{e \in i} \tau_e` is the effect of task i, and :math:`\sum_{e \in j} \omega_e` that of
worker j. A pair of labels of one task belongs to one task but to two workers, so its effect is
shared by the two labels in :math:`\tau`, and is in full with each of them in :math:`\omega`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, TypeVar

import numpy as np

from wisecrowd.core.annotations import Annotations
from wisecrowd.core.types import Floats, Ints, Longs, Mask

Data = TypeVar("Data", bound=Annotations)


class Measured(NamedTuple):
    """A coefficient.

    Attributes
    ----------
    value : float
        NaN if it is undefined.
    of_task, of_worker : (n_labels,)
        Effects of the labels, to be summed by task and by worker.
    least : float
        The lowest value that the coefficient can have.
    """

    value: float
    of_task: Floats
    of_worker: Floats
    least: float = -1.0


def undefined(n_labels: int, least: float = -1.0) -> Measured:
    """Return a coefficient without a value."""
    nothing = np.full(n_labels, np.nan)
    return Measured(float("nan"), nothing, nothing, least)


def sums_of(group: Ints, values: Floats | Longs | Mask, n: int) -> Floats:
    """Return the sums of values by group (n,).

    Examples
    --------
    >>> sums_of(np.array([0, 2, 2]), np.array([1.0, 2.0, 3.0]), 3).tolist()
    [1.0, 0.0, 5.0]
    """
    return np.asarray(np.bincount(group, values, n), dtype=np.float64)


def ratio_of_pairs(top: Floats, bottom: Floats, least: float = 0.0) -> Measured:
    r"""Return the ratio of two sums over all pairs of labels of the same task.

    .. math:: \sum_{e < e'} a_{ee'} / \sum_{e < e'} b_{ee'}

    For F1, a is twice the number of common parts and b the number of parts of both labels.

    Parameters
    ----------
    top, bottom : (n_labels,)
        Sums of a and of b over the pairs that a label is in.
    least : float

    Examples
    --------
    >>> ratio_of_pairs(np.array([2.0, 2.0, 0.0, 0.0]), np.full(4, 2.0)).value
    0.5
    """
    whole = float(bottom.sum()) / 2
    if not whole > 0:
        return undefined(len(top), least)
    value = float(top.sum()) / 2 / whole
    effect = (top - value * bottom) / whole
    return Measured(value, effect / 2, effect, least)


@dataclass(frozen=True, eq=False, kw_only=True)
class AgreementEvidence:
    """The labels of a crowd and their coefficients of agreement.

    Attributes
    ----------
    task, worker : (n_labels,)
        Codes, by task. No worker has two labels of a task.
    coefficients : mapping of name to Measured
    """

    task: Ints
    worker: Ints
    coefficients: Mapping[str, Measured]

    @cached_property
    def shared(self) -> Mask:
        """(n_labels,) labels of tasks that have two or more."""
        return np.asarray(np.bincount(self.task, minlength=1)[self.task] >= 2)

    @cached_property
    def per_worker(self) -> Longs:
        """(n_workers,) number of such labels, of the workers who have any."""
        count = np.bincount(self.worker[self.shared])
        return count[count > 0]

    @property
    def n_workers(self) -> int:
        """Number of workers with labels of tasks that have two or more."""
        return len(self.per_worker)

    @cached_property
    def n_tasks(self) -> int:
        """Number of tasks with two labels or more."""
        return int((np.bincount(self.task) >= 2).sum())

    @property
    def n_pairs(self) -> int:
        """Number of pairs of labels of the same task."""
        size = np.bincount(self.task)
        return int((size * (size - 1) // 2).sum())


def labels_that_count(data: Data) -> Data:
    """Return the labels of positive weight; of several of a worker for a task one counts.

    Examples
    --------
    >>> from wisecrowd import CrowdNumbers
    >>> data = CrowdNumbers.from_arrays(["t"] * 3, ["a", "a", "b"], [1, 2, 3], duplicates="keep")
    >>> labels_that_count(data).value.tolist()
    [2.0, 3.0]
    """
    keep = np.ones(data.n_annotations, dtype=bool)
    if data.weight is not None:
        keep &= data.weight > 0
    rows = np.flatnonzero(keep)
    same = (np.diff(data.task[rows]) == 0) & (np.diff(data.worker[rows]) == 0)
    keep[rows[:-1][same]] = False
    return data if keep.all() else data.select_annotations(keep)
