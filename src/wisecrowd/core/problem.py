"""Problem: everything that one fit or prediction reads."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.labels import CrowdLabels
from wisecrowd.core.task_prior import TaskPrior

if TYPE_CHECKING:
    from typing_extensions import TypeVar as TypeVarWithDefault

    # A plain ``Problem`` is one of classes.
    Data = TypeVarWithDefault("Data", default=CrowdLabels)
    Prior = TypeVarWithDefault("Prior", default=TaskPrior)
else:
    Data, Prior = TypeVar("Data"), TypeVar("Prior")

Floats = NDArray[np.float64]


class Engine(Protocol):
    """Where the steps of an iteration run."""

    def cut(self, data: Any, prior: Any, table_size: int) -> Any:
        """Return the data as shards; ``table_size`` numbers are the statistics of one shard."""


@dataclass(frozen=True, eq=False)
class Problem(Generic[Data, Prior]):
    """The annotations, what is known beforehand, and the means to work on them.

    Attributes
    ----------
    data : CrowdLabels, or the container of another kind
        The annotations; in a prediction those of the new tasks, in the fitted vocabularies.
    prior : TaskPrior, or that of another kind
        Log-probabilities of the classes of each task: gold, class prior and classifier in one.
    engine : Engine
    start : (n_tasks, n_classes) probabilities or None
        The posterior to start from, where the user gave one.
    rng : numpy Generator
    """

    data: Data
    prior: Prior
    engine: Engine
    start: Floats | None = None
    rng: np.random.Generator = field(default_factory=np.random.default_rng)

    def cut(self, table_size: int) -> Any:
        """Return the annotations as shards of the engine."""
        return self.engine.cut(self.data, self.prior, table_size)
