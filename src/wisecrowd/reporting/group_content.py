"""Groups of tasks: rates of a class by group, their differences, and biased workers."""

from __future__ import annotations

from typing import Any

import numpy as np

from wisecrowd.audit.group_gaps import LEAST_GOLD, GroupGaps
from wisecrowd.metrics.fairness import GroupMetrics
from wisecrowd.reporting.study import Study
from wisecrowd.reporting.text import shown
from wisecrowd.reporting.worker_rows import number

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
