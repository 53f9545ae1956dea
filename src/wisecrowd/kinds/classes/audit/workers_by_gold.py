"""Workers judged by tasks with gold, as a part of an audit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.arrow import as_frame
from wisecrowd.core.findings import Finding
from wisecrowd.core.messages.option_spelling import for_reader
from wisecrowd.core.part import NotApplicable, Part, Table
from wisecrowd.core.types import Floats
from wisecrowd.kinds.classes.container import CrowdLabels
from wisecrowd.kinds.classes.truth import as_gold
from wisecrowd.truth.anchored_workers import WorkerAccuracies, workers

if TYPE_CHECKING:
    from wisecrowd.core.aggregator import Aggregator


@dataclass(frozen=True, eq=False)
class JudgedWorkers(Part):
    """How often workers are right, by tasks with gold.

    Attributes
    ----------
    columns : mapping of name to (n_rows,) array
        See :class:`wisecrowd.truth.WorkerAccuracies`.
    n_gold : int
        Tasks with gold and labels.
    right, claimed : float
        Share of right labels on these tasks, and their mean probability under the fit.
    z : float
        Difference of the two in standard errors.
    """

    columns: dict[str, NDArray[Any]]
    n_gold: int
    right: float
    claimed: float
    z: float
    _found: WorkerAccuracies

    def findings(self) -> list[Finding]:
        """Return the finding that gold contradicts the model, if it does."""
        return self._found.findings()

    def tables(self) -> dict[str, Table]:
        """Return ``workers``, one row per worker with labels."""
        return {"workers": self.columns}


def judge_workers(
    labels: CrowdLabels,
    *,
    gold: Any = None,
    fit: Aggregator | None = None,
    weight: Floats | None = None,
) -> JudgedWorkers:
    """Judge workers by tasks with gold, which a fit without gold extends to all of their labels.

    Parameters
    ----------
    labels : CrowdLabels
    gold : mapping from task to class, (task, label) frame, or (n_tasks,) array with None
        Known classes of tasks drawn at random, 10 or more.
    fit : fitted method, optional
        A fit of these labels without gold; by default one of the default method.
    weight : (n_tasks,), optional
        Number of tasks that each one with gold stands for, where not all were as likely to be
        drawn.

    Examples
    --------
    >>> from wisecrowd import simulate
    >>> crowd = simulate.crowd(400, 8 * simulate.OneCoinWorkers(8, 2), simulate.PerTask(4))
    >>> found = judge_workers(crowd.labels, gold=dict(enumerate(crowd.truth[:100].tolist())))
    >>> found.n_gold, len(found.columns["accuracy"])
    (100, 8)
    """
    known = as_gold(gold, labels)
    if known is None or not (known[labels.task] >= 0).any():
        raise NotApplicable(
            "there are no known answers; give gold, "
            + for_reader("gold={task: label, ...}.", "--gold FILE.")
        )
    checked: Any = labels.classes.astype(object)[np.maximum(known, 0)]
    checked[known < 0] = None
    if weight is not None:
        rows = np.flatnonzero(known >= 0)
        columns = {"task": labels.tasks[rows], "label": checked[rows], "weight": weight[rows]}
        checked = as_frame(columns, "pyarrow")
    found = workers(labels, checked, fit=fit)
    if found.note:
        raise NotApplicable(found.note)
    return JudgedWorkers(found.columns, found.n_tasks, found.right, found.claimed, found.z, found)
