"""What the numbers allow to say: enough labels for comparisons, and one scale of all workers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from wisecrowd.core.findings import Finding
from wisecrowd.core.messages.option_spelling import for_reader
from wisecrowd.core.part import Part, single_labels
from wisecrowd.kinds.numbers.audit.view import NumberView, number_view
from wisecrowd.kinds.numbers.container import CrowdNumbers
from wisecrowd.kinds.numbers.methods.facts import different_scales, scale_findings

FEW = 5  # labels of a worker on shared tasks
MOST_UNTESTED = 0.5  # share of labels by workers with few labels on shared tasks


@dataclass(frozen=True, eq=False)
class EvidenceReport(Part):
    """Counts of labels.

    Attributes
    ----------
    labels_per_task, labels_per_worker : float
        Medians over tasks and workers with labels.
    share_alone : float
        Share of the tasks with a single label.
    share_untested : float
        Share of the labels by workers with fewer than five labels on tasks that others labelled.
    reliability : float
        Share of the variance of the tasks' medians that is not disagreement between workers, by
        the difference of two workers; NaN without shared tasks.
    """

    labels_per_task: float
    labels_per_worker: float
    share_alone: float
    share_untested: float
    reliability: float

    def findings(self) -> list[Finding]:
        """Return tasks with a single label and workers with too few labels."""
        found = single_labels(self.share_alone)
        if not found and self.share_untested > MOST_UNTESTED:
            found.append(Finding(
                "sparse-workers", "low", self.share_untested, (),
                f"{self.share_untested:.0%} of the labels, which is the score, are by workers with "
                f"fewer than {FEW} labels on shared tasks; their bias and noise are hardly known.",
                "Give the same workers more tasks, or use the median, which needs no worker "
                "parameters.",
            ))  # fmt: skip
        return found


def measure_evidence(data: CrowdNumbers, *, view: NumberView | None = None) -> EvidenceReport:
    """Return how much the data say about tasks and workers.

    Examples
    --------
    >>> data = CrowdNumbers.from_arrays([0, 1, 2, 2], list("abca"), [1.0, 2.0, 5.0, 4.0])
    >>> [found.id for found in measure_evidence(data).findings()]
    ['one-label-per-task']
    """
    view = number_view(data) if view is None else view
    per_task = data.labels_per_task[data.labels_per_task > 0]
    per_worker = data.labels_per_worker[data.labels_per_worker > 0]
    few = view.n < FEW
    return EvidenceReport(
        float(np.median(per_task)),
        float(np.median(per_worker)),
        float(np.mean(per_task == 1)),
        float(data.labels_per_worker[few].sum() / max(data.n_annotations, 1)),
        _reliability(view),
    )


def _reliability(view: NumberView) -> float:
    """Return the intraclass correlation of single labels, with biases removed."""
    data = view.data
    several = data.labels_per_task[data.task] > 1
    if not several.any():
        return float("nan")
    bias = np.where(np.isfinite(view.bias), view.bias, 0.0)
    value = (view.value - bias[data.worker])[several]
    task = data.task[several]
    n = np.bincount(task, minlength=data.n_tasks)
    mean = np.bincount(task, value, data.n_tasks) / np.maximum(n, 1)
    within = float(np.sum((value - mean[task]) ** 2) / max(np.sum(np.maximum(n - 1, 0)), 1))
    total = float(np.var(value))
    return max(0.0, 1.0 - within / total) if total > 0 else float("nan")


@dataclass(frozen=True, eq=False)
class ScaleReport(Part):
    """Skewness of the numbers about the median of their task.

    Attributes
    ----------
    scale : {"linear", "log"}
        The scale on which the disagreement is more symmetric. All parts of the audit use it.
    skewness, log_skewness : float
        Of the numbers and of their logarithms; the second is NaN if a number is not positive.
    own_scales : tuple of Finding
        Workers whose numbers are a multiple of those of the others.
    """

    scale: str
    skewness: float
    log_skewness: float
    own_scales: tuple[Finding, ...] = ()

    def findings(self) -> list[Finding]:
        """Return workers who use another scale, and the suggestion of a log scale."""
        if self.scale == "linear":
            return [*self.own_scales]
        how = for_reader('method="gaussian-em", scale="log"', "-m gaussian-em -p scale=log")
        return [*self.own_scales, Finding(
            "log-scale", "low", self.skewness - abs(self.log_skewness), (),
            f"The numbers of a task are skewed (skewness {self.skewness:.1f}), and their "
            f"logarithms are not ({self.log_skewness:.1f}); the score is the difference. The "
            "audit looked at the logarithms.",
            f"Errors seem to be factors rather than amounts: compare with a log scale ({how}).",
        )]  # fmt: skip


def check_scale(data: CrowdNumbers, *, view: NumberView | None = None) -> ScaleReport:
    """Return whether logarithms are more symmetric about their task than the numbers are.

    A log scale is suggested if all numbers are positive and the logarithm lowers the absolute
    skewness of the numbers about the median of their task by more than 1.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> task, worker = np.divmod(np.arange(1000), 10)
    >>> value = np.exp(rng.normal(3, 1, 100)[task] + rng.normal(0, 0.7, 1000))
    >>> check_scale(CrowdNumbers.from_arrays(task, worker, value)).scale
    'log'
    """
    view = number_view(data) if view is None else view
    own = tuple(scale_findings(data, different_scales(data)))
    return ScaleReport(view.scale, view.skewness, view.log_skewness, own)
