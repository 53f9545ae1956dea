"""Audit of ordered classes: questions about any labels, and about their order."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.findings import Finding, not_converged
from wisecrowd.core.kinds import KINDS
from wisecrowd.core.parameter_checks import check_number
from wisecrowd.core.part import AuditPlan, NotApplicable, WorkerPart
from wisecrowd.core.registry import get_method
from wisecrowd.core.statistics import WIDTH, benjamini_hochberg
from wisecrowd.core.types import Floats, Mask
from wisecrowd.kinds import ORDERED
from wisecrowd.kinds.classes.audit.agreement_report import AgreementReport, measure_agreement
from wisecrowd.kinds.classes.audit.fit import FitCheck
from wisecrowd.kinds.classes.audit.plan import PLAN as CLASSES
from wisecrowd.kinds.classes.audit.pruning import effect_of_pruning
from wisecrowd.kinds.classes.container import CrowdLabels
from wisecrowd.kinds.classes.truth import as_gold
from wisecrowd.kinds.numbers.audit.view import NumberView, view_of_grades
from wisecrowd.kinds.numbers.audit.workers import (
    BiasReport,
    NumberSpammerReport,
    bias_report,
    spammer_report,
)

FEWEST_GOLD = 10  # gold tasks with labels that fix the zero of the biases
FEWEST = 10  # labels of a worker who is tested
HABIT = 0.2  # difference of shares that is a common habit
PSEUDO = 1.0  # labels at the crowd's share, added to those of the others on a task


def measure_ordered_agreement(
    labels: CrowdLabels, *, random_state: Any = 0, **options: Any
) -> AgreementReport:
    """Measure the agreement with Krippendorff's alpha of the ordinal level.

    Parameters
    ----------
    labels : CrowdLabels
        Their classes are in order.
    random_state : int, Generator or None
    **options
        Further options of :func:`~wisecrowd.audit.measure_agreement`.

    Examples
    --------
    >>> labels = CrowdLabels.from_matrix([[0, 1], [2, 2], [1, 1], [0, 0]], classes=range(3))
    >>> report = measure_ordered_agreement(labels)
    >>> report.level, round(float(report.alpha[0]), 2)
    ('ordinal', 0.79)
    """
    return measure_agreement(
        labels, level="ordinal", order=labels.classes.tolist(), random_state=random_state, **options
    )


def check_ordered_fit(labels: CrowdLabels, *, fit: Any = None) -> FitCheck:
    """Return the findings of a fit of ordered classes; the default is one of the default method.

    The checks of classes do not apply: a method that knows the order may overrule the most common
    label, because its neighbours count too.

    Examples
    --------
    >>> labels = CrowdLabels.from_matrix([[0, 1], [2, 2], [1, 1]], classes=range(3))
    >>> check_ordered_fit(labels).method
    'AutoOrdered'
    """
    model = fit
    if model is None or getattr(model, "takes", ORDERED) != ORDERED:
        model = get_method(KINDS[ORDERED].default_method)()._fit_without_checks(labels)
    found = list(model.findings_)
    name = type(model).__name__
    if not model.converged_ and not any(one.id == "not-converged" for one in found):
        found.append(not_converged(model.n_iter_, name))
    return FitCheck(name, tuple(found))


def find_ordered_spammers(
    labels: CrowdLabels,
    *,
    level: float = 0.01,
    view: NumberView | None = None,
    pruning: bool = True,
) -> NumberSpammerReport:
    """Find workers whose labels do not follow the tasks, in reverse order, or always the same.

    The test is that of :func:`~wisecrowd.kinds.numbers.audit.workers.find_number_spammers`, with
    classes counted 0, 1, 2, ... A lenient worker whose labels are in the right order is not a
    spammer.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> task, worker = np.divmod(np.arange(800), 8)
    >>> seen = rng.normal(2, 1.2, 100)[task] + rng.normal(0, 0.5, 800) + 1.5 * (worker == 6)
    >>> seen[worker == 7] = rng.uniform(0, 4, 100)
    >>> labels = CrowdLabels.from_arrays(
    ...     task, worker, np.clip(np.rint(seen), 0, 4).astype(int), classes=range(5), ordered=True)
    >>> report = find_ordered_spammers(labels)
    >>> report.workers[report.accused]
    array([7])
    """
    report = spammer_report(view_of_grades(labels) if view is None else view, level)
    effect = effect_of_pruning(labels, report.accused) if pruning and report.accused.any() else None
    return replace(
        report, _pruning=effect, _advice="dawid-skene, which learns to ignore them",
        _type="ordered",
    )  # fmt: skip


def find_biased_graders(
    labels: CrowdLabels, *, gold: Any = None, level: float = 0.05, view: NumberView | None = None
) -> BiasReport:
    """Find workers who grade higher or lower than the others; classes count 0, 1, 2, ...

    The test is that of :func:`~wisecrowd.kinds.numbers.audit.workers.find_biased_workers`. The bias
    is in classes: +1 means one class higher than the others on the same tasks. Labels alone tell
    how workers differ, not who is right: without gold the median worker has the bias 0. Ten gold
    tasks or more set the zero instead: the mean difference of all labels from the gold, less the
    biases relative to each other, is added to all biases.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> task, worker = np.divmod(np.arange(600), 6)
    >>> seen = rng.normal(2, 1, 100)[task] + rng.normal(0, 0.5, 600) + 1.0 * (worker == 5)
    >>> labels = CrowdLabels.from_arrays(
    ...     task, worker, np.clip(np.rint(seen), 0, 4).astype(int), classes=range(5), ordered=True)
    >>> report = find_biased_graders(labels)
    >>> report.workers[report.strongly]
    array([5])
    """
    check_number("level", level, 0.0, 1.0)
    view = view_of_grades(labels) if view is None else view
    codes = as_gold(gold, labels)
    n_gold = 0 if codes is None else np.count_nonzero((codes >= 0) & (labels.labels_per_task > 0))
    if codes is None or n_gold < FEWEST_GOLD:
        return bias_report(view, level, " classes")
    return bias_report(_against_gold(view, labels, codes), level, " classes", int(n_gold))


def _against_gold(view: NumberView, labels: CrowdLabels, codes: NDArray[np.int32]) -> NumberView:
    """Return the view with biases that are 0 for a worker who agrees with the gold on average."""
    known = (codes[labels.task] >= 0) & np.isfinite(view.bias[labels.worker])
    rows = np.flatnonzero(known)
    if len(rows) < 2:
        return view
    apart = view.value[rows] - codes[labels.task[rows]] - view.bias[labels.worker[rows]]
    error = float(np.std(apart, ddof=1) / np.sqrt(len(apart)))
    return replace(view, bias=view.bias + apart.mean(), bias_error=np.hypot(view.bias_error, error))


@dataclass(frozen=True, eq=False)
class ExtremesReport(WorkerPart):
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

    table = "extremes"

    workers: NDArray[Any]
    n_labels: NDArray[np.int64]
    share: Floats
    expected: Floats
    low: Floats
    high: Floats
    q: Floats
    extreme: Mask
    avoiding: Mask

    def findings(self) -> list[Finding]:
        """Return workers who use the ends of the scale much more or much less than others."""
        kinds = (("extreme-labels", self.extreme, "more"), ("avoided-ends", self.avoiding, "less"))
        return [self._finding(name, who, how) for name, who, how in kinds if who.any()]

    def _finding(self, name: str, who: Mask, how: str) -> Finding:
        apart = np.abs(self.share - self.expected)
        order = self.largest(who, apart)
        worst = order[0]
        return Finding(
            name, "low", float(apart[worst]), tuple(self.workers[order].tolist()),
            f"{self.named(order)} used the lowest and highest class {how} often than the others on "
            f"the same tasks, at most {self.share[worst]:.0%} against {self.expected[worst]:.0%}; "
            "the score is the difference.",
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


PLAN = AuditPlan(
    parts={
        **{name: part for name, part in CLASSES.parts.items() if name != "confidence"},
        "spammers": find_ordered_spammers,
        "fit": check_ordered_fit,
        "agreement": measure_ordered_agreement,
        "bias": find_biased_graders,
        "extremes": find_extreme_graders,
    },
    shared={**CLASSES.shared, "view": view_of_grades},
    prunable=CLASSES.prunable,
)
