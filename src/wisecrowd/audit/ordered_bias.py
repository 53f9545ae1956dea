"""Lenient and harsh workers: classes above or below those of the others on the same tasks."""

from __future__ import annotations

from wisecrowd.audit.number_bias import BiasReport, bias_report
from wisecrowd.audit.number_view import NumberView, view_of_grades
from wisecrowd.core.labels import CrowdLabels
from wisecrowd.core.parameter_checks import check_number


def find_biased_graders(
    labels: CrowdLabels, *, level: float = 0.05, view: NumberView | None = None
) -> BiasReport:
    """Find workers who grade higher or lower than the others; classes count 0, 1, 2, ...

    The test is that of :func:`~wisecrowd.audit.number_bias.find_biased_workers`. The bias is in
    classes: +1 means one class higher than the others on the same tasks.

    Examples
    --------
    >>> import numpy as np
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
    return bias_report(view_of_grades(labels) if view is None else view, level, " classes")
