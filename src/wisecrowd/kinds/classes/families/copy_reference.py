r"""What the rest of a crowd says of each task: the reference that suspected copies are tested with.

Each task has a class k and a difficulty d. A worker's label follows the worker's confusion matrix,
or, on a difficult task, the label shares m of the crowd:

.. math:: P(y_{ij} = l \mid k, d) = (1 - \delta_d)\, \theta_{jkl} + \delta_d\, m_l

Difficulty makes independent workers err on the same tasks, so it must not look like copying. A
suspected group has one vote per task. Its members' confusion matrices are estimated without the
votes of the whole group: otherwise copies would confirm each other's skill.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from wisecrowd.core.memory_check import require_memory
from wisecrowd.core.types import Codes, Floats, Longs
from wisecrowd.kinds.classes.container import CrowdLabels
from wisecrowd.kinds.classes.families.moments.pair_moments import counted_annotations

DIFFICULTIES = (0.0, 0.3, 0.6, 0.9)  # δ: share of labels that do not depend on the class
FEW_DIFFICULTIES = (0.0, 0.5)  # with many classes
MANY_CLASSES = 12
STRENGTH = 4.0  # pseudo-counts of a confusion row, and of a worker's accuracy
FIRST_ACCURACY = (7.0, 3.0)  # pseudo-counts of right and wrong labels of the crowd
LEAST_RATE = 1e-4
MAX_ITER, FEW_ITER = 30, 8  # the latter for large crowds, where later iterations change little
LARGE = 4_000_000  # labels times states
TOLERANCE = 0.005  # largest change of a confusion rate


class Annotations(NamedTuple):
    """Annotations of nonzero weight by (task, worker), and the unit of each.

    A unit is the labels of a worker, or of a suspected group, on one task. Equal labels of a worker
    for a task are one annotation of their total weight, so that repeated labels are left out
    together, like a label of the same weight.
    """

    task: Longs
    worker: Longs
    label: Longs
    weight: Floats
    unit: Longs
    unit_task: Longs  # (n_units,)
    n_tasks: int
    n_workers: int
    n_classes: int

    @classmethod
    def of(cls, labels: CrowdLabels, groups: Codes) -> Annotations:
        """Collect the annotations; ``groups`` (n_workers,) has -1 for workers without suspicion."""
        task, worker, label, weight = _merged(labels)
        n_groups = int(groups.max(initial=-1)) + 1
        voter = np.where(groups[worker] >= 0, groups[worker], n_groups + worker)
        n_voters = n_groups + labels.n_workers
        keys, unit = np.unique(task * n_voters + voter, return_inverse=True)
        return cls(
            task, worker, label, weight, unit.ravel(), keys // n_voters,
            labels.n_tasks, labels.n_workers, labels.n_classes,
        )  # fmt: skip

    @property
    def cell(self) -> Longs:
        """(n,): position of (worker, label) in a table of all workers and labels."""
        return self.worker * self.n_classes + self.label

    @property
    def share(self) -> Floats:
        """(n,): weight of each label if its unit is to count as one worker."""
        pair = self.unit * self.n_workers + self.worker
        n_workers = np.bincount(np.unique(pair) // self.n_workers)
        return np.asarray(self.weight / n_workers[self.unit])


def _merged(labels: CrowdLabels) -> tuple[Longs, Longs, Longs, Floats]:
    """Return task, worker, label and weight of the distinct annotations of nonzero weight."""
    task, worker, label, weight = counted_annotations(labels)
    task, worker, label = (column.astype(np.int64) for column in (task, worker, label))
    if not ((task[1:] == task[:-1]) & (worker[1:] == worker[:-1])).any():
        return task, worker, label, weight
    J, K = labels.n_workers, labels.n_classes
    keys, inverse = np.unique((task * J + worker) * K + label, return_inverse=True)
    total = np.bincount(inverse.ravel(), weight).astype(np.float64)
    return keys // (J * K), keys // K % J, keys % K, total


@dataclass(frozen=True, eq=False)
class Reference:
    """Posteriors of the tasks and laws of the workers; states are pairs of class and difficulty.

    Attributes
    ----------
    annotations : Annotations
    delta : (D,)
    label_share : (K,)
        m, the law of labels that do not depend on the class.
    log_posterior : (n_tasks, K · D)
        Unnormalised; the sum of the prior and the units of the task.
    log_unit : (n_units, K · D)
        Contribution of each unit.
    confusion : (n_workers, K, K)
        θ.
    competence : float
        How much better than the label shares the workers without suspicion predict each other's
        labels, in standard errors. If they do not, they cannot tell copies from experts.
    """

    annotations: Annotations
    delta: Floats
    label_share: Floats
    log_posterior: Floats
    log_unit: Floats
    confusion: Floats
    competence: float

    @property
    def law(self) -> Floats:
        """(n_workers, K · D, K): distribution of a worker's label in each state."""
        J, K, _ = self.confusion.shape
        return mixed_law(self.confusion, self.delta, self.label_share).reshape(J, -1, K)

    def without(self, first: Longs, second: Longs) -> Floats:
        """Return the posteriors (n, K · D) without the units of two annotations of one task."""
        unit = self.annotations.unit
        rest = self.log_posterior[self.annotations.task[first]] - self.log_unit[unit[first]]
        apart = np.flatnonzero(unit[first] != unit[second])
        rest[apart] -= self.log_unit[unit[second[apart]]]
        return softmax(rest)

    def log_predictions(self) -> Floats:
        """Return the log-probability (n,) of each label given all units of its task but its own."""
        data = self.annotations
        rest = softmax(self.log_posterior[data.unit_task] - self.log_unit)[data.unit]
        return np.asarray(np.log((rest * self.law[data.worker, :, data.label]).sum(axis=1)))


