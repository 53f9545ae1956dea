r"""What the methods for sets share: the choice of classes, the rates and the worth of workers.

Row 0 of a table of rates is the sensitivity :math:`P(k \in Y \mid k \in z)` and row 1 the rate of
false alarms :math:`P(k \in Y \mid k \notin z)`, by worker and class. Nothing is larger than tasks ×
classes or workers × classes.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.aggregator import Aggregator
from wisecrowd.core.exceptions import ParameterError
from wisecrowd.core.messages.option_spelling import parameter
from wisecrowd.core.parameter_checks import Limits
from wisecrowd.core.problem import Problem
from wisecrowd.core.result import TIE
from wisecrowd.core.types import Floats, Mask
from wisecrowd.kinds.sets.answers import SetAnswers
from wisecrowd.kinds.sets.container import CrowdSets
from wisecrowd.kinds.sets.methods.label_rules import LabelRules
from wisecrowd.kinds.sets.truth import SetPrior

SetProblem = Problem[CrowdSets, SetPrior]
CARDINALITY = "cardinality"
LEAST_RATE = 1e-12  # of a worker
# Pseudo-counts of the rates of all workers and classes together: ticked, seen.
BASE = ((4.0, 5.0), (1.0, 5.0))


def check_threshold(value: Any) -> None:
    """Refuse a threshold that is neither a probability nor "cardinality"."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if value != CARDINALITY and not (number and 0 < value < 1):
        raise ParameterError(
            f"threshold is {value!r}; give a number between 0 and 1, or "
            f"{parameter('threshold', CARDINALITY)} for the expected number of classes."
        )


@dataclass(eq=False, repr=False, kw_only=True)
class SetMethod(Aggregator):
    """Base of the methods for sets; a method gives the probabilities of classes."""

    threshold: Any = 0.5

    takes: ClassVar[str] = "sets"

    limits: ClassVar[Limits] = {"threshold": check_threshold}

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


class RateCounts(NamedTuple):
    """Expected counts by worker and class.

    Attributes
    ----------
    ticked : (2, n_workers, n_classes)
        Weight of the sets with the class, on tasks that have the class and on those that do not.
    seen : (2, n_workers, n_classes)
        Weight of all sets on these tasks.
    """

    ticked: Floats
    seen: Floats

    def overall(self) -> Floats:
        """Return (2,) rates of all workers and classes together, with a few pseudo-counts."""
        ticked, seen = self.ticked.sum(axis=(1, 2)), self.seen.sum(axis=(1, 2))
        base = np.array(BASE)
        return np.asarray((ticked + base[:, 0]) / (seen + base[:, 1]))


@dataclass(frozen=True, eq=False)
class Ticks:
    """The sets as sparse tables."""

    data: CrowdSets

    @cached_property
    def _by_task(self) -> Any:
        """(n_tasks, n_workers) sparse weights of the sets."""
        from scipy.sparse import csr_array

        data = self.data
        return csr_array(
            (data.weights, data.worker.astype(np.int64), data.indptr),
            shape=(data.n_tasks, data.n_workers),
        )

    @cached_property
    def _by_worker(self) -> Any:
        return self._by_task.T.tocsr()

    @cached_property
    def _task(self) -> NDArray[np.int64]:
        return self.data.task[self.data.annotation].astype(np.int64)

    @cached_property
    def _worker(self) -> NDArray[np.int64]:
        return self.data.worker[self.data.annotation].astype(np.int64)

    @cached_property
    def _weight(self) -> Floats:
        return self.data.weights[self.data.annotation]

    def counts(self, probas: Floats) -> RateCounts:
        """Return the expected counts under (n_tasks, n_classes) probabilities."""
        data, K = self.data, self.data.n_classes
        cell, q = self._worker * K + data.members, probas[self._task, data.members]
        shape = data.n_workers, K
        ticked = [
            np.bincount(cell, self._weight * part, shape[0] * K).reshape(shape)
            for part in (q, 1 - q)
        ]
        seen = [np.asarray(self._by_worker @ part) for part in (probas, 1 - probas)]
        return RateCounts(np.minimum(ticked, seen), np.array(seen))

    def evidence(self, log_in: Floats, log_out: Floats) -> tuple[Floats, Floats]:
        """Return the log-likelihood of not having each class, and the gain of having it.

        Parameters
        ----------
        log_in, log_out : (2, n_workers, n_classes)
            Logarithms of the rates and of their complements.
        """
        absent, present = (self._summed(log_in[row], log_out[row]) for row in (1, 0))
        return absent, present - absent

    def _summed(self, log_in: Floats, log_out: Floats) -> Floats:
        data, K = self.data, self.data.n_classes
        more = (log_in - log_out)[self._worker, data.members]
        cells = np.bincount(self._task * K + data.members, self._weight * more, data.n_tasks * K)
        return np.asarray(self._by_task @ log_out) + cells.reshape(data.n_tasks, K)


def shrunk_rates(counts: RateCounts, pooled: Floats, strength: float) -> Floats:
    """Return (2, n_workers, n_classes) rates that are shrunk to (2, n_classes) pooled ones."""
    top = counts.ticked + strength * pooled[:, None]
    return np.asarray(np.clip(top / (counts.seen + strength), LEAST_RATE, 1 - LEAST_RATE))


def pooled_rates(counts: RateCounts, strength: float) -> Floats:
    """Return (2, n_classes) rates of each class, shrunk to those of all classes together."""
    overall = counts.overall()[:, None]
    return np.asarray(
        (counts.ticked.sum(axis=1) + strength * overall) / (counts.seen.sum(axis=1) + strength)
    )
