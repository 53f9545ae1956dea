"""Workers who answer much faster than the others; needs durations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.findings import Finding
from wisecrowd.core.messages.descriptions import describe_ids
from wisecrowd.core.parameter_checks import check_integer, check_number
from wisecrowd.core.part import NotApplicable, Part, Table
from wisecrowd.core.statistics import benjamini_hochberg, robust_variance, student_tail
from wisecrowd.core.types import Floats
from wisecrowd.kinds.classes.audit.shared import fit_or_default
from wisecrowd.kinds.classes.columns import as_crowd_labels
from wisecrowd.kinds.classes.container import CrowdLabels

MUCH_FASTER = 1 / 3  # maximum share of the usual time to report a worker
EXTREME, RATE_IF_WRONG = 1 / 8, 0.05  # such a share of less accurate workers needs less certainty
LEAST_SPREAD = 0.2  # minimum spread: workers differ by a fifth in any crowd
FEW_WORKERS = 8  # minimum number of workers to estimate the usual spread


@dataclass(frozen=True, eq=False)
class ResponseTimes(Part):
    """Speed of each worker compared with others on the same tasks.

    Attributes
    ----------
    workers, n_labels : (n_judged,)
        Workers with enough durations, and their numbers of durations.
    median_duration : (n_judged,)
        Median duration in the unit of the data.
    speed : (n_judged,)
        Typical time relative to that of others on the same tasks; 1 for the typical worker.
    p_value, q_value : (n_judged,)
        P-value of such speed, and adjusted for many workers.
    agreement, agreement_error : (n_judged,)
        Agreement with the result, and its standard error.
    typical_agreement, rate : float
        Median agreement of the judged workers; accepted false discovery rate.
    scored : bool
        Whether times count in the score of spammers, which then names workers. Those of unordered
        classes do.
    """

    workers: NDArray[Any]
    n_labels: NDArray[np.intp]
    median_duration: Floats
    speed: Floats
    p_value: Floats
    q_value: Floats
    agreement: Floats
    agreement_error: Floats
    typical_agreement: float
    rate: float
    scored: bool = False

    def findings(self) -> list[Finding]:
        """Return findings on fast workers who agree less than others and, as info, on the rest."""
        fast = (self.q_value < self.rate) & (self.speed < MUCH_FASTER)
        if self.scored:
            return self._finding(
                fast, "fast", "info", "(the search for spammers counts it)",
                "Nothing, unless they are named as spammers; they may have practice.",
            )  # fmt: skip
        worse = self.agreement + 2 * self.agreement_error < self.typical_agreement
        # In a crowd of eight, nobody can be fast enough for a low rate; errors are evidence, too.
        extreme = (self.q_value < max(RATE_IF_WRONG, self.rate)) & (self.speed < EXTREME)
        return [
            *self._finding(
                (fast | extreme) & worse, "fast-and-wrong", "medium",
                "and agree less with the result than others",
                "Do without them, or with less of them.",
            ),
            *self._finding(
                fast & ~worse, "fast", "info",
                "but agree with the result as others do", "Nothing; they may have practice.",
            ),
        ]  # fmt: skip

    def _finding(
        self, chosen: NDArray[np.bool_], name: str, severity: str, how: str, remedy: str
    ) -> list[Finding]:
        found = np.flatnonzero(chosen)
        if not len(found):
            return []
        found = found[np.argsort(self.speed[found], kind="stable")]
        first = found[0]
        explanation = (
            f"{len(found)} of {len(self.workers)} workers answer much faster than others on the "
            f"same tasks {how}: {describe_ids(self.workers[found])}. "
            f"{describe_ids(self.workers[[first]])} takes "
            f"{self.speed[first]:.0%} of the usual time and agrees with the "
            f"result on {self.agreement[first]:.0%} of the labels (typical: "
            f"{self.typical_agreement:.0%})."
        )
        affected = tuple(self.workers[found].tolist())
        return [
            Finding(name, severity, 1 - float(self.speed[first]), affected, explanation, remedy)
        ]

    def tables(self) -> dict[str, Table]:
        """Return ``response_times``: one row per judged worker."""
        return {
            "response_times": {
                "worker": self.workers,
                "n_labels": self.n_labels,
                "median_duration": self.median_duration,
                "speed": self.speed,
                "q_value": self.q_value,
                "agreement_with_result": self.agreement,
            }
        }


def find_fast_workers(
    labels: Any, *, fit: Any = None, min_labels: int = 10, rate: float = 0.01
) -> ResponseTimes:
    r"""Find workers who are too fast to have looked at the tasks.

    The mean log-duration of the others on the same task is subtracted from each log-duration. The
    median per worker is compared with the median of all workers. The variance is the sampling
    variance plus a robust estimate of the variance between workers.

    Parameters
    ----------
    labels : CrowdLabels with durations, or data of any accepted form
    fit : fitted method, optional
        A fit for the accuracies of the workers; by default a fit of the default method.
    min_labels : int, default 10
        Minimum number of durations; other workers are not judged.
    rate : float, default 0.01
        False discovery rate among the reported workers (Benjamini and Hochberg).

    Examples
    --------
    >>> from wisecrowd import CrowdLabels, simulate
    >>> made = simulate.crowd(200, 9 * simulate.OneCoinWorkers(8, 2) + 1 * simulate.Spammers())
    >>> table = made.labels.to_dict()
    >>> seconds = np.random.default_rng(0).lognormal(3, 0.5, len(table["task"]))
    >>> labels = CrowdLabels.from_arrays(
    ...     table["task"], table["worker"], table["label"],
    ...     duration=np.where(table["worker"] == 9, seconds / 20, seconds),
    ... )
    >>> [(found.id, found.affected) for found in find_fast_workers(labels).findings()]
    [('fast', (9,))]
    """
    check_integer("min_labels", min_labels, 5)
    check_number("rate", rate, 0.0, 1.0)
    known = as_crowd_labels(labels)
    if "duration" not in known.columns:
        raise NotApplicable("The labels have no durations, so that nobody can be seen to be fast.")
    duration = known.columns["duration"]
    timed = known.select_annotations(np.isfinite(duration) & (duration > 0))
    n = timed.labels_per_worker
    judged = np.flatnonzero(n >= min_labels)
    if len(judged) < FEW_WORKERS:
        raise NotApplicable(
            f"Fewer than {FEW_WORKERS} workers have {min_labels} durations: too few to say what "
            "is usual."
        )
    model = fit_or_default(known, fit)
    centre, error = _medians(timed, relative_logs(timed), judged)
    usual = float(np.median(centre))
    spread = max(float(np.sqrt(robust_variance(centre - usual, error**2))), LEAST_SPREAD)
    p = student_tail((usual - centre) / np.hypot(spread, error), len(judged))
    seconds, _ = _medians(timed, timed.columns["duration"], judged)
    agreement = np.asarray(model.worker_accuracy_)[judged]
    return ResponseTimes(
        workers=known.workers[judged],
        n_labels=n[judged],
        median_duration=seconds,
        speed=np.exp(centre - usual),
        p_value=p,
        q_value=benjamini_hochberg(p),
        agreement=agreement,
        agreement_error=np.asarray(model.worker_accuracy_error_)[judged],
        typical_agreement=float(np.median(agreement)),
        rate=rate,
        scored=not known.ordered,
    )


def relative_logs(timed: CrowdLabels) -> Floats:
    """Return log durations minus the others' mean on the same task, for tasks with two or more."""
    logs = np.log(timed.columns["duration"])
    n = timed.labels_per_task[timed.task]
    total = np.bincount(timed.task, weights=logs, minlength=timed.n_tasks)[timed.task]
    others = (total - logs) / np.maximum(n - 1, 1)
    return np.asarray(logs - np.where(n >= 3, others, np.median(logs)))


def _medians(timed: CrowdLabels, values: Floats, judged: NDArray[np.intp]) -> tuple[Floats, Floats]:
    """Return the median of each judged worker's values and its standard error."""
    indptr, order = timed.by_worker
    by_worker = [values[order[indptr[j] : indptr[j + 1]]] for j in judged.tolist()]
    centre = np.array([np.median(x) for x in by_worker])
    # A median of n normal values has 1.2533 times the standard error of their mean.
    error = np.array([1.2533 * np.std(x, ddof=1) / np.sqrt(len(x)) for x in by_worker])
    return centre, error