def reference(labels: CrowdLabels, groups: Codes) -> Reference:
    """Fit the model of the module docstring by expectation maximisation.

    Parameters
    ----------
    labels : CrowdLabels
    groups : (n_workers,)
        Suspected group of each worker, -1 for none.
    """
    data, K = Annotations.of(labels, groups), labels.n_classes
    delta = np.array(DIFFICULTIES if K <= MANY_CLASSES else FEW_DIFFICULTIES)
    n_states = K * len(delta)
    require_memory(
        8 * n_states * (4 * len(data.task) + 2 * data.n_tasks),
        f"Comparing workers on {len(data.task)} labels of {K} classes",
        "give the groups, or audit without the parts 'clones', 'collusion' and 'groups'",
    )
    share: Floats = np.bincount(data.label, data.weight, K) + np.ones(K)
    share /= share.sum()
    sums = _Sums(data)
    own = sums.first_counts()  # (n, K)
    log_class, log_difficulty = np.log(share), np.full(len(delta), -np.log(len(delta)))
    moved = np.inf
    for _ in range(MAX_ITER if len(data.task) * n_states <= LARGE else FEW_ITER):
        counts = sums.by_worker(own)
        rate = rates_without_own(counts, own, data)
        likelihood = rate[:, :, None] * (1 - delta) + share[data.label][:, None, None] * delta
        log_likelihood = np.log(likelihood).reshape(-1, n_states)  # (n, K · D)
        log_unit = sums.by_unit(log_likelihood)
        prior = (log_class[:, None] + log_difficulty).ravel()
        log_posterior = sums.by_task(log_unit) + prior
        if moved < TOLERANCE:
            break
        given = softmax((log_posterior[data.unit_task] - log_unit)[data.unit] + log_likelihood)
        before, own = own, (given.reshape(likelihood.shape) / likelihood) @ (1 - delta) * rate
        moved = float(np.abs(own - before).max())
        mass = softmax(log_posterior[sums.labelled]).reshape(-1, K, len(delta)).sum(axis=0) + 1.0
        log_class = np.log(mass.sum(axis=1) / mass.sum())
        log_difficulty = np.log(mass.sum(axis=0) / mass.sum())
    found = Reference(data, delta, share, log_posterior, log_unit, shrunk_confusion(counts), 0.0)
    return replace(found, competence=_competence(found, prior, groups, sums))


def _competence(ref: Reference, prior: Floats, groups: Codes, sums: _Sums) -> float:
    data = ref.annotations
    alone = np.flatnonzero(groups[data.worker] < 0)
    trusted = np.zeros(len(data.unit_task))
    trusted[data.unit[alone]] = 1.0
    rest = sums.by_task(ref.log_unit * trusted[:, None])[data.task[alone]] + prior
    rest = softmax(rest - ref.log_unit[data.unit[alone]])
    label = data.label[alone]
    chance = (rest * ref.law[data.worker[alone], :, label]).sum(axis=1)
    gain = data.weight[alone] * np.log(chance / ref.label_share[label])
    by_task = np.bincount(data.task[alone], gain, data.n_tasks)
    return float(by_task.sum() / max(float(np.sqrt((by_task**2).sum())), 1e-300))


