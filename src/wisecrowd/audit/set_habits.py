"""Habits of ticking: workers who never tick more than one class where others tick several."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.audit.part import NotApplicable, Part, Table
from wisecrowd.audit.set_view import SetView
from wisecrowd.core.findings import Finding
from wisecrowd.core.messages.descriptions import describe_ids
from wisecrowd.core.sets import CrowdSets
from wisecrowd.families.set_method import set_sizes

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

FEWEST = 8  # sets of a worker who is tested
CAREFUL = 1 / 4  # of the crowd's rate of several classes: rarer than any honest habit
CHANCE = 1e-3  # probability of a false alarm, over all workers


@dataclass(frozen=True, eq=False)
class SetHabitReport(Part):
    """Sizes of sets; arrays have one entry per worker.

    Attributes
    ----------
    workers, n_labels
        Ids, and numbers of sets on tasks that others labelled too.
    set_size, crowd_set_size
        Mean size of the worker's sets, and of those of others on the same tasks.
    several, crowd_several
        Shares of sets with two classes or more: the worker's, and the others' on the same tasks.
    one_box : bool
        Whether the worker never ticks two classes, although a worker who does so four times less
        often than the others would have, with a probability of at least .999 over all workers.
    """

    workers: NDArray[Any]
    n_labels: NDArray[np.int64]
    set_size: Floats
    crowd_set_size: Floats
    several: Floats
    crowd_several: Floats
    one_box: Mask

    def tables(self) -> dict[str, Table]:
        """Return the table of workers."""
        names = ("n_labels", "set_size", "crowd_set_size", "several", "crowd_several", "one_box")
        return {"habits": {"worker": self.workers} | {name: getattr(self, name) for name in names}}

    def findings(self) -> list[Finding]:
        """Return workers who tick one box only."""
        if not self.one_box.any():
            return []
        order = np.argsort(-self.n_labels[self.one_box], kind="stable")
        ids = self.workers[self.one_box][order]
        share = float(self.n_labels[self.one_box].sum() / max(int(self.n_labels.sum()), 1))
        others = float(np.mean(self.crowd_several[self.one_box]))
        severity = "high" if share >= 0.2 else "medium" if share >= 0.02 else "low"
        return [Finding(
            "one-box-workers", severity, share, tuple(ids.tolist()),
            f"{len(ids)} worker{'s' if len(ids) > 1 else ''} ({describe_ids(ids)}; {share:.1%} of "
            "all labels, which is the score) never ticked two classes, where others do so in "
            f"{others:.0%} of the sets of the same tasks.",
            "Tell them that several classes may apply, and check the form they see; "
            "shared-two-coin counts a class that they leave out as weak evidence.",
        )]  # fmt: skip


def find_one_box_workers(data: CrowdSets, *, view: SetView | None = None) -> SetHabitReport:
    r"""Find workers who tick one class at most, where others tick several.

    With :math:`m_i` the share of the others' sets of a task with two classes or more, a worker who
    has this habit a quarter as often gives none in all tasks with the probability
    :math:`\prod_i (1 - m_i / 4)`. The worker is reported if that is below .001, divided by the
    number of workers.

    Examples
    --------
    >>> from wisecrowd import simulate
    >>> crowd = simulate.sets(100, 8, simulate.Dense())
    >>> task, worker, sets = (crowd.data.to_dict()[name] for name in ("task", "worker", "label"))
    >>> sets[worker == 7] = [one.split("|")[0] for one in sets[worker == 7]]
    >>> report = find_one_box_workers(CrowdSets.from_arrays(task, worker, sets))
    >>> report.workers[report.one_box]
    array([7])
    """
    per_task = data.labels_per_task[data.task]
    compared = per_task > 1
    J = data.n_workers
    n = np.bincount(data.worker[compared], minlength=J)
    if not (n >= FEWEST).any():
        raise NotApplicable(
            f"Habits cannot be compared: no worker shares {FEWEST} tasks with others."
        )
    several = data.sizes > 1
    total = np.bincount(data.task, several, data.n_tasks)
    others = (total[data.task] - several) / np.maximum(per_task - 1, 1)
    log_chance = np.bincount(data.worker[compared], np.log1p(-CAREFUL * others[compared]), J)
    own = np.bincount(data.worker[compared], several[compared], J)
    crowd = np.bincount(data.worker[compared], others[compared], J)
    one_box = (n >= FEWEST) & (own == 0) & (log_chance < np.log(CHANCE / max(J, 1)))
    size, crowd_size = set_sizes(data)
    return SetHabitReport(
        data.workers, n, size, crowd_size, own / np.maximum(n, 1), crowd / np.maximum(n, 1),
        one_box,
    )  # fmt: skip
