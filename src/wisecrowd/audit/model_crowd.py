"""Crowds of language models only, whose errors depend on each other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from wisecrowd.audit.part import Part
from wisecrowd.core.findings import Finding
from wisecrowd.core.labels import CrowdLabels
from wisecrowd.core.messages.descriptions import describe_ids
from wisecrowd.core.messages.option_spelling import for_reader
from wisecrowd.core.model_workers import only_models


@dataclass(frozen=True, eq=False)
class ModelCrowd(Part):
    """Whether all workers are language models.

    Attributes
    ----------
    workers : (n_workers,) ids
    only_models : bool
    has_gold : bool
        Whether known classes were given, which measure what the labels are worth.
    """

    workers: NDArray[Any]
    only_models: bool
    has_gold: bool

    def findings(self) -> list[Finding]:
        """Return what a crowd of models means, unless classes are known."""
        if not self.only_models or self.has_gold:
            return []
        return [
            Finding(
                "model-workers", "medium", 1.0, tuple(self.workers.tolist()),
                f"All {len(self.workers)} workers are language models "
                f"({describe_ids(self.workers)}), whose errors depend on each other: in published "
                "sets six of them counted as 1.6 to 3 independent workers. In six published sets "
                "labelled by language models only, the share right was 6 to 44 points lower than "
                "the confidence.",
                "Let a person answer about 60 tasks, and give these answers: "
                + for_reader("gold=.", "--gold GOLD.csv."),
            )
        ]  # fmt: skip


def find_model_crowd(labels: CrowdLabels, *, gold: Any = None) -> ModelCrowd:
    """Find out whether all workers are language models, by their kind or their names.

    Parameters
    ----------
    labels : CrowdLabels
    gold : known classes, optional
        With them, nothing is to be said.

    Examples
    --------
    >>> labels = CrowdLabels.from_arrays([1, 1, 2, 2], ["gpt-4o", "llama-3"] * 2, list("abab"))
    >>> [found.id for found in find_model_crowd(labels).findings()]
    ['model-workers']
    """
    return ModelCrowd(labels.workers, only_models(labels), gold is not None)
