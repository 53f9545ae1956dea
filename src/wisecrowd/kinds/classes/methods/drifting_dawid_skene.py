"""Dawid and Skene's model with confusion matrices that change over time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.aggregator import Tags
from wisecrowd.core.exceptions import DataError
from wisecrowd.core.findings import Finding
from wisecrowd.core.footprint import Footprint
from wisecrowd.core.parameter_checks import Count, Limits, Number, is_auto
from wisecrowd.core.problem import Problem
from wisecrowd.core.result import Fit
from wisecrowd.core.saved_attributes import Saved, SavedArray, SavedValue, is_finite
from wisecrowd.core.types import Floats
from wisecrowd.kinds.classes.container import CrowdLabels
from wisecrowd.kinds.classes.families.split_confusion import SplitConfusionEM, SplitModel
from wisecrowd.kinds.classes.methods.dawid_skene import dirichlet_update

MOST_BINS = 10
LABELS_PER_BIN = 20  # of a worker, on average
MEMORIES = (0.9, 0.7, 0.5)  # to choose from, besides 1


@dataclass(frozen=True, eq=False, kw_only=True)
class DriftModel(SplitModel):
    """A confusion matrix per worker and time bin, from counts smoothed over the bins.

    Bins are the parts of the shared loop.
    """

    n_bins: int
    memory: float

    def worker_update(
        self, counts: Floats, previous: dict[str, Any] | None
    ) -> tuple[Floats, float, dict[str, Any]]:
        """Return the log matrices of the smoothed counts plus pseudo-counts."""
        bins = np.arange(self.n_bins)
        kernel = self.memory ** np.abs(bins[:, None] - bins)
        by_bin = counts.reshape(-1, self.n_bins, counts.shape[1] * counts.shape[2])
        smoothed = np.einsum("ab,jbc->jac", kernel, by_bin).reshape(counts.shape)
        return *dirichlet_update(smoothed, self.alpha), {}


@dataclass(eq=False, repr=False, kw_only=True)
class DriftingDawidSkene(SplitConfusionEM):
    r"""A confusion matrix per worker that changes over time, from counts smoothed over time bins.

    .. math::
        \theta_{jbkl} \propto \sum_{b'} \kappa^{|b - b'|}
        \sum_{i: y_{ij} = l, \, t_{ij} \in b'} q_i(k) + \alpha_{kl}

    Use it when labels have timestamps and workers learn, tire or change their rule: the audit's
    drift finding says so. Cost per iteration: O(annotations × classes) and bins × workers ×
    classes²; ``memory="auto"`` fits four more times.

    Parameters
    ----------
    n_bins : "auto" or int
        Time bins with about equally many labels; labels of the same time share a bin. "auto" takes
        10, or fewer if a worker had fewer than 20 labels per bin on average.
    memory : "auto" or float from 0 to 1
        :math:`\kappa`, the weight of the labels of a neighbouring bin; 1 is Dawid-Skene. "auto"
        takes the best of 1, .9, .7 and .5 by held-out labels, and 1 unless another one leads by
        more than two standard errors.
    prior, class_prior, max_iter, tol, n_init, accelerate, random_state
        As in :class:`DawidSkene`.

    Attributes
    ----------
    confusion_ : (n_workers, n_classes, n_classes)
        Of the last bin, for new labels.
    confusion_path_ : (bins, n_workers, n_classes, n_classes)
    bin_start_ : (bins,)
        First time of each bin, in the units of the timestamps (dates as seconds since 1970).
    memory_ : float

    Notes
    -----
    Matrices of single bins without smoothing are worse than no drift at all, because a bin has few
    labels. ``worker_accuracy_`` is the mean over the worker's labels. Without timestamps this
    is Dawid-Skene, and a finding says so.

    References
    ----------
    R. Tibshirani and T. Hastie (1987). Local likelihood estimation. Journal of the American
    Statistical Association 82(398), 559-567.

    Examples
    --------
    >>> from wisecrowd.kinds.classes.container import CrowdLabels
    >>> task, worker = np.divmod(np.arange(300), 3)
    >>> label = task % 2
    >>> label[(worker == 2) & (task >= 50)] = 1  # from half time on
    >>> crowd = CrowdLabels.from_arrays(task, worker, label, timestamp=task.astype(float))
    >>> model = DriftingDawidSkene(n_bins=4, memory=0.5).fit(crowd)
    >>> first, last = model.confusion_path_[[0, -1], 2, 0, 0]
    >>> bool(first > 0.7 and last < 0.3)
    True
    """

    n_bins: Any = "auto"
    memory: Any = "auto"
    prior: Any = "weak"
    class_prior: Any = "auto"
    max_iter: int = 200
    tol: float = 1e-6
    n_init: int = 1
    accelerate: bool = True
    random_state: Any = 0

    saves: ClassVar[dict[str, Saved]] = {
        "confusion_path_": SavedArray("bins J K K", "distribution"),
        "bin_start_": SavedArray("bins", "number"),
        "memory_": SavedValue(
            lambda value: is_finite(value) and 0 <= value <= 1, "a number from 0 to 1"
        ),
    }
    promises: ClassVar[Tags] = Tags(inductive=False, predicts=True, confusion=True)
    footprint = Footprint(label=30.0, task=14.0, cell=11.0, confusion=950.0)
    limits: ClassVar[Limits] = {
        "n_bins": Count(1, 10_000, auto=True),
        "memory": Number(0.0, 1.0, auto=True),
    }

    def _axis_sizes(self, sizes: Mapping[str, int]) -> dict[str, int]:
        return {"bins": int(np.size(self.bin_start_))}

    def _fit(self, problem: Problem) -> Fit:
        labels = problem.data
        time = _seconds(labels)
        bins, start = _time_bins(time, labels, self.n_bins)
        if is_auto(self.memory):
            memory = self._best_strength(problem, bins, len(start), MEMORIES)
        else:
            memory = None if self.memory == 1 else float(self.memory)
        found = self._fit_parts(problem, bins, len(start), memory)
        path = found.extra["by_part"]
        extra = {
            "confusion_path": path,
            "bin_start": start[: len(path)],
            "memory": 1.0 if memory is None else memory,
        }
        findings = () if time is not None else (_NO_TIMES,)
        return replace(found, confusion=path[-1], extra=extra, findings=findings)

    def _split_model(self, shape: dict[str, Any], n_parts: int, strength: float) -> DriftModel:
        return DriftModel(**shape, n_bins=n_parts, memory=strength)


def _seconds(labels: CrowdLabels) -> Floats | None:
    """Return the time of each label as a number, or None if there are no timestamps."""
    time = labels.columns.get("timestamp")
    if time is None:
        return None
    if time.dtype.kind == "M":
        missing = np.isnat(time)
        seconds = time.astype("datetime64[us]").astype(np.int64) / 1e6
    else:
        seconds = time.astype(np.float64)
        missing = np.isnan(seconds)
    if missing.any():
        raise DataError(
            f"{int(missing.sum())} of {len(missing)} labels have no timestamp, and "
            "DriftingDawidSkene needs all; leave these labels out, or use DawidSkene."
        )
    return seconds


def _time_bins(
    time: Floats | None, labels: CrowdLabels, n_bins: Any
) -> tuple[NDArray[np.int32], Floats]:
    """Return the bin of each label and the first time of each bin.

    Examples
    --------
    >>> crowd = CrowdLabels.from_arrays([1, 1, 2, 2], list("abab"), [0, 0, 1, 1])
    >>> bins, start = _time_bins(np.array([5.0, 5.0, 5.0, 9.0]), crowd, 2)
    >>> bins.tolist(), start.tolist()
    ([0, 0, 0, 1], [5.0, 9.0])
    """
    n = labels.n_annotations
    if time is None or n == 0:
        return np.zeros(n, dtype=np.int32), np.zeros(1)
    if is_auto(n_bins):
        active = max(int((labels.labels_per_worker > 0).sum()), 1)
        n_bins = int(np.clip(n // (active * LABELS_PER_BIN), 1, MOST_BINS))
    moments, place, count = np.unique(time, return_inverse=True, return_counts=True)
    middle = np.cumsum(count) - count / 2  # a moment belongs to the bin of its middle label
    of_moment = np.minimum((middle * n_bins / n).astype(np.int64), n_bins - 1)
    used, of_moment = np.unique(of_moment, return_inverse=True)
    first = np.searchsorted(of_moment, np.arange(len(used)))
    return of_moment[place].astype(np.int32), moments[first].astype(np.float64)


_NO_TIMES = Finding(
    "no-timestamps", "info", 0.0, (),
    "The labels have no timestamps, so that nobody can be seen to change: this is the fit of "
    "DawidSkene.",
    "Name the column of the times, or use DawidSkene.",
)  # fmt: skip
