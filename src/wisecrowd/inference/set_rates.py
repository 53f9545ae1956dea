r"""Rates of workers who tick classes: expected counts, and the evidence of their sets.

Row 0 of a table of rates is the sensitivity :math:`P(k \in Y \mid k \in z)` and row 1 the rate of
false alarms :math:`P(k \in Y \mid k \notin z)`, by worker and class. Nothing is larger than tasks ×
classes or workers × classes.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.sets import CrowdSets

Floats = NDArray[np.float64]
LEAST = 1e-12
# Pseudo-counts of the rates of all workers and classes together: ticked, seen.
BASE = ((4.0, 5.0), (1.0, 5.0))


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
    return np.asarray(np.clip(top / (counts.seen + strength), LEAST, 1 - LEAST))


def pooled_rates(counts: RateCounts, strength: float) -> Floats:
    """Return (2, n_classes) rates of each class, shrunk to those of all classes together."""
    overall = counts.overall()[:, None]
    return np.asarray(
        (counts.ticked.sum(axis=1) + strength * overall) / (counts.seen.sum(axis=1) + strength)
    )
