"""Labels in the making: drawn, then rewritten by the populations that depend on others."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from wisecrowd.inference.label_law import LabelSampler
from wisecrowd.simulate._checks import Codes, Floats


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
    law : LabelSampler
        How a label is drawn.
    """

    task: Codes
    worker: Codes
    label: Codes
    truth: Codes
    confusion: Floats
    draws_alone: npt.NDArray[np.bool_]
    law: LabelSampler

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
        task, worker = (part.astype(np.int32) for part in np.divmod(wanted[silent], n_workers))
        said[silent] = self.law.draw(self.truth[task], worker, task, rng)
        return said[inverse]

    @cached_property
    def _keys(self) -> npt.NDArray[np.int64]:
        return self.task.astype(np.int64) * self.draws_alone.size + self.worker
