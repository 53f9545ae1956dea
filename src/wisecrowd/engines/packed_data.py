"""What packs of every kind have in common as the data of a problem."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.engines.answer_parts import AnswerParts
from wisecrowd.engines.packs import Pack


@dataclass(frozen=True, eq=False)
class PackedData:
    """A pack as the data of a problem: sizes and sums, but no annotations.

    Attributes
    ----------
    pack : Pack
    parts : AnswerParts
        Where the answers go.
    """

    pack: Pack
    parts: AnswerParts

    @property
    def n_tasks(self) -> int:
        """Number of tasks."""
        return self.pack.summary.n_tasks

    @property
    def n_workers(self) -> int:
        """Number of workers."""
        return self.pack.summary.n_workers

    @property
    def n_annotations(self) -> int:
        """Number of annotations."""
        return self.pack.summary.n_annotations

    @property
    def workers(self) -> NDArray[Any]:
        """(n_workers,) ids."""
        return self.pack.workers

    @property
    def worker_totals(self) -> NDArray[np.float64]:
        """(n_workers,) total weight of each worker's annotations."""
        return np.array(self.pack.worker_totals)
