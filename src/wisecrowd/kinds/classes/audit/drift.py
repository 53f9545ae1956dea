"""Workers whose quality changes over time, and the remedy: their labels after a moment go."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.annotations import Annotations
from wisecrowd.core.exceptions import DataError, ParameterError
from wisecrowd.core.findings import Finding
from wisecrowd.core.ids.encoding import lookup
from wisecrowd.core.messages.descriptions import Places, describe_ids, describe_value, suggestion
from wisecrowd.core.messages.option_spelling import for_reader
from wisecrowd.core.parameter_checks import check_integer, check_number
from wisecrowd.core.part import NotApplicable, Part, Table
from wisecrowd.core.statistics import benjamini_hochberg
from wisecrowd.core.types import Floats
from wisecrowd.core.value_columns import as_timestamps
from wisecrowd.kinds.classes.audit.shared import fit_with_law, leave_one_out_posteriors
from wisecrowd.kinds.classes.columns import as_crowd_labels
from wisecrowd.kinds.classes.container import CrowdLabels

SMALL_CHANGE = 0.1  # minimum change of the probability of a correct label to report


@dataclass(frozen=True, eq=False)
class Drift(Part):
    """Largest change of quality of each worker.

    Attributes
    ----------
    workers, n_labels : (n_judged,)
        Workers with enough timestamped labels, and their numbers of labels.
    statistic, p_value, q_value : (n_judged,)
        Largest standardised cumulative sum, its p-value, and the p-value adjusted for many workers.
    before, after : (n_judged,)
        Mean leave-one-out probability that the worker's label is correct, before and after the
        change.
    change : (n_judged,)
        Difference after minus before that the worker's skill and the tasks do not explain.
    moment : (n_judged,)
        Time of its last label before the change.
    rate : float
        Accepted false discovery rate.
    """

    workers: NDArray[Any]
    n_labels: NDArray[np.intp]
    statistic: Floats
    p_value: Floats
    q_value: Floats
    before: Floats
    after: Floats
    change: Floats
    moment: NDArray[Any]
    rate: float

    def findings(self) -> list[Finding]:
        """Return findings on workers who became worse and, as info, on those who became better."""
        changed = (self.q_value < self.rate) & (np.abs(self.change) >= SMALL_CHANGE)
        worse = np.flatnonzero(changed & (self.change < 0))
        better = np.flatnonzero(changed & (self.change > 0))
        found = []
        if len(worse):
            worse = worse[np.argsort(self.change[worse], kind="stable")]
            first = worse[0]
            found.append(
                Finding(
                    "drift", "medium", -float(self.change[first]),
                    tuple(self.workers[worse].tolist()),
                    f"{len(worse)} of {len(self.workers)} workers became worse over time: "
                    f"{describe_ids(self.workers[worse])}. Labels of "
                    f"{describe_ids(self.workers[[first]])} agree with the others' "
                    f"{self.before[first]:.2f} until {self.moment[first]} and "
                    f"{self.after[first]:.2f} after that.",
                    "Leave out their labels after the change: "
                    + for_reader("wisecrowd.audit.drop_after.", "--drop-after WORKER=TIME."),
                )
            )  # fmt: skip
        if len(better):
            better = better[np.argsort(-self.change[better], kind="stable")]
            found.append(
                Finding(
                    "drift-upwards", "info", float(self.change[better[0]]),
                    tuple(self.workers[better].tolist()),
                    f"{len(better)} of {len(self.workers)} workers became better over time: "
                    f"{describe_ids(self.workers[better])}.",
                    "Nothing, or ask again for the labels from before.",
                )
            )  # fmt: skip
        return found

    def tables(self) -> dict[str, Table]:
        """Return ``drift``: one row per judged worker."""
        return {
            "drift": {
                "worker": self.workers,
                "n_labels": self.n_labels,
                "before": self.before,
                "after": self.after,
                "change": self.change,
                "moment": self.moment,
                "p_value": self.p_value,
                "q_value": self.q_value,
            }
        }


def find_drift(labels: Any, *, fit: Any = None, min_labels: int = 30, rate: float = 0.001) -> Drift:
    r"""Test every worker for a change of quality over time.

    The score of a label is its leave-one-out probability :math:`q_i^{-j}(y_{ij})`, minus the value
    expected from the worker's confusion matrix. The shortfall of the other workers on the same task
    is removed too. Thus neither another mix of classes nor hard tasks look like drift. The test
    statistic is the largest cumulative sum of the scores over time, divided by its standard
    deviation. Without change it has the Kolmogorov distribution. It detects jumps and trends.

    Parameters
    ----------
    labels : CrowdLabels with timestamps, or data of any accepted form
    fit : fitted method, optional
        A fit with a label law; otherwise a fit of the default method is used.
    min_labels : int, default 30
        Minimum number of timestamped labels; other workers are not judged.
    rate : float, default 0.001
        False discovery rate among the reported workers (Benjamini and Hochberg).

    References
    ----------
    E. S. Page (1954). Continuous inspection schemes. Biometrika 41, 100-115.

    Examples
    --------
    >>> from wisecrowd import CrowdLabels, simulate
    >>> made = simulate.crowd(300, 8 * simulate.OneCoinWorkers(8, 2), n_classes=3).labels
    >>> table = made.to_dict()
    >>> late = (table["worker"] == 3) & (table["task"] >= 150)  # from then on it always says 0
    >>> labels = CrowdLabels.from_arrays(
    ...     table["task"], table["worker"], np.where(late, 0, table["label"]),
    ...     timestamp=table["task"],
    ... )
    >>> [(found.id, found.affected) for found in find_drift(labels).findings()]
    [('drift', (3,))]
    """
    check_integer("min_labels", min_labels, 5)
    check_number("rate", rate, 0.0, 1.0)
    known = as_crowd_labels(labels)
    if "timestamp" not in known.columns:
        raise NotApplicable("The labels have no timestamps, so that nobody can be seen to drift.")
    model = fit_with_law(known, fit)
    time = known.columns["timestamp"]
    scores = _scores(known, model)
    indptr, order = known.by_worker
    found = [
        change
        for j in np.flatnonzero(known.labels_per_worker >= min_labels).tolist()
        if (change := _change(j, order[indptr[j] : indptr[j + 1]], time, scores, min_labels))
    ]
    if not found:
        raise NotApplicable(
            f"No worker has {min_labels} labels with different times, too few to see drift."
        )
    columns = [list(column) for column in zip(*found, strict=True)]
    worker, n, statistic, p, before, after, shift, moment = columns
    return Drift(
        workers=known.workers[worker],
        n_labels=np.array(n),
        statistic=np.array(statistic),
        p_value=np.array(p),
        q_value=benjamini_hochberg(np.array(p)),
        before=np.array(before),
        after=np.array(after),
        change=np.array(shift),
        moment=np.array(moment),
        rate=rate,
    )


class _Change(NamedTuple):
    worker: int
    n_labels: int
    statistic: float
    p_value: float
    before: float
    after: float
    change: float
    moment: Any


class _Scores(NamedTuple):
    """Leave-one-out probability and unexplained residual of each annotation (E,)."""

    score: Floats
    rest: Floats


def _scores(labels: CrowdLabels, model: Any) -> _Scores:
    """Score all labels; NaN where no other worker labelled the task."""
    score, surprise = (np.full(labels.n_annotations, np.nan) for _ in range(2))
    law = model.label_law()
    for one in leave_one_out_posteriors(labels, law, 1):
        seen = one.belief[np.arange(len(one.rows)), one.label]
        said = law.probas(one.belief, one.worker, labels.task[one.rows])
        expected = (said * one.belief).sum(axis=1)
        score[one.rows], surprise[one.rows] = seen, seen - expected
    task, n = labels.task, labels.labels_per_task[labels.task]
    total = np.bincount(task, weights=np.nan_to_num(surprise), minlength=labels.n_tasks)[task]
    of_others = (total - surprise) / np.maximum(n - 1, 1)
    return _Scores(score, surprise - _skill(labels, model)[labels.worker] * of_others)


def _skill(labels: CrowdLabels, model: Any) -> Floats:
    """Return the margin of each worker over chance (J,), relative to that of the mean label.

    A hard task lowers the scores of workers in proportion to this margin.
    """
    beyond = np.asarray(model.worker_accuracy_) - 1 / labels.n_classes
    usual = float(beyond @ labels.labels_per_worker) / labels.n_annotations
    return np.clip(beyond / usual, 0, 2) if usual > 1e-6 else np.ones_like(beyond)


def _change(
    worker: int, rows: NDArray[np.int64], times: NDArray[Any], scores: _Scores, min_labels: int
) -> _Change | None:
    """Return the largest change of one worker's cumulative sum; None if it cannot be judged."""
    from scipy.special import kolmogorov

    time = times[rows]
    missing = np.isnat(time) if time.dtype.kind == "M" else np.isnan(time)
    usable = np.flatnonzero(~missing & ~np.isnan(scores.rest[rows]))
    rows = rows[usable[np.argsort(time[usable], kind="stable")]]
    time, score, rest = times[rows], scores.score[rows], scores.rest[rows]
    last_of_moment = np.flatnonzero(time[1:] != time[:-1])  # equal times have no order
    if len(rows) < min_labels or not len(last_of_moment):
        return None
    rest = rest - rest.mean()
    spread = float(np.sqrt((rest**2).sum()))
    if spread < 1e-9 * len(rows):
        statistic, cut = 0.0, int(last_of_moment[0])  # all labels are as expected
    else:
        sums = np.abs(np.cumsum(rest)[last_of_moment])
        cut = int(last_of_moment[sums.argmax()])
        statistic = float(sums.max()) / spread
    early, late = slice(None, cut + 1), slice(cut + 1, None)
    return _Change(
        worker, len(rows), statistic, float(kolmogorov(statistic)),
        float(score[early].mean()), float(score[late].mean()),
        float(rest[late].mean() - rest[early].mean()), time[cut],
    )  # fmt: skip