def mixed_law(confusion: Floats, delta: Floats, label_share: Floats) -> Floats:
    """Return P(label | class, difficulty) (J, K, D, L)."""
    easy = (1 - delta)[:, None] * confusion[:, :, None, :]
    return np.asarray(easy + delta[:, None] * label_share)


def rates_without_own(counts: Floats, own: Floats, data: Annotations) -> Floats:
    """Return the rate (n, K) of each label given the class, estimated without the label itself.

    Otherwise labels would confirm the skill of those who gave them, and a few labels per task by
    workers who know nothing would look like knowledge.
    """
    K = data.n_classes
    own = own * data.weight[:, None]
    is_label = np.arange(K) == data.label[:, None]  # (n, K)
    right = np.einsum("jkk->j", counts)[data.worker] - own[is_label]
    total = counts.sum(axis=(1, 2))[data.worker] - own.sum(axis=1)
    usual, errors = _population(counts)
    accuracy = ((right + STRENGTH * usual) / (total + STRENGTH))[:, None]
    typical = np.where(is_label, accuracy, (1 - accuracy) * errors[:, data.label].T)
    of_label = np.maximum(counts[data.worker, :, data.label] - own, 0.0)
    of_class = np.maximum(counts.sum(axis=2)[data.worker] - own, 0.0)
    rate = (of_label + STRENGTH * typical) / (of_class + STRENGTH)
    return np.asarray(np.clip(rate, LEAST_RATE, 1.0))


def shrunk_confusion(counts: Floats) -> Floats:
    """Return confusion matrices (J, K, K): rows shrunk to one accuracy and the crowd's errors."""
    usual, errors = _population(counts)
    right, total = np.einsum("jkk->j", counts), counts.sum(axis=(1, 2))
    accuracy = ((right + STRENGTH * usual) / (total + STRENGTH))[:, None, None]
    typical = accuracy * np.eye(counts.shape[1]) + (1 - accuracy) * errors
    rows = (counts + STRENGTH * typical) / (counts.sum(axis=2, keepdims=True) + STRENGTH)
    rows = np.maximum(rows, LEAST_RATE)
    return np.asarray(rows / rows.sum(axis=2, keepdims=True))


def _population(counts: Floats) -> tuple[float, Floats]:
    """Return the accuracy of the crowd, and the shares (K, K) of the labels among its errors."""
    plus, minus = FIRST_ACCURACY
    usual = (np.einsum("jkk->", counts) + plus) / (counts.sum() + plus + minus)
    errors = (counts.sum(axis=0) + 1.0) * (1 - np.eye(counts.shape[1]))
    return float(usual), errors / np.maximum(errors.sum(axis=1, keepdims=True), LEAST_RATE)


def softmax(logs: Floats) -> Floats:
    """Normalise rows of log-probabilities."""
    logs = logs - logs.max(axis=1, keepdims=True)
    np.exp(logs, out=logs)
    logs /= logs.sum(axis=1, keepdims=True)
    return logs


class _Sums:
    """Sums of rows of the annotations by unit, task and worker."""

    def __init__(self, data: Annotations) -> None:
        from scipy.sparse import csr_array

        n, row = len(data.task), np.arange(len(data.task))
        n_units = len(data.unit_task)
        self._data = data
        self._shape = (data.n_workers, data.n_classes, data.n_classes)
        n_cells = data.n_workers * data.n_classes
        self._unit: Any = csr_array((data.share, (data.unit, row)), shape=(n_units, n))
        place = (data.unit_task, np.arange(n_units))
        self._task: Any = csr_array((np.ones(n_units), place), shape=(data.n_tasks, n_units))
        self._cell: Any = csr_array((data.weight, (data.cell, row)), shape=(n_cells, n))
        self.labelled = np.unique(data.unit_task)

    def by_unit(self, values: Floats) -> Floats:
        """Return weighted means within units of several workers, else weighted sums."""
        return np.asarray(self._unit @ values)

    def by_task(self, of_units: Floats) -> Floats:
        return np.asarray(self._task @ of_units)

    def by_worker(self, values: Floats) -> Floats:
        """Return sums (J, K, L) of values (n, K) by worker and label."""
        J, K, L = self._shape
        return np.asarray((self._cell @ values).reshape(J, L, K).transpose(0, 2, 1))

    def first_counts(self) -> Floats:
        """Return the soft vote (n, K) of all other units of each label's task."""
        data = self._data
        own = self.by_unit(np.eye(data.n_classes)[data.label])
        rest = self.by_task(own)[data.unit_task] - own + 0.5 / data.n_classes
        rest /= rest.sum(axis=1, keepdims=True)
        return np.asarray(rest[data.unit])
