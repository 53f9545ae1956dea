"""Lenient and harsh workers: classes above or below those of the others on the same tasks."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.audit.number_bias import BiasReport, bias_report
from wisecrowd.audit.number_view import NumberView, view_of_grades
from wisecrowd.core.gold import as_gold
from wisecrowd.core.labels import CrowdLabels
from wisecrowd.core.parameter_checks import check_number

FEWEST_GOLD = 10  # gold tasks with labels that fix the zero of the biases


def find_biased_graders(
    labels: CrowdLabels, *, gold: Any = None, level: float = 0.05, view: NumberView | None = None
) -> BiasReport:
    """Find workers who grade higher or lower than the others; classes count 0, 1, 2, ...

    The test is that of :func:`~wisecrowd.audit.number_bias.find_biased_workers`. The bias is in
    classes: +1 means one class higher than the others on the same tasks. Labels alone tell how
    workers differ, not who is right: without gold the median worker has the bias 0. Ten gold tasks
    or more set the zero instead: the mean difference of all labels from the gold, less the biases
    relative to each other, is added to all biases.

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
