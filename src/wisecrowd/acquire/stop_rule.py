"""When to stop asking: labels that no longer change, a budget, a target, or nothing left."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from wisecrowd.acquire.history import RoundRecord
from wisecrowd.core.exceptions import ParameterError
from wisecrowd.core.parameter_checks import check_number

LEAST_WINDOW, WINDOW_SHARE = 50, 0.1  # answers of the window: at least these, per task these
LEAST_LABELS = 2.0  # answers per task before labels can count as settled
LEAST_GOLD = 30  # held-out gold tasks that a target needs
Z = 1.959963984540054  # 95 %


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
