"""Problem: the complete input of one fit or prediction."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

import numpy as np

from wisecrowd.core.types import Floats

if TYPE_CHECKING:
    from typing_extensions import TypeVar as TypeVarWithDefault

    from wisecrowd.kinds.classes.container import CrowdLabels
    from wisecrowd.kinds.classes.prior import TaskPrior

    # ``Problem`` without a parameter is one of classes.
    Data = TypeVarWithDefault("Data", default=CrowdLabels)
    Prior = TypeVarWithDefault("Prior", default=TaskPrior)
else:
    Data, Prior = TypeVar("Data"), TypeVar("Prior")


class Engine(Protocol):
    """Protocol of the object that runs the steps of an iteration."""

    def cut(self, data: Any, prior: Any, table_size: int) -> Any:
        """Return the data as shards; ``table_size`` is the size of the statistics of one shard."""


@dataclass(frozen=True, eq=False)
class Problem(Generic[Data, Prior]):
    """Annotations, prior, start, engine and random numbers of one fit or prediction.

    Attributes
    ----------
    data : CrowdLabels, or the container of another kind
        The annotations; in a prediction those of the new tasks, in the fitted vocabularies.
    prior : TaskPrior, or that of another kind
        Log-probabilities of the classes of each task: gold, class prior and classifier in one.
    engine : Engine
    start : (n_tasks, n_classes) probabilities or None
        The posterior to start from, if the user gave one.
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
