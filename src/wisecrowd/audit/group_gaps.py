"""Gaps between groups of tasks: rates of a class, and workers who judge groups differently."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.attributes import Groups, task_groups
from wisecrowd.core.exceptions import DataError, ParameterError
from wisecrowd.core.findings import Finding
from wisecrowd.core.ids.encoding import lookup
from wisecrowd.core.messages.descriptions import describe_ids
from wisecrowd.core.messages.option_spelling import for_reader
from wisecrowd.core.parameter_checks import check_number
from wisecrowd.core.part import NotApplicable, Part, Table
from wisecrowd.core.statistics import benjamini_hochberg
from wisecrowd.core.types import Floats
from wisecrowd.kinds.classes.audit.shared import leave_one_out_posteriors
from wisecrowd.kinds.classes.columns import as_crowd_labels
from wisecrowd.kinds.classes.container import CrowdLabels
from wisecrowd.kinds.classes.truth import as_gold
from wisecrowd.metrics.fairness import LEAST_TASKS, GroupMetrics, by_group

LEAST_LABELS = 20  # of a worker in each of two groups, to be judged
LEAST_GOLD = 50  # gold tasks in each group, to speak of errors
SMALL_GAP = 0.1  # of a worker, to be reported
MEDIUM, HIGH = 0.1, 0.2  # lower ends of the gap of error rates


@dataclass(frozen=True, eq=False)
class GroupGaps(Part):
    """Rates by group of tasks, and workers who judge groups by different measures.

    Attributes
    ----------
    metrics : mapping of attribute to GroupMetrics
        Of the fitted labels; with gold, of tasks with gold, against it.
    with_truth : mapping of attribute to bool
        Whether every group has enough gold to speak of errors.
    positive : class
    workers : table
        One row per attribute and judged worker: by how much more often than its skills explain it
        gives the positive class in the group where that is largest than in the one where it is
        smallest, the standard error, and the q-value.
    rate : float
        Accepted false discovery rate.
    """

    metrics: dict[str, GroupMetrics]
    with_truth: dict[str, bool]
    positive: Any
    workers: Table
    rate: float

    def to_dict(self) -> dict[str, Any]:
        """Return the tables as plain data for JSON."""
        return {
            "positive": self.positive,
            "tables": {
                name: {column: list(values) for column, values in table.items()}
                for name, table in self.tables().items()
            },
        }

    def tables(self) -> dict[str, Table]:
        """Return the rates by group, the differences, and the judged workers."""
        groups: dict[str, list[Any]] = {}
        gaps: dict[str, list[Any]] = {}
        for attribute, found in self.metrics.items():
            table = found.table()
            groups.setdefault("attribute", []).extend([attribute] * len(table["group"]))
            for name, values in table.items():
                groups.setdefault(name, []).extend(values.tolist())
            for name, (value, low, high) in found.differences.items():
                row = {"attribute": attribute, "difference": name, "value": value}
                for column, one in (row | {"low": low, "high": high}).items():
                    gaps.setdefault(column, []).append(one)
        return {
            "group_rates": {name: np.array(values, object) for name, values in groups.items()},
            "group_gaps": {name: np.array(values, object) for name, values in gaps.items()},
            "group_workers": self.workers,
        }

    def findings(self) -> list[Finding]:
        """Return one finding per attribute with a gap, and one on workers."""
        found = [
            finding
            for attribute, metrics in self.metrics.items()
            if (finding := self._of_attribute(attribute, metrics)) is not None
        ]
        return found + self._of_workers()

    def _of_attribute(self, attribute: str, metrics: GroupMetrics) -> Finding | None:
        parity, low, high = metrics.differences["demographic_parity_difference"]
        if not low > 0.02:  # also if undefined
            return None
        rates = zip(metrics.groups, metrics.rates["selection_rate"], metrics.n_tasks, strict=True)
        shown = ", ".join(f"{name} {rate:.2f}" for name, rate, n in rates if n >= LEAST_TASKS)
        said = (
            f"{self.positive!r} is given to groups of {attribute} at different rates: {shown}; the "
            f"largest difference is {parity:.2f} (95% interval {low:.2f} to {high:.2f})."
        )
        severity, remedy = (
            "info",
            (
                "The labels do not say whether the groups differ or the crowd is biased: give gold "
                f"labels of each group, {LEAST_GOLD} or more."
            ),
        )
        if self.with_truth[attribute]:
            odds, odds_low, odds_high = metrics.differences["equalized_odds_difference"]
            said += (
                f" By gold, error rates differ by {odds:.2f} ({odds_low:.2f} to {odds_high:.2f}), "
                f"and the true rates by {metrics.differences['base_rate_difference'][0]:.2f}."
            )
            severity = "high" if odds_low > HIGH else "medium" if odds_low > MEDIUM else "low"
            decide = for_reader("wisecrowd.fairness.decide", "aggregate --fair")
            remedy = f"See whom the gap harms, and weigh decisions with bounded gaps: {decide}."
        return Finding("group-gap", severity, parity, (), said, remedy)

    @property
    def marked(self) -> NDArray[np.bool_]:
        """(n_rows,): whether a row of ``workers`` is a finding."""
        q_value, bias = (np.asarray(self.workers[name], float) for name in ("q_value", "bias"))
        return np.asarray((q_value < self.rate) & (np.abs(bias) >= SMALL_GAP))

    def _of_workers(self) -> list[Finding]:
        marked = self.marked
        if not marked.any():
            return []
        ids = list(dict.fromkeys(self.workers["worker"][marked].tolist()))
        worst = float(np.abs(self.workers["bias"][marked].astype(float)).max())
        n = len(set(self.workers["worker"].tolist()))
        named = np.empty(len(ids), dtype=object)
        named[:] = ids
        return [
            Finding(
                "group-bias", "medium", worst, tuple(ids),
                f"{len(ids)} of {n} workers ({describe_ids(named)}) judge one group "
                f"of tasks by another measure than the rest of the crowd does, by up to "
                f"{worst:.2f}.",
                "Fit group-confusion, which allows for it, or review their labels of these groups.",
            )
        ]  # fmt: skip


def find_group_gaps(
    labels: Any,
    *,
    attributes: Sequence[str] | None = None,
    positive: Any = None,
    gold: Any = None,
    fit: Any = None,
    source: Any = None,
    rate: float = 0.01,
) -> GroupGaps:
    r"""Measure gaps between groups of tasks, and find workers who judge groups differently.

    The bias of worker j in group a is the mean of :math:`1[y_{ij} = P] - p_{ij}(P)` over its labels
    there; :math:`p_{ij}` predicts the label from the labels of the others and the worker's
    confusion matrix. A worker's figure is the largest minus the smallest bias of a group. A bias
    that all workers share cannot be seen this way.

    Parameters
    ----------
    labels : CrowdLabels with task attributes
        See :func:`wisecrowd.fairness.with_task_attributes`.
    attributes : sequence of str, optional
        Attributes to look at; by default all.
    positive : class, optional
        The class that is given or refused; by default the last one.
    gold : mapping of task to class, optional
    fit : fitted method, optional
        Its labels are compared; by default those of ``source``.
    source : fitted method with a label law, optional
        Workers are compared by it if ``fit`` has no label law.
    rate : float
        False discovery rate among workers.
    """
    from wisecrowd.kinds.classes.audit.shared import fit_with_law

    check_number("rate", rate, 0.0, 1.0)
    known = as_crowd_labels(labels)
    named = _named(known, attributes)
    if known.n_classes < 2:
        raise NotApplicable("There is one class only, so that groups cannot differ.")
    chosen = known.n_classes - 1 if positive is None else _place(positive, known)
    model = fit_with_law(known, fit, source)
    said = lookup((model if fit is None else fit).labels_, known.classes)
    truth = as_gold(gold, known)
    rest = _unexplained(known, model, chosen)
    metrics, with_truth, rows = {}, {}, []
    for attribute in named:
        try:
            groups = task_groups(known, attribute)
        except DataError as error:
            if attributes is not None:
                raise
            raise NotApplicable(str(error)) from None
        metrics[attribute], with_truth[attribute] = _metrics(known, said, groups, truth, chosen)
        rows += _biases(known, groups, rest, attribute)
    columns = ("attribute", "worker", "group", "bias", "standard_error", "p_value")
    table = {
        name: np.array([row[number] for row in rows], dtype=object)
        for number, name in enumerate(columns)
    }
    p = np.array([row[-1] for row in rows], dtype=np.float64)
    table["q_value"] = benjamini_hochberg(p) if len(p) else p
    given = known.classes[chosen : chosen + 1].tolist()[0]
    return GroupGaps(metrics, with_truth, given, table, rate)


def check_group_options(
    labels: CrowdLabels, attributes: Sequence[str] | None = None, positive: Any = None
) -> None:
    """Refuse attributes and a positive class that the labels do not have."""
    for name in attributes or ():
        task_groups(labels, name)
    if positive is not None:
        _place(positive, labels)


def _named(labels: CrowdLabels, attributes: Sequence[str] | None) -> list[str]:
    if attributes is not None:
        return list(dict.fromkeys(attributes))
    found = [name for name, column in labels.task_columns.items() if column.dtype == object]
    if not found:
        raise NotApplicable("The tasks have no attributes, so that there are no groups to compare.")
    return found


def _place(positive: Any, labels: CrowdLabels) -> int:
    texts = [str(one) for one in labels.classes.tolist()]
    if str(positive) not in texts:
        raise ParameterError(
            f"The positive class {positive!r} is not among the classes ({', '.join(texts)})."
        )
    return texts.index(str(positive))


def _metrics(
    labels: CrowdLabels, said: NDArray[Any], groups: Groups, truth: Any, chosen: int
) -> tuple[GroupMetrics, bool]:
    """Return the metrics against gold if every group has enough of it, else of all tasks."""
    labelled = labels.labels_per_task > 0
    if truth is not None:
        kept = (truth >= 0) & labelled
        counts = np.bincount(groups.code[kept & (groups.code >= 0)], minlength=len(groups.names))
        if (counts >= LEAST_GOLD).sum() >= 2:
            some = Groups(groups.code[kept], groups.names)
            return by_group(truth[kept], said[kept], some, positive=chosen), True
    some = Groups(groups.code[labelled], groups.names)
    return by_group(None, said[labelled], some, positive=chosen), False


def _unexplained(labels: CrowdLabels, model: Any, chosen: int) -> Floats:
    """Return 1[label is positive] minus its prediction from the others, NaN if nobody else."""
    law = model.label_law()
    found = np.full(labels.n_annotations, np.nan)
    for one in leave_one_out_posteriors(labels, law, 1):
        expected = law.probas(one.belief, one.worker, labels.task[one.rows])[:, chosen]
        found[one.rows] = (one.label == chosen) - expected
    return found


def _biases(
    labels: CrowdLabels, groups: Groups, rest: Floats, attribute: str
) -> list[tuple[Any, ...]]:
    """Return a row for each worker with enough labels in two groups."""
    from scipy.special import ndtr

    J, G = labels.n_workers, len(groups.names)
    code = groups.code[labels.task]
    kept = (code >= 0) & ~np.isnan(rest)
    cell = labels.worker[kept].astype(np.int64) * G + code[kept]
    n = np.bincount(cell, minlength=J * G).reshape(J, G)
    total = np.bincount(cell, rest[kept], J * G).reshape(J, G)
    squares = np.bincount(cell, rest[kept] ** 2, J * G).reshape(J, G)
    mean = total / np.maximum(n, 1)
    variance = np.maximum(squares / np.maximum(n, 1) - mean**2, 1e-4) / np.maximum(n - 1, 1)
    rows = []
    for j in np.flatnonzero((n >= LEAST_LABELS).sum(axis=1) >= 2):
        usable = np.flatnonzero(n[j] >= LEAST_LABELS)
        high, low = usable[mean[j, usable].argmax()], usable[mean[j, usable].argmin()]
        error = float(np.sqrt(variance[j, high] + variance[j, low]))
        bias = float(mean[j, high] - mean[j, low])
        # The largest of several differences: Bonferroni over the pairs of groups.
        pairs = len(usable) * (len(usable) - 1) / 2
        p = min(1.0, pairs * 2 * float(ndtr(-bias / error)))
        name = labels.workers[j : j + 1].tolist()[0]
        rows.append((attribute, name, groups.names[high], bias, error, p))
    return rows
