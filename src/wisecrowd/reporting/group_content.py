"""Groups of tasks and of workers.

Of tasks: rates of a class by group, their differences, and biased workers. Of workers: their
accuracy, and how differently each group labels groups of tasks.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.audit.group_gaps import LEAST_GOLD, GroupGaps
from wisecrowd.core.attributes import Groups, as_groups, task_groups
from wisecrowd.core.exceptions import DataError
from wisecrowd.core.types import Floats
from wisecrowd.metrics.fairness import LEAST_TASKS, GroupMetrics
from wisecrowd.reporting.display import shown
from wisecrowd.reporting.study import Study
from wisecrowd.reporting.workers import number

FEWEST_TASKS = 10  # behind a figure: figures of fewer tasks are withheld
MOST_WORKERS = 50
# Rate → its column in the page, and the difference of groups in it.
RATES = {
    "selection_rate": ("Selection rate", "demographic_parity_difference"),
    "base_rate": ("Base rate", "base_rate_difference"),
    "accuracy": ("Accuracy", "accuracy_difference"),
    "true_positive_rate": ("True positive rate", "equal_opportunity_difference"),
    "false_positive_rate": ("False positive rate", "false_positive_rate_difference"),
}


def groups_of_tasks(study: Study) -> dict[str, Any] | None:
    """Return figures by group for each attribute; None without attributes or without the part."""
    part = study.audit.parts.get("group-gaps")
    if not isinstance(part, GroupGaps):
        return None
    return {
        "positive": shown(part.positive),
        "known_from": study.known_from,
        "fewest": FEWEST_TASKS,
        "least_gold": LEAST_GOLD,
        "attributes": [
            _attribute(part, name, metrics) for name, metrics in part.metrics.items()
        ],
    }  # fmt: skip


def _attribute(part: GroupGaps, name: str, metrics: GroupMetrics) -> dict[str, Any]:
    rates = [rate for rate in RATES if rate in metrics.rates]
    return {
        "name": shown(name),
        "with_truth": part.with_truth[name],
        "n_tasks": int(metrics.n_tasks.sum()),
        "columns": [RATES[rate][0] for rate in rates],
        "rows": [_row(metrics, g, rates) for g in range(len(metrics.groups))],
        "differences": [_difference(metrics, *RATES[rate]) for rate in rates],
        # Which rates are undefined is withheld too: it tells the classes of few tasks.
        "notes": [shown(note) for note in metrics.notes if not note.startswith("No ")],
        **_workers(part, name),
    }


def _row(metrics: GroupMetrics, g: int, rates: list[str]) -> dict[str, Any]:
    """Return one group; its size and figures are None if they are withheld."""
    n = int(metrics.n_tasks[g])
    return {
        "group": shown(metrics.groups[g]),
        "n_tasks": n if n >= FEWEST_TASKS else None,
        "cells": [
            None if tasks_behind(metrics, g, rate) < FEWEST_TASKS
            else {
                "value": number(metrics.rates[rate][g], 4),
                "low": number(metrics.low[rate][g], 4),
                "high": number(metrics.high[rate][g], 4),
            }
            for rate in rates
        ],
    }  # fmt: skip


def tasks_behind(metrics: GroupMetrics, g: int, rate: str) -> int:
    """Return the number of tasks that a rate of a group is a share of."""
    n = int(metrics.n_tasks[g])
    if rate not in ("true_positive_rate", "false_positive_rate") or not n:
        return n
    n_positive = round(float(metrics.rates["base_rate"][g]) * n)
    return n_positive if rate == "true_positive_rate" else n - n_positive


def _difference(metrics: GroupMetrics, title: str, name: str) -> dict[str, Any]:
    value, low, high = (number(one, 4) for one in metrics.differences[name])
    return {"rate": title, "name": name.replace("_", " "), "value": value, "low": low, "high": high}


def _workers(part: GroupGaps, name: str) -> dict[str, Any]:
    """Return the biased workers of an attribute, largest bias first."""
    of_attribute = part.workers["attribute"] == name
    rows = np.flatnonzero(of_attribute & part.marked)
    bias = part.workers["bias"].astype(np.float64)
    rows = rows[np.argsort(-np.abs(bias[rows]), kind="stable")]
    return {
        "n_judged": int(of_attribute.sum()),
        "n_biased": len(rows),
        "n_shown": min(len(rows), MOST_WORKERS),
        "workers": [
            {
                "worker": shown(part.workers["worker"][r]),
                "group": shown(part.workers["group"][r]),
                "bias": number(bias[r], 3),
                "low": number(bias[r] - 1.96 * part.workers["standard_error"][r], 3),
                "high": number(bias[r] + 1.96 * part.workers["standard_error"][r], 3),
            }
            for r in rows[:MOST_WORKERS].tolist()
        ],
    }


FEWEST_WORKERS = 10  # of a group whose figures are shown
LEAST_WORKERS = 30  # of a group that allows a conclusion
N_REPLICATES = 400


def groups_of_workers(study: Study) -> dict[str, Any] | None:
    """Return figures by group of workers for each attribute; None if workers have none."""
    columns = {n: v for n, v in study.labels.worker_columns.items() if v.dtype == object}
    if not columns:
        return None
    accuracy, gaps = accuracy_of_workers(study), gaps_of_workers(study)
    return {
        "known_from": study.known_from,
        "fewest": FEWEST_WORKERS,
        "least": LEAST_WORKERS,
        "gaps": [{"attribute": gap["attribute"], "high": gap["high"], "low": gap["low"]}
                 for gap in gaps],
        "attributes": [attribute_of_workers(name, values, accuracy, gaps)
                       for name, values in columns.items()],
    }  # fmt: skip


def accuracy_of_workers(study: Study) -> Floats:
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


def gaps_of_workers(study: Study) -> list[dict[str, Any]]:
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


def attribute_of_workers(
    name: str, values: NDArray[Any], accuracy: Floats, gaps: list[dict[str, Any]]
) -> dict[str, Any]:
    """Return the figures of an attribute of workers, or the reason why there are none."""
    try:
        groups = as_groups(values, name)
    except DataError as error:
        return {"name": shown(name), "reason": shown(error), "rows": [], "n_missing": 0}
    rows = [row_of_workers(groups, g, accuracy, gaps) for g in range(len(groups.names))]
    return {"name": shown(name), "reason": None, "rows": rows, "n_missing": groups.n_missing}


def row_of_workers(
    groups: Groups, g: int, accuracy: Floats, gaps: list[dict[str, Any]]
) -> dict[str, Any]:
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
        "cells": [
            difference_of_sums(ones),
            *(difference_of_sums(gap["counts"][members]) for gap in gaps),
        ],
    }


def difference_of_sums(counts: Floats) -> dict[str, float | None]:
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
