"""SetMethod: base of the methods for sets, with the choice of classes and what workers are worth."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.aggregator import Aggregator
from wisecrowd.core.exceptions import ParameterError
from wisecrowd.core.messages.option_spelling import parameter
from wisecrowd.core.problem import Problem
from wisecrowd.core.result import TIE
from wisecrowd.core.set_answers import SetAnswers
from wisecrowd.core.set_truth import SetPrior
from wisecrowd.core.sets import CrowdSets
from wisecrowd.families.label_rules import LabelRules
from wisecrowd.inference.set_rates import Ticks

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]
SetProblem = Problem[CrowdSets, SetPrior]
CARDINALITY = "cardinality"


@dataclass(eq=False, repr=False, kw_only=True)
class SetMethod(Aggregator):
    """Base of the methods for sets; a method gives the probabilities of classes."""

    threshold: Any = 0.5

    takes: ClassVar[str] = "sets"

    def _validate_parameters(self) -> None:
        super()._validate_parameters()
        value = self.threshold
        number = isinstance(value, int | float) and not isinstance(value, bool)
        if value != CARDINALITY and not (number and 0 < value < 1):
            raise ParameterError(
                f"threshold is {value!r}; give a number between 0 and 1, or "
                f"{parameter('threshold', CARDINALITY)} for the expected number of classes."
            )

    def _answers(self, probas: Floats, rules: LabelRules | None = None) -> SetAnswers:
        """Return the sets that follow from probabilities of classes."""
        chosen = chosen_classes(probas, self.threshold)
        return SetAnswers(probas, chosen if rules is None else rules.allowed(chosen, probas))


def chosen_classes(probas: Floats, threshold: Any) -> Mask:
    """Return the classes of each task: those at least as probable as the threshold.

    With "cardinality" each task has as many of its most probable classes as it is expected to have.

    Examples
    --------
    >>> chosen_classes(np.array([[0.6, 0.3, 0.3]]), 0.5).tolist()
    [[True, False, False]]
    >>> chosen_classes(np.array([[0.6, 0.4, 0.3]]), "cardinality").tolist()
    [[True, False, False]]
    """
    if threshold != CARDINALITY:
        return np.asarray(probas >= threshold - TIE)
    number = np.floor(probas.sum(axis=1) + 0.5 + TIE).astype(np.int64)
    order = np.argsort(-np.round(probas, 9), axis=1, kind="stable")
    rank = np.argsort(order, axis=1, kind="stable")
    return np.asarray(rank < number[:, None])


class WorkerSets(NamedTuple):
    """What each worker is worth against the answers, all (n_workers,).

    Attributes
    ----------
    accuracy, error
        Expected share of right decisions about single classes, and its standard error.
    sensitivity, false_alarm
        Shares of the classes that are there and that are not, which the worker ticks.
    size, crowd_size
        Mean number of classes in the worker's sets, and in those of others on the same tasks.
    """

    accuracy: Floats
    error: Floats
    sensitivity: Floats
    false_alarm: Floats
    size: Floats
    crowd_size: Floats

    @classmethod
    def of(cls, data: CrowdSets, probas: Floats) -> WorkerSets:
        """Compare the workers' sets with the probabilities of classes."""
        counts = Ticks(data).counts(probas)
        ticked, seen = counts.ticked.sum(axis=2), counts.seen.sum(axis=2)
        right, total = ticked[0] + seen[1] - ticked[1], seen.sum(axis=0)
        accuracy = np.where(total > 0, right / np.maximum(total, 1e-300), 0.5)
        number = np.bincount(data.worker, data.weights, data.n_workers)
        # Decisions in one set depend on each other, so that a set counts once.
        spread = np.maximum(accuracy * (1 - accuracy), 1 / (number + 4))
        overall = counts.overall()[:, None]
        rates = (ticked + overall) / (seen + 1)
        return cls(
            np.clip(accuracy, 0.0, 1.0), np.sqrt(np.minimum(spread / (number + 1), 0.25)),
            np.clip(rates[0], 0.0, 1.0), np.clip(rates[1], 0.0, 1.0), *set_sizes(data),
        )  # fmt: skip

    def published(self) -> dict[str, Any]:
        """Return the attributes besides the accuracy."""
        return {
            "worker_sensitivity": self.sensitivity, "worker_false_alarm": self.false_alarm,
            "set_size": self.size, "crowd_set_size": self.crowd_size,
        }  # fmt: skip


def set_sizes(data: CrowdSets) -> tuple[Floats, Floats]:
    """Return the mean size of each worker's sets, and of others' sets on the same tasks."""
    weight, size = data.weights, data.weights * data.sizes
    key = data.task.astype(np.int64) * data.n_workers + data.worker
    pair, place = np.unique(key, return_inverse=True)
    own, own_size = np.bincount(place, weight), np.bincount(place, size)
    task, worker = pair // data.n_workers, pair % data.n_workers
    others = data.total_weight[task] - own
    total_size = np.bincount(data.task, size, data.n_tasks)
    seen = others > 1e-9
    mean = (total_size[task] - own_size)[seen] / others[seen]
    count = np.bincount(worker[seen], own[seen], data.n_workers)
    crowd = np.bincount(worker[seen], own[seen] * mean, data.n_workers)
    every = size.sum() / max(float(weight.sum()), 1e-300)
    number = np.bincount(data.worker, weight, data.n_workers)
    mine = np.bincount(data.worker, size, data.n_workers)
    return (
        np.where(number > 0, mine / np.maximum(number, 1e-300), every),
        np.maximum(np.where(count > 0, crowd / np.maximum(count, 1e-300), every), 0.0),
    )
