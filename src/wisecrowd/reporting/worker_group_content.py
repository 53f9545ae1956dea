"""Groups of workers: their accuracy, and how differently each group labels groups of tasks."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.audit.group_gaps import GroupGaps
from wisecrowd.core.attributes import Groups, as_groups, task_groups
from wisecrowd.core.exceptions import DataError
from wisecrowd.metrics.fairness import LEAST_TASKS
from wisecrowd.reporting.study import Study
from wisecrowd.reporting.text import shown
from wisecrowd.reporting.worker_rows import number

Floats = NDArray[np.float64]

FEWEST_WORKERS = 10  # of a group whose figures are shown
LEAST_WORKERS = 30  # of a group that allows a conclusion
N_REPLICATES = 400


def groups_of_workers(study: Study) -> dict[str, Any] | None:
    """Return figures by group of workers for each attribute; None if workers have none."""
    columns = {n: v for n, v in study.labels.worker_columns.items() if v.dtype == object}
    if not columns:
        return None
    accuracy, gaps = _accuracy(study), _gaps(study)
    return {
        "known_from": study.known_from,
        "fewest": FEWEST_WORKERS,
        "least": LEAST_WORKERS,
        "gaps": [{"attribute": gap["attribute"], "high": gap["high"], "low": gap["low"]}
                 for gap in gaps],
        "attributes": [_attribute(n, values, accuracy, gaps) for n, values in columns.items()],
    }  # fmt: skip


def _accuracy(study: Study) -> Floats:
    """Return the accuracy of each worker (n_workers,): by known classes, else by the fit."""
    labels = study.labels
    if study.known is None:
        accuracy = np.asarray(study.fit.worker_accuracy_, dtype=np.float64)
        return np.where(labels.labels_per_worker > 0, accuracy, np.nan)
    known = study.known[labels.task]
    scored, J = known >= 0, labels.n_workers
    right = np.bincount(labels.worker[scored], (labels.label == known)[scored], J)
    n = np.bincount(labels.worker[scored], minlength=J)
    return np.where(n > 0, right / np.maximum(n, 1), np.nan)


def _gaps(study: Study) -> list[dict[str, Any]]:
    """Return counts by worker for the two groups of tasks with the extreme selection rates.

    ``counts`` (n_workers, 4): positive labels and labels of the higher group, then of the lower.
    """
    part = study.audit.parts.get("group-gaps")
    if not isinstance(part, GroupGaps):
        return []
    labels, found = study.labels, []
    for name, metrics in part.metrics.items():
        enough = np.flatnonzero(metrics.n_tasks >= LEAST_TASKS)
        if len(enough) < 2:
            continue
        rates = metrics.rates["selection_rate"][enough]
        ends = [int(enough[rates.argmax()]), int(enough[rates.argmin()])]
        group = task_groups(labels, name).code[labels.task]
        positive = labels.classes.tolist().index(part.positive) == labels.label
        chosen = [kept for end in ends for kept in ((group == end) & positive, group == end)]
        counts = [np.bincount(labels.worker[kept], minlength=labels.n_workers) for kept in chosen]
        high, low = (shown(metrics.groups[end]) for end in ends)
        columns = np.column_stack(counts).astype(np.float64)
        found.append({"attribute": shown(name), "high": high, "low": low, "counts": columns})
    return found


def _attribute(
    name: str, values: NDArray[Any], accuracy: Floats, gaps: list[dict[str, Any]]
) -> dict[str, Any]:
    try:
        groups = as_groups(values, name)
    except DataError as error:
        return {"name": shown(name), "reason": shown(error), "rows": [], "n_missing": 0}
    rows = [_row(groups, g, accuracy, gaps) for g in range(len(groups.names))]
    return {"name": shown(name), "reason": None, "rows": rows, "n_missing": groups.n_missing}


def _row(groups: Groups, g: int, accuracy: Floats, gaps: list[dict[str, Any]]) -> dict[str, Any]:
    """Return one group of workers; its size and figures are None if they are withheld."""
    members = np.flatnonzero((groups.code == g) & np.isfinite(accuracy))
    n = len(members)
    row: dict[str, Any] = {"group": shown(groups.names[g]), "n_workers": None, "cells": None}
    if n < FEWEST_WORKERS:
        return row
    # A mean is a ratio of sums too, minus 0 / 1.
    ones = np.column_stack([accuracy[members], np.ones(n), np.zeros(n), np.ones(n)])
    return row | {
        "n_workers": n,
        "cells": [_difference(ones), *(_difference(gap["counts"][members]) for gap in gaps)],
    }


def _difference(counts: Floats) -> dict[str, float | None]:
    """Return a difference of two ratios of sums over workers, with its bootstrap interval."""
    rng = np.random.default_rng(0)
    n = len(counts)
    sums = np.array(
        [counts.sum(axis=0), *(counts[rng.integers(n, size=n)].sum(axis=0)
                               for _ in range(N_REPLICATES))]
    )  # fmt: skip
    known = (sums[:, 1] > 0) & (sums[:, 3] > 0)
    if not known[0]:
        return {"value": None, "low": None, "high": None}
    first, second = sums[:, 0] / np.maximum(sums[:, 1], 1), sums[:, 2] / np.maximum(sums[:, 3], 1)
    values = (first - second)[known]
    low, high = np.quantile(values[1:], [0.025, 0.975]) if len(values) > 1 else (np.nan, np.nan)
    return {"value": number(values[0], 4), "low": number(low, 4), "high": number(high, 4)}