def drop_after(labels: Any, moments: Mapping[Any, Any]) -> Any:
    """Remove the labels that workers gave after a moment, and tasks without remaining labels.

    Parameters
    ----------
    labels : annotations of any kind with timestamps, or data of any form accepted for classes
    moments : mapping of worker to time
        Labels of the worker with a later time are removed; labels without a time stay. A time is
        text such as "2026-05-31T14:00:00", a datetime, or a number if the timestamps are numbers.

    Returns
    -------
    annotations of the same kind

    Examples
    --------
    >>> from wisecrowd import CrowdLabels
    >>> labels = CrowdLabels.from_arrays(
    ...     list("aabb"), list("xyxy"), [0, 0, 1, 0], timestamp=[1, 2, 3, 4]
    ... )
    >>> drop_after(labels, {"y": 2})
    CrowdLabels(2 tasks, 2 workers, 2 classes, 3 annotations)
    """
    data = labels if isinstance(labels, Annotations) else as_crowd_labels(labels)
    rest = data.select_annotations(~late_labels(data, moments))
    if not rest.n_annotations:
        raise DataError("No label would remain; give later times to drop labels after.")
    lost = (rest.labels_per_task == 0) & (data.labels_per_task > 0)
    return rest[~lost] if lost.any() else rest


def late_labels(data: Annotations, moments: Mapping[Any, Any]) -> NDArray[np.bool_]:
    """Return which annotations (n_annotations,) are later than the moment of their worker."""
    spelled = for_reader("drop_after", "--drop-after")
    time = data.columns.get("timestamp")
    if time is None:
        raise DataError(
            f"The labels have no timestamps, which {spelled} needs; name their column with "
            + for_reader("timestamp=.", "--timestamp.")
        )
    late = np.zeros(data.n_annotations, dtype=bool)
    for worker, moment in moments.items():
        code = int(lookup([worker], data.workers)[0])
        if code < 0:
            raise ParameterError(
                f"There is no worker {describe_value(worker)}{suggestion(worker, data.workers)}, "
                f"whom {spelled} names."
            )
        late |= (data.worker == code) & (time > _moment(moment, time, spelled))
    return late


def _moment(moment: Any, time: NDArray[Any], spelled: str) -> Any:
    """Return a moment in the type of the timestamps."""
    try:
        found = as_timestamps([moment], Places({}))
    except DataError:
        found = np.array([np.nan])
    missing = np.isnat(found[0]) if found.dtype.kind == "M" else np.isnan(found[0])
    if missing or found.dtype.kind != time.dtype.kind:
        such = "2026-05-31T14:00:00" if time.dtype.kind == "M" else "1700000000"
        raise ParameterError(
            f"{spelled} has the time {describe_value(moment)}; write it like the timestamps of the "
            f"labels, such as {such}."
        )
    return found[0]
