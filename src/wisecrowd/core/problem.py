"""Problem: everything that one fit or prediction reads."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.labels import CrowdLabels
from wisecrowd.core.task_prior import TaskPrior

Floats = NDArray[np.float64]


class Engine(Protocol):
    """Where the steps of an iteration run."""

    def cut(self, data: CrowdLabels, prior: TaskPrior, table_size: int) -> Any:
        """Return the data as shards; ``table_size`` numbers are the statistics of one shard."""


@dataclass(frozen=True, eq=False)
class Problem:
    """The annotations, what is known beforehand, and the means to work on them.

    Attributes
    ----------
    data : CrowdLabels
        The annotations; in a prediction those of the new tasks, in the fitted vocabularies.
    prior : TaskPrior
        Log-probabilities of the classes of each task: gold, class prior and classifier in one.
    engine : Engine
    start : (n_tasks, n_classes) probabilities or None
        The posterior to start from, where the user gave one.
    rng : numpy Generator
    """

    data: CrowdLabels
    prior: TaskPrior
    engine: Engine
    start: Floats | None = None
    rng: np.random.Generator = field(default_factory=np.random.default_rng)

    def cut(self, table_size: int) -> Any:
        """Return the annotations as shards of the engine."""
        return self.engine.cut(self.data, self.prior, table_size)
