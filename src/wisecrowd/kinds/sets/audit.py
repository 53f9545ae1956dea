r"""Audit of sets: spammers, workers who tick one box only, and agreement.

Sets are compared with those of the other workers on the same tasks. With :math:`y_e` the ticks of
an annotation, one per class, and :math:`o_e` the shares of the others who tick each class of the
task, the correlation of worker :math:`j` is

.. math::
    r_j = \frac{\sum_e (y_e - \bar y)^\top (o_e - \bar o)}
    {\sqrt{\sum_e |y_e - \bar y|^2 \sum_e |o_e - \bar o|^2}}

with means over the worker's annotations. If the sets were dealt to the tasks at random, its
variance would be known (that of a permutation), however classes depend on each other.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.audit.answer_pruning import RemovalEffect, effect_of_removal
from wisecrowd.core.findings import Finding
from wisecrowd.core.ids.packed_sort import ragged_places
from wisecrowd.core.messages.descriptions import describe_ids
from wisecrowd.core.parameter_checks import check_number
from wisecrowd.core.part import (
    AuditPlan,
    NotApplicable,
    Part,
    Table,
    WorkerPart,
    no_signal,
    prune_or,
    single_labels,
)
from wisecrowd.core.statistics import WIDTH, following, one_answer
from wisecrowd.core.types import Floats, Mask
from wisecrowd.kinds.sets.agreement import class_coefficients, set_codes
from wisecrowd.kinds.sets.container import CrowdSets
from wisecrowd.kinds.sets.methods.base import set_sizes
from wisecrowd.kinds.sets.metrics import set_alpha
from wisecrowd.truth.agreement_intervals import task_interval

LITTLE = 1 / 4  # share of the typical information, which grows with the squared correlation
SURE = 2.576  # standard errors: one-sided 99.5%, because every worker is tested
SAME_SET = 1e-3  # probability that an honest worker gives one set to all of its tasks
FEWEST = 8  # sets of a worker who is tested
CAREFUL = 1 / 4  # of the crowd's rate of several classes: rarer than any honest habit
CHANCE = 1e-3  # probability of a false alarm, over all workers
AT_CHANCE = 0.05  # an alpha below this is too low for any use
UNCLEAR = 0.2  # classes whose interval is below are reported
FEWEST_TASKS = 20  # tasks with two labels or more, for findings


@dataclass(frozen=True, eq=False)
class SetView:
    """Sets and what the others say of the same tasks.

    Attributes
    ----------
    data : CrowdSets
    n : (n_workers,) int64
        Number of sets on tasks that others labelled too.
    correlation : (n_workers,)
        With the shares of the others' ticks; 0 if it is undefined.
    information : (n_workers,)
        Standard scores that a correlation of 1 would have; 0 if it is undefined.
    set_code : (n_annotations,) int64
        Equal for equal sets.
    """

    data: CrowdSets
    n: NDArray[np.int64]
    correlation: Floats
    information: Floats
    set_code: NDArray[np.int64]

    @cached_property
    def compared(self) -> Mask:
        """(n_annotations,): whether others labelled the task."""
        return self.data.labels_per_task[self.data.task] > 1


def set_view(data: CrowdSets, fit: Any = None) -> SetView:
    """Return the view of sets.

    Examples
    --------
    >>> sets = ["x", "x", "y", "y", "", "", "x|y", "x|y"]
    >>> data = CrowdSets.from_arrays([0, 0, 1, 1, 2, 2, 3, 3], list("abababab"), sets)
    >>> set_view(data).correlation
    array([1., 1.])
    """
    counts = np.zeros((data.n_tasks, data.n_classes))
    np.add.at(counts, (data.task[data.annotation], data.members), 1.0)
    per_task = data.labels_per_task
    J = data.n_workers
    n, correlation, information = np.zeros(J, np.int64), np.zeros(J), np.zeros(J)
    indptr, order = data.by_worker
    for j in range(J):
        rows = order[indptr[j] : indptr[j + 1]]
        rows = rows[per_task[data.task[rows]] > 1]
        n[j] = len(rows)
        if len(rows) > 1:
            place, pointer = ragged_places(data.pointer, rows)
            ticks = np.zeros((len(rows), data.n_classes))
            ticks[np.repeat(np.arange(len(rows)), np.diff(pointer)), data.members[place]] = 1.0
            task = data.task[rows]
            others = (counts[task] - ticks) / (per_task[task] - 1)[:, None]
            correlation[j], information[j] = _correlation(ticks, others)
    return SetView(data, n, correlation, information, set_codes(data))


def _correlation(first: Floats, second: Floats) -> tuple[float, float]:
    """Return the correlation of two tables, and its standard score per unit by permutation."""
    a, b = first - first.mean(axis=0), second - second.mean(axis=0)
    scale = float(np.sqrt((a * a).sum() * (b * b).sum()))
    # The squares of the products of all rows; the smaller of two equal sums of squares.
    cross = a @ b.T if len(a) < a.shape[1] else None
    spread = float((cross**2).sum()) if cross is not None else float(((a.T @ a) * (b.T @ b)).sum())
    if scale <= 1e-12 or spread <= 1e-12:
        return 0.0, 0.0
    return float((a * b).sum()) / scale, scale / np.sqrt(spread / (len(a) - 1))


@dataclass(frozen=True, eq=False)
class SetSpammerReport(WorkerPart):
    """Result of the search for spammers of sets; arrays have one entry per worker.

    Attributes
    ----------
    workers, n_labels
        Ids, and numbers of sets on tasks that others labelled too.
    correlation, low, high
        Correlation of the ticks with the shares of the others' ticks, and its 95% interval.
    testable : bool
        Whether a typical worker with as many sets would have been distinguished from a spammer.
    unrelated, against, constant : bool
        Ticks unrelated to the others'; opposed to them; the same set for all tasks although the
        others' differ.
    typical : float
        Median correlation of the workers whose correlation is significant; 0 without any.
    """

    table = "spammers"

    workers: NDArray[Any]
    n_labels: NDArray[np.int64]
    correlation: Floats
    low: Floats
    high: Floats
    testable: Mask
    unrelated: Mask
    against: Mask
    constant: Mask
    typical: float
    _pruning: RemovalEffect | None = None

    @property
    def accused(self) -> Mask:
        """(n_workers,): workers whom pruning removes."""
        return self.unrelated | self.against | self.constant

    def findings(self) -> list[Finding]:
        """Return spammers by what they do, and the lack of any signal."""
        remedy = prune_or(
            "shared-two-coin", "which gives them little weight", self._pruning, "--type sets "
        )
        check = "Check the task and label columns; collect more labels of the same tasks."
        lost = [no_signal("sets", "too few tasks are shared", check)] if self.typical == 0 else []
        return [
            *lost,
            *self.about("constant-answers", self.constant,
                        "gave the same set to all of their tasks", remedy),
            *self.about("adversaries", self.against, "ticked what the others leave out", remedy),
            *self.about("spammers", self.unrelated,
                        "gave sets that have nothing to do with the others'", remedy),
        ]  # fmt: skip


def find_set_spammers(
    data: CrowdSets, *, level: float = 0.01, view: SetView | None = None, pruning: bool = True
) -> SetSpammerReport:
    r"""Find workers whose sets do not follow the tasks, without truth.

    The test is the correlation :math:`r_j` of a worker's ticks with the shares of the others' ticks
    (see the module). A worker is *unrelated* if independence is not
    rejected at ``level``, although a typical worker with as many sets would be at twice the
    critical value, and if the correlation is, with 99.5% confidence, under half of the typical one.
    It is *against* the others if the correlation is negative at a false discovery rate of
    ``level``, and *constant* if
    all of its sets are equal, where others would all give that set with a probability below .001.

    Examples
    --------
    >>> from wisecrowd import simulate
    >>> crowd = simulate.sets(100, 8, simulate.Dense())
    >>> task, worker, sets = (crowd.data.to_dict()[name] for name in ("task", "worker", "label"))
    >>> sets[worker == 7] = np.random.default_rng(0).permutation(sets[worker == 7])
    >>> report = find_set_spammers(CrowdSets.from_arrays(task, worker, sets))
    >>> report.workers[report.unrelated]
    array([7])
    """
    check_number("level", level, 0.0, 1.0)
    view = set_view(data) if view is None else view
    n, r = view.n, view.correlation
    enough = (n >= FEWEST) & (view.information > 0)
    constant = one_answer(data, view.set_code, n, FEWEST, SAME_SET)
    if (n >= FEWEST).sum() < 2:
        raise NotApplicable(
            f"Spammers cannot be looked for: fewer than two workers share {FEWEST} tasks with "
            "others."
        )
    found = following(r, view.information, enough, level)
    if not found.possible:
        raise NotApplicable(
            "Spammers cannot be looked for: the workers share too few tasks to be compared."
        )
    error = 1 / np.maximum(view.information, 1e-9)
    little = np.sqrt(LITTLE) * found.typical
    unrelated = found.silent & (r + SURE * error <= little) & ~constant
    against = found.against & (found.typical > 0) & ~constant
    low, high = np.clip(r - WIDTH * error, -1, 1), np.clip(r + WIDTH * error, -1, 1)
    report = SetSpammerReport(
        data.workers, n, r, low, high, found.testable, unrelated, against, constant,
        found.typical,
    )  # fmt: skip
    if pruning and report.accused.any():
        return replace(report, _pruning=effect_of_removal(data, report.accused))
    return report


@dataclass(frozen=True, eq=False)
class SetHabitReport(WorkerPart):
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

    table = "habits"

    workers: NDArray[Any]
    n_labels: NDArray[np.int64]
    set_size: Floats
    crowd_set_size: Floats
    several: Floats
    crowd_several: Floats
    one_box: Mask

    def findings(self) -> list[Finding]:
        """Return workers who tick one box only."""
        others = float(np.mean(self.crowd_several[self.one_box])) if self.one_box.any() else 0.0
        return self.about(
            "one-box-workers", self.one_box,
            f"never ticked two classes, where others do so in {others:.0%} of the sets of the same "
            "tasks",
            "Tell them that several classes may apply, and check the form they see; "
            "shared-two-coin counts a class that they leave out as weak evidence.",
        )  # fmt: skip


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


@dataclass(frozen=True, eq=False)
class SetAgreementReport(Part):
    """Agreement of the workers; 1 is perfect, 0 is chance.

    Attributes
    ----------
    n_tasks : int
        Number of tasks with two sets or more; others do not count.
    share_alone : float
        Share of the tasks with a single set.
    alpha : float
        Krippendorff's alpha of whole sets, with MASI distances; NaN if there are too many.
    classes, ticked : (n_classes,)
        Classes, and the share of sets with each.
    class_alpha, low, high : (n_classes,)
        Krippendorff's alpha of each class, with its 95% interval over tasks; NaN if undefined.
    """

    n_tasks: int
    share_alone: float
    alpha: float
    classes: NDArray[Any]
    ticked: Floats
    class_alpha: Floats
    low: Floats
    high: Floats

    def tables(self) -> dict[str, Table]:
        """Return the table of classes."""
        columns = {"ticked": self.ticked, "alpha": self.class_alpha, "low": self.low,
                   "high": self.high}  # fmt: skip
        return {"agreement": {"class": self.classes} | columns}

    def findings(self) -> list[Finding]:
        """Return agreement at chance, unclear classes, and tasks with a single label."""
        found = single_labels(self.share_alone)
        if self.n_tasks < FEWEST_TASKS:
            return found
        if self.alpha < AT_CHANCE and not (self.high >= UNCLEAR).any():
            found.append(Finding(
                "agreement-at-chance", "high", 1 - self.alpha, (),
                f"Workers hardly agree on sets or on any class: alpha of sets is {self.alpha:.2f}, "
                "where 0 is chance and 1 is perfect; the score is one minus alpha.",
                "Check the task and label columns; explain the classes better, with examples.",
            ))  # fmt: skip
            return found
        unclear = np.flatnonzero(self.high < UNCLEAR)
        if len(unclear):
            unclear = unclear[np.argsort(self.class_alpha[unclear], kind="stable")]
            ids = self.classes[unclear]
            worst = float(self.class_alpha[unclear[0]])
            found.append(Finding(
                "unclear-classes", "info", 1 - worst, tuple(ids.tolist()),
                f"Workers hardly agree on when {describe_ids(ids)} applies: alpha is below "
                f"{UNCLEAR} with 95% confidence ({worst:.2f} at worst; the score is one minus "
                "it).",
                "Explain these classes with examples, or merge them with others.",
            ))  # fmt: skip
        return found


def measure_set_agreement(data: CrowdSets, *, view: SetView | None = None) -> SetAgreementReport:
    """Measure the agreement of workers on sets and on single classes.

    Examples
    --------
    >>> sets = ["x", "x", "y", "", "x|y", "x|y"]
    >>> data = CrowdSets.from_arrays([0, 0, 1, 1, 2, 2], list("ababab"), sets)
    >>> measure_set_agreement(data).class_alpha.round(2)
    array([1.  , 0.44])
    """
    n = data.labels_per_task.astype(np.float64)
    if not (n > 1).any():
        raise NotApplicable("Agreement needs tasks with two labels or more; there are none.")
    by_class = [task_interval(one, data.task) for one in class_coefficients(data)]
    alphas, low, high = np.array(by_class).reshape(-1, 3).T
    code = view.set_code if view is not None else set_codes(data)
    distinct = np.zeros((int(code.max()) + 1, data.n_classes))
    distinct[code[data.annotation], data.members] = 1.0
    ticked = np.bincount(data.members, minlength=data.n_classes) / max(data.n_annotations, 1)
    return SetAgreementReport(
        int((n > 1).sum()), float(np.mean(n[n > 0] == 1)), set_alpha(code, distinct, data.indptr),
        data.classes, ticked, alphas, low, high,
    )  # fmt: skip


PLAN = AuditPlan(
    parts={
        "spammers": find_set_spammers,
        "habits": find_one_box_workers,
        "agreement": measure_set_agreement,
    },
    shared={"view": set_view},
    prunable=("spammers",),
)
