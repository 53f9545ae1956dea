"""SetAnswers: the set of classes of every task, and the probability of every class."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.answers import Answers, Columns, Learned, capped_shares
from wisecrowd.core.saved_attributes import Saved, SavedArray
from wisecrowd.core.types import Floats, Mask
from wisecrowd.kinds.classes.answers import agreement_columns
from wisecrowd.kinds.sets.metrics import set_scores
from wisecrowd.kinds.sets.set_text import joined_sets
from wisecrowd.kinds.sets.truth import known_sets


@dataclass(frozen=True, eq=False)
class SetAnswers(Answers):
    """One set of classes per task, and the probability that each class is in it.

    Attributes
    ----------
    probas : (n_tasks, n_classes) float64
        Probability of every class; rows do not sum to one.
    chosen : (n_tasks, n_classes) bool
        The classes of each task.
    """

    probas: Floats
    chosen: Mask

    saves: ClassVar[Mapping[str, Saved]] = {
        "probas_": SavedArray("N K", "probability"),
        "members_": SavedArray("N K", "flag"),
        "labels_": SavedArray("N", "label"),
        "worker_accuracy_": SavedArray("J", "probability"),
        "worker_accuracy_error_": SavedArray("J", "amount"),
        "worker_sensitivity_": SavedArray("J", "probability"),
        "worker_false_alarm_": SavedArray("J", "probability"),
        "set_size_": SavedArray("J", "amount"),
        "crowd_set_size_": SavedArray("J", "amount"),
    }

    @classmethod
    def of_fit(cls, learned: Learned, rows: NDArray[np.integer[Any]]) -> Self:
        """Return the answers that a fit has published, for some of its tasks."""
        return cls(learned["probas_"][rows], learned["members_"][rows])

    def capped(self, most: float) -> Self:
        """Return the answers with probabilities between ``1 - most`` and ``most``."""
        return replace(self, probas=capped_shares(self.probas, most))

    def attributes(self, known: Learned) -> dict[str, Any]:
        """Return probabilities, chosen classes, and the sets as text."""
        _, members = np.nonzero(self.chosen)
        pointer = np.append(0, np.cumsum(self.chosen.sum(axis=1)))
        return {
            "probas_": self.probas,
            "members_": self.chosen,
            "labels_": joined_sets(members, pointer, known["classes_"]),
        }

    def score(self, truth: Any, data: Any, known: Learned) -> float:
        """Return micro F1 of the classes, on the tasks with a truth."""
        return set_scores(known_sets(truth, data), self.chosen)["micro_f1"]

    @classmethod
    def main_columns(cls, learned: Learned) -> Columns:
        """Return one row per task: its id, its set, and the probability of every class."""
        return {
            "task": learned["tasks_"], "labels": learned["labels_"], **cls.soft_columns(learned),
        }  # fmt: skip

    @classmethod
    def task_columns(cls, learned: Learned) -> Columns:
        """Return the set of each task, and the number of its classes."""
        return {"labels": learned["labels_"], "set_size": learned["members_"].sum(axis=1)}

    @classmethod
    def soft_columns(cls, learned: Learned) -> Columns:
        """Return the probability of every class, as ``p_CLASS``."""
        names = learned["classes_"].tolist()
        return {f"p_{name}": learned["probas_"][:, k] for k, name in enumerate(names)}

    @classmethod
    def worker_columns(cls, learned: Learned) -> Columns:
        """Return agreement, sensitivity, false alarms, and set sizes beside the crowd's."""
        return {
            **agreement_columns(learned),
            "sensitivity": learned["worker_sensitivity_"],
            "false_alarms": learned["worker_false_alarm_"],
            "set_size": learned["set_size_"],
            "crowd_set_size": learned["crowd_set_size_"],
        }

    @classmethod
    def counts(cls, learned: Learned) -> dict[str, int]:
        """Return the number of classes in all sets."""
        return {"members": int(learned["members_"].sum())}
