"""Use of the ends of an ordered scale, compared with the others on the same tasks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.audit.part import NotApplicable, Part, Table
from wisecrowd.core.findings import Finding
from wisecrowd.core.labels import CrowdLabels
from wisecrowd.core.messages.descriptions import describe_ids
from wisecrowd.core.parameter_checks import check_number
from wisecrowd.families.dependence import benjamini_hochberg

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

FEWEST = 10  # labels of a worker who is tested
HABIT = 0.2  # difference of shares that is a common habit
PSEUDO = 1.0  # labels at the crowd's share, added to those of the others on a task
WIDTH = 1.959963984540054


@dataclass(frozen=True, eq=False)
class ExtremesReport(Part):
    """Shares of the lowest and highest class; arrays have one entry per worker.

    Attributes
    ----------
    workers, n_labels
        Ids, and numbers of labels on tasks that others labelled too.
    share, expected
        Share of labels at either end, and that of the others on the same tasks.
    low, high
        95% interval of their difference.
    q : float
        False discovery rate at which the difference is beyond ±.2.
    extreme, avoiding : bool
        Whether the worker uses the ends much more, or much less, than the others.
    """

    workers: NDArray[Any]
    n_labels: NDArray[np.int64]
    share: Floats
    expected: Floats
    low: Floats
    high: Floats
    q: Floats
    extreme: Mask
    avoiding: Mask

    def tables(self) -> dict[str, Table]:
        """Return the table of workers."""
        names = ("n_labels", "share", "expected", "low", "high", "q", "extreme", "avoiding")
        return {"extremes": {"worker": self.workers} | {n: getattr(self, n) for n in names}}

    def findings(self) -> list[Finding]:
        """Return workers who use the ends of the scale much more or much less than others."""
        kinds = (("extreme-labels", self.extreme, "more"), ("avoided-ends", self.avoiding, "less"))
        return [self._finding(name, who, how) for name, who, how in kinds if who.any()]

    def _finding(self, name: str, who: Mask, how: str) -> Finding:
        apart = np.abs(self.share - self.expected)
        order = np.flatnonzero(who)[np.argsort(-apart[who], kind="stable")]
        ids, worst = self.workers[order], int(order[0])
        return Finding(
            name, "low", float(apart[worst]), tuple(ids.tolist()),
            f"{len(ids)} worker{'s' if len(ids) > 1 else ''} ({describe_ids(ids)}) used the lowest "
            f"and highest class {how} often than the others on the same tasks, at most "
            f"{self.share[worst]:.0%} against {self.expected[worst]:.0%}; the score is the "
            "difference.",
            "Use ordinal-latent, which estimates how widely each worker spreads the labels, or "
            "explain the ends of the scale with examples.",
        )  # fmt: skip


def find_extreme_graders(labels: CrowdLabels, *, level: float = 0.05) -> ExtremesReport:
    """Find workers who use the ends of the scale much more, or much less, than the others.

    The expected share of a label is that of the others on the same task, with one label at the
    crowd's share added. A worker is reported if a test rejects a difference of at most .2 at a
    false discovery rate of ``level``.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> task, worker = np.divmod(np.arange(600), 6)
    >>> label = np.where(worker == 5, rng.choice([0, 4], 600), rng.integers(1, 4, 100)[task])
    >>> labels = CrowdLabels.from_arrays(task, worker, label, classes=range(5), ordered=True)
    >>> report = find_extreme_graders(labels)
    >>> report.workers[report.extreme]
    array([5])
    """
    from scipy.special import ndtr

    check_number("level", level, 0.0, 1.0)
    if labels.n_classes < 3:
        raise NotApplicable("The ends of the scale cannot be judged: there are only two classes.")
    end = (labels.label == 0) | (labels.label == labels.n_classes - 1)
    count = labels.labels_per_task[labels.task]
    use = count > 1
    crowd = float(end.mean())
    total = np.bincount(labels.task, end, labels.n_tasks)[labels.task]
    expected = (total - end + PSEUDO * crowd) / (count - 1 + PSEUDO)
    J, worker = labels.n_workers, labels.worker[use]
    n = np.bincount(worker, minlength=J)
    mean = np.bincount(worker, (end - expected)[use], J) / np.maximum(n, 1)
    squares = np.bincount(worker, ((end - expected)[use] - mean[worker]) ** 2, J)
    error = np.sqrt(squares / np.maximum(n - 1, 1) / np.maximum(n, 1)) + 0.5 / np.maximum(n, 1)
    tested, q = n >= FEWEST, np.ones(J)
    if not tested.any():
        raise NotApplicable(
            f"The ends of the scale cannot be judged: no worker shares {FEWEST} tasks with others."
        )
    q[tested] = benjamini_hochberg(ndtr(-(np.abs(mean) - HABIT)[tested] / error[tested]))
    share = np.bincount(worker, end[use], J) / np.maximum(n, 1)
    far = q <= level
    return ExtremesReport(
        labels.workers, n, share, share - mean, mean - WIDTH * error, mean + WIDTH * error, q,
        far & (mean > 0), far & (mean < 0),
    )  # fmt: skip
