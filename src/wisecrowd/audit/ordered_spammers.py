"""Spammers of ordered classes: labels whose order is unrelated to that of the others."""

from __future__ import annotations

from dataclasses import replace

from wisecrowd.audit.number_spammers import NumberSpammerReport, spammer_report
from wisecrowd.audit.number_view import NumberView, view_of_grades
from wisecrowd.audit.pruning import effect_of_pruning
from wisecrowd.core.labels import CrowdLabels


def find_ordered_spammers(
    labels: CrowdLabels,
    *,
    level: float = 0.01,
    view: NumberView | None = None,
    pruning: bool = True,
) -> NumberSpammerReport:
    """Find workers whose labels do not follow the tasks, in reverse order, or always the same.

    The test is that of :func:`~wisecrowd.audit.number_spammers.find_number_spammers`, with classes
    counted 0, 1, 2, ... A lenient worker whose labels are in the right order is not a spammer.

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
