"""Drawing labels: one uniform number per annotation, in blocks that fit the cache."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from wisecrowd.simulate._checks import Codes, Floats

__all__ = ["ConfusionLaw", "CumulativeTable", "Draft", "LabelLaw"]

# Annotations handled at once: temporaries of a few MB, whatever the size of the crowd.
BLOCK = 1 << 18


class CumulativeTable:
    """Cumulative rows of confusion matrices, searched for many annotations at once.

    Parameters
    ----------
    rows : ndarray of shape (..., K)
        Non-negative; each row is brought to sum one.

    Examples
    --------
    >>> import numpy as np
    >>> table = CumulativeTable(np.array([[0.2, 0.0, 0.8], [1.0, 0.0, 0.0]]))
    >>> table.search(np.array([0, 0, 1]), np.array([0.1, 0.2, 0.999])).tolist()
    [0, 2, 0]
    """

    def __init__(self, rows: Floats) -> None:
        self.n_classes = rows.shape[-1]
        cumulative = np.cumsum(rows.reshape(-1, self.n_classes), axis=1)
        # Dividing by the total makes every entry from the last possible label on exactly one,
        # so that a label of probability zero is never drawn.
        cumulative /= cumulative[:, -1:]
        self._flat = cumulative.ravel()

    def search(self, row: npt.NDArray[np.int64], uniform: Floats) -> npt.NDArray[np.int64]:
        """Find the first label whose cumulative probability exceeds `uniform` < 1.

        A binary search over all annotations in step: O(log K) gathers, no (E, K) array.
        """
        start, last = row * self.n_classes, self.n_classes - 1
        label = np.zeros(row.size, dtype=np.int64)
        step = 1 << last.bit_length() >> 1
        while step:
            candidate = label + step
            below = self._flat[start + np.minimum(candidate, last + 1) - 1] <= uniform
            label[below] = candidate[below]
            step >>= 1
        return label


class LabelLaw(ABC):
    """The law of one label given worker, true class and task."""

    def __init__(self, confusion: Floats, truth: Codes) -> None:
        self.n_classes = confusion.shape[1]
        self.truth = truth

    @abstractmethod
    def pick(
        self, task: Codes, row: npt.NDArray[np.int64], uniform: Floats
    ) -> npt.NDArray[np.int64]:
        """Turn uniform numbers into labels; ``row`` is worker x n_classes + true class."""

    def draw(self, task: Codes, worker: Codes, rng: np.random.Generator) -> Codes:
        """Draw one label per annotation, shape (E,)."""
        label = np.empty(task.size, dtype=np.int32)
        for start in range(0, task.size, BLOCK):
            block = slice(start, start + BLOCK)
            row = worker[block].astype(np.int64) * self.n_classes + self.truth[task[block]]
            label[block] = self.pick(task[block], row, rng.random(row.size))
        return label


class ConfusionLaw(LabelLaw):
    r"""The plain law :math:`p(y_{ij} = l \mid z_i = k) = \theta_j[k, l]`."""

    def __init__(self, confusion: Floats, truth: Codes) -> None:
        super().__init__(confusion, truth)
        self._table = CumulativeTable(confusion)

    def pick(
        self, task: Codes, row: npt.NDArray[np.int64], uniform: Floats
    ) -> npt.NDArray[np.int64]:
        """Search the worker's cumulative row."""
        return self._table.search(row, uniform)


@dataclass
class Draft:
    """Everybody's labels before the populations that depend on others rewrite theirs.

    Attributes
    ----------
    task, worker, label : ndarray of shape (E,)
        Codes, sorted by (task, worker).
    truth : ndarray of shape (N,)
        True class of each task.
    confusion : ndarray of shape (J, K, K)
        Matrices, to be brought in line with what is rewritten.
    draws_alone : ndarray of bool, shape (J,)
        Workers whose labels are final already.
    law : LabelLaw
        How a label is drawn.
    """

    task: Codes
    worker: Codes
    label: Codes
    truth: Codes
    confusion: Floats
    draws_alone: npt.NDArray[np.bool_]
    law: LabelLaw

    def rows_of(self, members: Codes) -> npt.NDArray[np.intp]:
        """Positions of the members' annotations."""
        is_member = np.zeros(self.draws_alone.size, dtype=bool)
        is_member[members] = True
        return np.flatnonzero(is_member[self.worker])

    def opinion(self, task: Codes, worker: Codes, rng: np.random.Generator) -> Codes:
        """Labels that these workers gave to these tasks, or would give when they did not.

        What a worker would say is drawn once per (task, worker), so that all who ask hear the
        same.
        """
        n_workers = self.draws_alone.size
        wanted, inverse = np.unique(task.astype(np.int64) * n_workers + worker, return_inverse=True)
        place = np.minimum(np.searchsorted(self._keys, wanted), self._keys.size - 1)
        said = self.label[place]
        silent = self._keys[place] != wanted
        said[silent] = self.law.draw(
            (wanted[silent] // n_workers).astype(np.int32),
            (wanted[silent] % n_workers).astype(np.int32),
            rng,
        )
        return said[inverse]

    @cached_property
    def _keys(self) -> npt.NDArray[np.int64]:
        return self.task.astype(np.int64) * self.draws_alone.size + self.worker
