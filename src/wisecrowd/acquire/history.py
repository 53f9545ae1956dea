r"""What the answers so far say about the model: predictions before use, and labels that changed.

An answer on a task that had a label is predicted before it is used,

.. math:: \log \sum_k q_i(k)\, \theta_j(k, y) - \log h_j(y),

against the habit :math:`h_j` of its worker: the worker's label frequencies with 4 pseudo-counts of
the overall ones. While the sum of these advantages is not positive, the model drives no choice.

When to stop asking follows from it: labels no longer change. A budget, a target, or nothing left to
ask are further reasons.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wisecrowd.acquire.shrunken_models import AveragePosterior, CrowdBelief, fit_beliefs
from wisecrowd.core.exceptions import ParameterError
from wisecrowd.core.parameter_checks import check_number
from wisecrowd.core.types import Floats, Ints
from wisecrowd.kinds.classes.container import CrowdLabels
from wisecrowd.kinds.classes.prior import TaskPrior

HABIT = 4.0  # pseudo-counts of the overall label frequencies in a worker's habit
LARGEST_TABLE = 20_000_000  # worker × label counts kept as an array; beyond that, only those needed
LEAST_WINDOW, WINDOW_SHARE = 50, 0.1  # answers of the window: at least these, per task these
LEAST_LABELS = 2.0  # answers per task before labels can count as settled
LEAST_GOLD = 30  # held-out gold tasks that a target needs
Z = 1.959963984540054  # 95 %


class NewAnswers(NamedTuple):
    """Answers in the order of arrival, as codes (n,)."""

    task: Ints
    worker: Ints
    label: Ints


class RoundRecord(NamedTuple):
    """One refit: answers used, sums of advantages by model, and the tasks whose label changed.

    ``expected`` is the mean probability of the labels, ``gold`` their accuracy on held-out gold.
    """

    n_answers: int
    gains: dict[str, float]
    changed: NDArray[np.int64]
    expected: float | None = None
    gold: float | None = None


@dataclass
class History:
    """Refits over time, with the scores that decide which model drives, if any.

    Attributes
    ----------
    model : "auto", "one-coin", "confusion" or an Aggregator
    gains : mapping of model name to the sum of advantages over habit
    records : list of RoundRecord
    beliefs : list of CrowdBelief
        The latest fits.
    """

    model: Any = "auto"
    gains: dict[str, float] = field(default_factory=dict)
    records: list[RoundRecord] = field(default_factory=list)
    beliefs: list[CrowdBelief] = field(default_factory=list)

    @property
    def belief(self) -> CrowdBelief | None:
        """The fit that has predicted answers best so far; the first one at the start."""
        if not self.beliefs:
            return None
        return max(self.beliefs, key=lambda one: self.gains.get(one.name, 0.0))

    @property
    def average(self) -> AveragePosterior | None:
        """The mean posterior of the latest fits, which orders tasks."""
        return AveragePosterior(tuple(self.beliefs)) if self.beliefs else None

    @property
    def gain(self) -> float:
        """Sum of advantages of the driving model over habit, in nats."""
        driving = self.belief
        return 0.0 if driving is None else self.gains.get(driving.name, 0.0)

    @property
    def trusted(self) -> bool:
        """Whether the driving model has predicted answers better than habit."""
        return self.gain > 0

    def observe(
        self,
        before: CrowdLabels | None,
        new: NewAnswers,
        labels: CrowdLabels,
        prior: TaskPrior,
        n_answers: int,
    ) -> None:
        """Score new answers under the latest fits, then fit again.

        Parameters
        ----------
        before, labels : CrowdLabels
            Labels without and with the new answers, in the same vocabularies.
        new : NewAnswers
        prior : TaskPrior
        n_answers : int
            Answers so far.
        """
        if before is not None:
            self._score(before, new)
        old = self.belief
        self.beliefs = fit_beliefs(labels, prior, self.model)
        for one in self.beliefs:
            self.gains.setdefault(one.name, 0.0)
        latest = self.belief
        assert latest is not None
        changed = np.empty(0, np.int64)
        if old is not None:
            now = latest.label[: len(old.label)]  # tasks may have joined since
            changed = np.flatnonzero((old.label >= 0) & (now >= 0) & (old.label != now))
        self.records.append(RoundRecord(n_answers, dict(self.gains), changed))

    def scored(self, gold: Ints) -> RoundRecord:
        """Add mean confidence and accuracy on held-out gold (codes, -1 for none) to the last."""
        driving, average = self.belief, self.average
        if driving is not None and average is not None and (driving.label >= 0).any():
            known = gold[: len(driving.label)]
            label = driving.label[: len(known)]
            right, n = gold_score(label, known)
            expected = float(average.confidence()[driving.label >= 0].mean())
            self.records[-1] = self.records[-1]._replace(
                expected=expected, gold=right / n if n else None
            )
        return self.records[-1]

    def _score(self, before: CrowdLabels, new: NewAnswers) -> None:
        had = before.labels_per_task[new.task] > 0
        if not had.any():
            return
        some = NewAnswers(new.task[had], new.worker[had], new.label[had])
        habit = np.log(habit_of(before, some.worker, some.label))
        for one in self.beliefs:
            advantage = float((one.log_predictive(*some) - habit).sum())
            self.gains[one.name] = self.gains.get(one.name, 0.0) + advantage


def habit_of(labels: CrowdLabels, worker: Ints, label: Ints) -> Floats:
    """Return the probability (n,) of some labels by the habits of their workers.

    Examples
    --------
    >>> labels = CrowdLabels.from_arrays([0, 1, 2], ["a", "a", "b"], ["x", "x", "y"])
    >>> habit_of(labels, np.array([0, 1]), np.array([0, 0])).round(3)
    array([0.733, 0.48 ])
    """
    K = labels.n_classes
    overall = np.bincount(labels.label, minlength=K) + 1.0
    overall /= overall.sum()
    key = labels.worker.astype(np.int64) * K + labels.label
    wanted = worker.astype(np.int64) * K + label
    if labels.n_workers * K <= LARGEST_TABLE:
        count = np.bincount(key, minlength=labels.n_workers * K)[wanted]
    else:
        key.sort()
        count = np.searchsorted(key, wanted, "right") - np.searchsorted(key, wanted)
    total = labels.labels_per_worker[worker]
    return np.asarray((count + HABIT * overall[label]) / (total + HABIT))


def gold_score(label: Ints, truth: Ints) -> tuple[int, int]:
    """Return (right, scored) over held-out gold tasks that have answers; codes, -1 for none."""
    scored = (label >= 0) & (truth >= 0)
    return int((label[scored] == truth[scored]).sum()), int(scored.sum())


@dataclass(frozen=True)
class StopReport:
    """Whether to stop asking, and why.

    Attributes
    ----------
    reason : str or None
        "flips", "budget", "target", "max_labels", "nothing left", or None: go on.
    answers : int
        Answers so far.
    cost : float
        Their cost.
    flips : float or None
        Tasks whose label changed over the latest window, per answer; None before the first window.
    predictive_gain : float
        Sum of advantages of the driving model over habit, in nats.
    gold_accuracy : float or None
        Accuracy on held-out gold tasks that have answers.
    """

    reason: str | None
    answers: int
    cost: float
    flips: float | None
    predictive_gain: float
    gold_accuracy: float | None = None

    @property
    def stop(self) -> bool:
        """Whether there is a reason to stop."""
        return self.reason is not None


def window_of(n_tasks: int) -> int:
    """Return the least number of answers over which label changes are counted."""
    return max(LEAST_WINDOW, int(np.ceil(WINDOW_SHARE * n_tasks)))


def flips(records: Sequence[RoundRecord], window: int) -> float | None:
    """Return changed tasks per answer over the latest ``window`` answers or a little more.

    A task counts once, however often its label changed. None if fewer answers were observed.

    Examples
    --------
    >>> some = np.array([3, 4])
    >>> records = [RoundRecord(10, {}, some[:0]), RoundRecord(30, {}, some), RoundRecord(60, {}, some)]
    >>> flips(records, 50)
    0.04
    """  # noqa: E501
    if not records:
        return None
    last = records[-1].n_answers
    for start in range(len(records) - 2, -1, -1):
        if last - records[start].n_answers >= window:
            changed = [record.changed for record in records[start + 1 :]]
            return len(np.unique(np.concatenate(changed))) / (last - records[start].n_answers)
    return None


def labels_settled(
    records: Sequence[RoundRecord], n_tasks: int, n_answers: int, stop: float | None
) -> tuple[bool, float | None]:
    """Return whether labels have stopped changing, and the flips per answer."""
    rate = flips(records, window_of(n_tasks))
    if stop is None or rate is None or n_answers < LEAST_LABELS * n_tasks:
        return False, rate
    return rate < stop, rate


def check_stop(stop: Any) -> None:
    """Require None or a rate of changes per answer."""
    if stop is not None:
        check_number("stop", stop, 0.0, 1.0)


def wilson_lower(n_right: int, n: int) -> float:
    """Return the lower end of Wilson's 95 % interval of a share.

    Examples
    --------
    >>> round(wilson_lower(27, 30), 3)
    0.744
    """
    if n == 0:
        return 0.0
    share = n_right / n
    centre = share + Z**2 / (2 * n)
    spread = Z * np.sqrt(share * (1 - share) / n + Z**2 / (4 * n**2))
    return float((centre - spread) / (1 + Z**2 / n))


def check_target(target: float | None, n_gold: int) -> None:
    """Require enough held-out gold tasks for a target of accuracy."""
    if target is None:
        return
    check_number("target", target, 0.0, 1.0)
    if n_gold < LEAST_GOLD:
        raise ParameterError(
            f"target needs at least {LEAST_GOLD} held-out gold tasks, and there are {n_gold}; give "
            "more gold or leave out target."
        )
