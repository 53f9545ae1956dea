"""Workers scored against a truth, beside what is claimed of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.arrow import as_frame, frame_library
from wisecrowd.core.exceptions import DataError
from wisecrowd.core.ids.encoding import lookup
from wisecrowd.core.parameter_checks import check_number
from wisecrowd.core.types import Floats
from wisecrowd.kinds.classes.columns import as_crowd_labels
from wisecrowd.kinds.classes.truth import as_truth
from wisecrowd.truth.intervals import wilson_interval

CLAIMS = ("accuracy", "agreement_with_result")  # columns of a claim, the first that is there


@dataclass(frozen=True, eq=False)
class WorkerScores:
    """How often workers are right by a truth.

    Attributes
    ----------
    columns : mapping of name to (n_rows,) array, one row per worker with labels
        ``worker``; ``n_labels`` and ``n_truth``, all labels and those of tasks with a truth;
        ``right``, the share of right labels among the latter, with Wilson's interval ``low`` to
        ``high``. With a claim also ``claimed`` and, where it has an interval, ``claimed_low`` and
        ``claimed_high``.
    level : float
        Of the intervals.
    """

    columns: dict[str, NDArray[Any]]
    level: float
    _library: str | None = None

    def table(self, library: str | None = None) -> Any:
        """Return the columns as a frame; ``library`` is described in ``worker_table``."""
        return as_frame(self.columns, frame_library(library, self._library))

    def summary(self) -> dict[str, float]:
        """Return what holds over all workers with a truth.

        ``n_workers``, and ``mean_right``; with a claim ``mean_claimed_minus_right`` and, if it has
        intervals, ``coverage``: how often these hold the share of right labels.
        """
        scored = self.columns["n_truth"] > 0
        right = self.columns["right"]
        found: dict[str, float] = {
            "n_workers": int(scored.sum()), "mean_right": float(right[scored].mean()),
        }  # fmt: skip
        if "claimed" not in self.columns:
            return found
        compared = scored & np.isfinite(self.columns["claimed"])
        found["n_compared"] = int(compared.sum())
        if not compared.any():
            return found
        off = (self.columns["claimed"] - right)[compared]
        found["mean_claimed_minus_right"] = float(off.mean())
        if "claimed_low" in self.columns:
            low, high = self.columns["claimed_low"], self.columns["claimed_high"]
            inside = (low <= right + 1e-9) & (right <= high + 1e-9)
            found["coverage"] = float(inside[compared].mean())
        return found


def score_workers(
    labels: Any, truth: Any, *, claimed: Any = None, level: float = 0.95
) -> WorkerScores:
    """Score workers against a truth: how many of their labels are right, and what was claimed.

    Parameters
    ----------
    labels : CrowdLabels or data of any accepted form
    truth : mapping from task to class, (task, label) frame, or (n_tasks,) array with None
        May have other tasks, and classes that no label has.
    claimed : fitted method, frame or mapping of columns, optional
        What is claimed of the workers: ``worker``, ``accuracy`` or ``agreement_with_result`` and,
        for the coverage, ``low`` and ``high`` or ``standard_error``.
    level : float
        Of the intervals.

    Examples
    --------
    >>> answers = (["t1", "t1", "t2", "t2"], ["ann", "bob", "ann", "bob"], ["a", "a", "b", "a"])
    >>> found = score_workers(answers, {"t1": "a", "t2": "b"})
    >>> found.columns["right"].tolist(), found.summary()["mean_right"]
    ([1.0, 0.5], 0.75)
    """
    from scipy.special import ndtri

    check_number("level", level, 0.5, 0.9999)
    crowd = as_crowd_labels(labels)
    known = as_truth(truth, crowd)[crowd.task]
    J, scored = crowd.n_workers, known >= 0
    n = np.bincount(crowd.worker[scored], minlength=J).astype(np.float64)
    if not n.any():
        raise DataError("No worker has labelled a task with a truth; there is nothing to score.")
    right = np.bincount(crowd.worker[scored], (crowd.label == known)[scored], J)
    share = np.where(n > 0, right / np.maximum(n, 1), np.nan)
    low, high = wilson_interval(share, np.maximum(n, 1), float(ndtri((1 + level) / 2)))
    n_labels = np.bincount(crowd.worker, minlength=J)
    columns: dict[str, NDArray[Any]] = {
        "worker": crowd.workers, "n_labels": n_labels, "n_truth": n.astype(np.int64),
        "right": share, "low": low, "high": high,
    }  # fmt: skip
    if claimed is not None:
        columns |= _claims(claimed, crowd.workers, level)
    present = n_labels > 0
    columns = {name: values[present] for name, values in columns.items()}
    return WorkerScores(columns, level, crowd.frame_library)


def _claims(claimed: Any, workers: NDArray[Any], level: float) -> dict[str, Floats]:
    """Return the claims about workers by name of the column (n_workers,), NaN where unknown."""
    from scipy.special import ndtri

    table = claimed.worker_columns() if hasattr(claimed, "worker_columns") else _columns(claimed)
    value = next((name for name in CLAIMS if name in table), None)
    if "worker" not in table or value is None:
        raise DataError(
            f"The claims have the columns {', '.join(map(str, table))}; give worker and "
            f"{' or '.join(CLAIMS)}."
        )
    place = lookup(list(table["worker"]), workers)
    if (place < 0).all():
        raise DataError("The claims name none of the workers of the labels; check their ids.")

    def by_worker(values: Any) -> Floats:
        found = np.full(len(workers), np.nan)
        found[place[place >= 0]] = _numbers(values)[place >= 0]
        return found

    said = by_worker(table[value])
    if "low" in table and "high" in table:
        ends = by_worker(table["low"]), by_worker(table["high"])
    elif "standard_error" in table:
        reach = float(ndtri((1 + level) / 2)) * by_worker(table["standard_error"])
        ends = np.clip(said - reach, 0, 1), np.clip(said + reach, 0, 1)
    else:
        return {"claimed": said}
    return {"claimed": said, "claimed_low": ends[0], "claimed_high": ends[1]}


def _numbers(values: Any) -> Floats:
    """Return claims as numbers; those of csv files are texts, and empty where unknown."""
    try:
        return np.array([np.nan if v in (None, "") else float(v) for v in values])
    except (TypeError, ValueError):
        raise DataError("A claim about a worker is not a number; correct its column.") from None


def _columns(table: Any) -> Mapping[str, Any]:
    if isinstance(table, Mapping):
        return table
    import narwhals as nw

    frame = nw.from_native(table, eager_only=True)
    return {str(name): frame[name].to_list() for name in frame.columns}
