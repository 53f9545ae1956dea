"""Money and time: what good labels cost, whom to thank, and whom to give no more tasks."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from wisecrowd.core.exceptions import ParameterError
from wisecrowd.core.messages.option_spelling import option
from wisecrowd.core.types import Floats
from wisecrowd.io.inventory import MODEL
from wisecrowd.reporting.display import shown
from wisecrowd.reporting.verdict import flags_by_worker, spend

MOST_NAMED = 5  # workers to thank, or to stop
LEAST_LABELS = 20  # of a worker to thank
# Findings after which a worker should get no more tasks.
STOP = (
    "spammers", "fast-and-wrong", "random-voters", "adversaries",
    "constant-answers", "marks-nothing", "random-spans", "draws-nothing", "empty-texts",
    "constant-texts", "unrelated-texts",
)  # fmt: skip


def with_cost(data: Any, cost: float) -> Any:
    """Return annotations that cost the same amount each.

    Examples
    --------
    >>> from wisecrowd import CrowdLabels
    >>> labels = CrowdLabels.from_arrays(["a"], ["x"], [0])
    >>> with_cost(labels, 0.05).columns["cost"].tolist()
    [0.05]
    """
    if not (math.isfinite(cost) and cost >= 0):
        raise ParameterError(
            f"{option('cost', str(cost))} is not a price; give a number of at least 0, or the name "
            "of a column."
        )
    columns = {**data.columns, "cost": np.full(data.n_annotations, float(cost))}
    return replace(data, columns=columns)


def money(study: Any) -> dict[str, Any] | None:
    """Return costs and durations by good label, and workers to thank and to stop.

    It is None if the labels have neither costs nor durations.
    """
    labels = study.labels
    paid, time = spend(labels), _durations(study)
    if paid is None and time is None:
        return None
    flags = flags_by_worker(study)
    table = study.fit.worker_columns()
    share = table.get("agreement_with_result")
    by_worker = _Workers(study, None if share is None else np.asarray(share, float), flags)
    right = _right_tasks(study)
    return {
        "spend": paid,
        "time": time,
        "n_right": right,
        "per_right": paid["total"] / right if paid is not None and right else None,
        "time_per_right": time["total"] / right if time is not None and right else None,
        "groups": by_worker.groups(),
        "thank": by_worker.thank(table),
        "stop": by_worker.stop(),
    }


def _durations(study: Any) -> dict[str, float] | None:
    """Return the total and the median duration of a label; None if unknown."""
    given = study.labels.columns.get("duration")
    known = np.array([]) if given is None else np.asarray(given, dtype=np.float64)
    known = known[np.isfinite(known)]
    if not len(known):
        return None
    return {"total": float(known.sum()), "median": float(np.median(known)), "n": len(known)}


def _right_tasks(study: Any) -> float | None:
    """Return the number of right results by known classes; None without any."""
    measured = study.audit.parts.get("confidence")
    if measured is None or not measured.n_gold:
        return None
    return float(measured.accuracy * measured.n_tasks)


class _Workers:
    """Sums over groups of workers."""

    def __init__(self, study: Any, agreement: Floats | None, flags: Any) -> None:
        labels = study.labels
        self.labels, self.agreement, self.flags = labels, agreement, flags
        self.n = labels.labels_per_worker
        n_classes = getattr(labels, "n_classes", 0)
        chance = 1 / n_classes if n_classes > 1 else 0.0
        self.beyond = np.zeros(len(self.n))  # labels that agree with the result beyond chance
        if agreement is not None:
            self.beyond = self.n * (agreement - chance) / (1 - chance)
        self.beyond[[j for j, names in flags.items() if set(names) & set(STOP)]] = 0.0
        self.cost = self._sums("cost")
        self.time = self._sums("duration")

    def _sums(self, name: str) -> Floats | None:
        """Return the sum of a column by worker (n_workers,); None if there is no column."""
        values = self.labels.columns.get(name)
        if values is None:
            return None
        known = np.nan_to_num(np.asarray(values, dtype=np.float64))
        sums = np.bincount(self.labels.worker, known, self.labels.n_workers)
        return sums.astype(np.float64)

    def groups(self) -> list[dict[str, Any]]:
        """Return rows for workers with and without findings, models, and all."""
        present = self.n > 0
        flagged = np.zeros(len(self.n), dtype=bool)
        flagged[list(self.flags)] = True
        kinds = self.labels.worker_kind
        model = np.zeros(len(self.n), dtype=bool)
        if kinds is not None:
            model = np.array([kind == MODEL for kind in kinds.tolist()], dtype=bool)
        rows = (
            ("workers without findings", present & ~flagged & ~model),
            ("workers with findings", present & flagged & ~model),
            ("models", present & model),
            ("all", present),
        )
        return [{"who": name, **self._row(some)} for name, some in rows if some.any()]

    def _row(self, some: Any) -> dict[str, Any]:
        """Return the sums of some workers, and what labels that agree with the result cost.

        Random labels agree by chance. Only agreement beyond chance is counted, and none of
        spammers, or workers who guess fast would be the cheapest.
        """
        n = int(self.n[some].sum())
        share = None
        if self.agreement is not None:
            share = float(np.average(self.agreement[some], weights=self.n[some]))
        found = {
            "n_workers": int(np.count_nonzero(some)), "n_labels": n,
            "agreement_with_result": share,
        }  # fmt: skip
        beyond = float(self.beyond[some].sum())
        for name, sums in (("cost", self.cost), ("time", self.time)):
            total = None if sums is None else float(sums[some].sum())
            found[name] = total
            found[f"{name}_per_agreement"] = (
                total / beyond if total is not None and beyond > 0 else None
            )
        return found

    def thank(self, table: Any) -> list[dict[str, Any]]:
        """Return the workers who agree most beyond an average worker."""
        if self.agreement is None or "standard_error" not in table:
            return []
        low = np.nan_to_num(self.agreement - 1.96 * np.asarray(table["standard_error"], float))
        usual = float(np.average(self.agreement, weights=np.maximum(self.n, 1e-9)))
        gain = np.round((low - usual) * self.n, 9)
        good = (gain > 0) & (self.n >= LEAST_LABELS)
        good[list(self.flags)] = False
        order = np.flatnonzero(good)
        order = order[np.lexsort((order, -gain[order]))][:MOST_NAMED]
        return [self._named(j) for j in order.tolist()]

    def stop(self) -> list[dict[str, Any]]:
        """Return the workers who should get no more tasks, the busiest first."""
        who = [j for j, names in self.flags.items() if set(names) & set(STOP)]
        who.sort(key=lambda j: (-int(self.n[j]), j))
        return [self._named(j) for j in who[:MOST_NAMED]]

    def _named(self, j: int) -> dict[str, Any]:
        one = np.zeros(len(self.n), dtype=bool)
        one[j] = True
        name = shown(self.labels.workers[j : j + 1].tolist()[0])
        why: Iterable[str] = self.flags.get(j, [])
        return {"worker": name, **self._row(one), "flags": list(why)}
