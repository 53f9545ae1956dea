"""Audit of masks: workers who mark more or less than the others, and agreement."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.findings import Finding
from wisecrowd.core.parameter_checks import check_number
from wisecrowd.core.part import AuditPlan, NotApplicable, Table, WorkerPart
from wisecrowd.core.statistics import benjamini_hochberg
from wisecrowd.core.types import Floats, Longs, Mask
from wisecrowd.kinds.masks.agreement import mean_overlaps
from wisecrowd.kinds.masks.container import CrowdMasks
from wisecrowd.kinds.masks.methods.patterns import sums_by

FEWEST = 5  # masks of a worker that are compared
MARGIN = float(np.log(1.2))  # areas that differ by less are common habits
LEAST_ERROR = 0.02  # standard error of a mean
LOW = 0.4  # mean overlap of two masks below which workers mark different things
APART = 0.5  # of the typical worker's overlap with the others


@dataclass(frozen=True, eq=False)
class MaskView:
    """Every mask beside the others of its image.

    Attributes
    ----------
    data : CrowdMasks
    iou : (n_annotations,)
        Mean intersection over union with the other masks of the image; NaN without others.
    extent : (n_annotations,)
        Logarithm of the area relative to the middle of the others; 0 within the two middle ones.
        NaN for empty masks and with fewer than two others that are not.
    """

    data: CrowdMasks
    iou: Floats
    extent: Floats

    def of_workers(self, values: Floats) -> tuple[Longs, Floats, Floats]:
        """Return number, mean and standard error of the values of each worker, without NaN."""
        known = np.isfinite(values)
        worker, n_workers = self.data.worker[known], self.data.n_workers
        n = np.bincount(worker, minlength=n_workers)
        mean = sums_by(worker, values[known], n_workers) / np.maximum(n, 1)
        spread = sums_by(worker, (values[known] - mean[worker]) ** 2, n_workers)
        error = np.sqrt(spread / np.maximum(n - 1, 1) / np.maximum(n, 1))
        return n, np.where(n > 0, mean, np.nan), np.where(n > 1, error, np.nan)

    def of_tasks(self, values: Floats) -> Floats:
        """Return the mean of the values of each image; NaN without any."""
        known, n_tasks = np.isfinite(values), self.data.n_tasks
        n = np.bincount(self.data.task[known], minlength=n_tasks)
        total = sums_by(self.data.task[known], values[known], n_tasks)
        return np.where(n > 0, total / np.maximum(n, 1), np.nan)


def mask_view(data: CrowdMasks, fit: Any = None) -> MaskView:
    """Return masks compared with the others of their images.

    Examples
    --------
    >>> one, two = np.ones((2, 2)), np.eye(2)
    >>> data = CrowdMasks.from_arrays(["i"] * 3, list("abc"), [one, one, two])
    >>> mask_view(data).iou.tolist()
    [0.75, 0.75, 0.5]
    """
    return MaskView(data, mean_overlaps(data), _extent(data))


def _extent(data: CrowdMasks) -> Floats:
    """Return the logarithm of each area relative to the nearer of the two middle others."""
    found = np.full(data.n_annotations, np.nan)
    marked = np.flatnonzero(data.area > 0)
    order = marked[np.lexsort((data.area[marked], data.task[marked]))]
    size = np.log(data.area[order])
    task = data.task[order]
    first = np.searchsorted(task, task)
    n = np.searchsorted(task, task, side="right") - first
    rank, others = np.arange(len(order)) - first, n - 1
    limits = []
    for middle in ((others - 1) // 2, others // 2):
        place = np.clip(middle + (middle >= rank), 0, np.maximum(n - 1, 0))
        limits.append(size[first + place])
    low, high = limits
    apart = np.maximum(size - high, 0) - np.maximum(low - size, 0)
    found[order] = np.where(others >= 2, apart, np.nan)
    return found


@dataclass(frozen=True, eq=False)
class ExtentReport(WorkerPart):
    """Areas of masks relative to those of the others; arrays have one entry per worker.

    Attributes
    ----------
    workers, n_images
        Ids, and numbers of images that were compared.
    ratio, low, high
        Geometric mean of the area relative to the others', with its 95% interval.
    q : float
        False discovery rate at which the ratio is beyond 1.2 or its inverse.
    wide, tight : bool
    """

    table = "extent"
    noun = "the compared masks"
    percent = ".0%"

    workers: NDArray[Any]
    n_images: NDArray[np.int64]
    ratio: Floats
    low: Floats
    high: Floats
    q: Floats
    wide: Mask
    tight: Mask

    def findings(self) -> list[Finding]:
        """Return workers who mark more, and those who mark less, than the others."""
        return [
            *self._about("wide-masks", self.wide, "more"),
            *self._about("tight-masks", self.tight, "less"),
        ]

    def _about(self, name: str, who: Mask, did: str) -> list[Finding]:
        if not who.any():
            return []
        size = np.abs(np.log(np.where(who, self.ratio, 1.0)))
        worst = self.largest(who, size)[0]
        return self.about(
            name, who, f"marked {did} than the others in the same images; the largest difference "
            f"is a factor of {self.ratio[worst]:.2f} in area ({self.low[worst]:.2f} to "
            f"{self.high[worst]:.2f})",
            "Show them where the border of an object is. mask-em estimates how often each worker "
            "covers pixels inside and outside.",
            "medium" if self.share_of(who) >= 0.1 else "low", by=size,
        )  # fmt: skip


def find_extents(
    data: CrowdMasks, *, level: float = 0.01, view: MaskView | None = None
) -> ExtentReport:
    """Find workers whose masks are larger or smaller than those of the others.

    The area of a mask is compared with the nearer of the two middle ones of the others, so that one
    strange mask does not make the others look strange. A worker is named if a t-test over images
    rejects a mean ratio within 1.2 at a false discovery rate of ``level``.

    Examples
    --------
    >>> from wisecrowd import simulate
    >>> made = simulate.masks(20, 6, simulate.Dense(), offset=0.0, miss=0.0)
    >>> find_extents(made.data).findings()
    []
    """
    from scipy.special import stdtr, stdtrit

    check_number("level", level, 0.0, 1.0)
    view = mask_view(data) if view is None else view
    n, mean, error = view.of_workers(view.extent)
    tested = n >= FEWEST
    if not tested.any():
        raise NotApplicable(
            f"Areas cannot be compared: no worker has {FEWEST} masks beside two others that are "
            "not empty."
        )
    error = np.maximum(np.where(tested, error, 1.0), LEAST_ERROR)
    df = np.maximum(n - 1, 1)
    mean = np.where(tested, mean, np.nan)
    q = np.ones(len(n))
    beyond = (np.abs(mean[tested]) - MARGIN) / error[tested]
    q[tested] = benjamini_hochberg(2 * stdtr(df[tested], -beyond)).clip(0, 1)
    named = tested & (q <= level)
    half = stdtrit(df, 0.975) * error
    return ExtentReport(
        data.workers, n, np.exp(mean), np.exp(mean - half), np.exp(mean + half), q,
        named & (np.nan_to_num(mean) > 0), named & (np.nan_to_num(mean) < 0),
    )  # fmt: skip


@dataclass(frozen=True, eq=False)
class MaskAgreementReport(WorkerPart):
    """Mean intersection over union of pairs of masks.

    Attributes
    ----------
    mean, error : float
        Mean over images of the overlap of two masks, and its standard error.
    tasks, task_iou, n_masks : (n_tasks,)
        Overlap in each image; NaN with one mask.
    workers, n_images, worker_iou : (n_workers,)
        Mean overlap of a worker's masks with the others'.
    q : (n_workers,)
        False discovery rate at which a worker's overlap is below half of the typical one.
    apart : (n_workers,) bool
    """

    table = "agreement"
    noun = "the compared masks"
    percent = ".0%"

    mean: float
    error: float
    tasks: NDArray[Any]
    task_iou: Floats
    n_masks: Longs
    workers: NDArray[Any]
    n_images: Longs
    worker_iou: Floats
    q: Floats
    apart: Mask

    def tables(self) -> dict[str, Table]:
        """Return the tables of workers and of images."""
        images = {"task": self.tasks, "n_masks": self.n_masks, "iou": self.task_iou}
        return super().tables() | {"images": images}

    def findings(self) -> list[Finding]:
        """Return a crowd that hardly agrees, and workers apart from the others."""
        found = []
        if self.mean + 1.96 * self.error < LOW:
            found.append(Finding(
                "low-overlap", "medium", 1 - self.mean, (),
                f"Two masks of the same image overlap by {self.mean:.2f} on average (intersection "
                "over union); the score is 1 less this.",
                "Look at some images of the table `images`: workers may mark different objects, or "
                "the instructions may leave open what belongs to one.",
            ))  # fmt: skip
        severity = "high" if self.share_of(self.apart) >= 0.2 else "medium"
        return found + self.about(
            "masks-apart", self.apart,
            "overlap with the others less than half as much as the typical worker",
            "Look at their masks before you pay for more; mask-em gives them less weight.",
            severity, by=-self.worker_iou,
        )  # fmt: skip


def measure_mask_agreement(
    data: CrowdMasks, *, level: float = 0.01, view: MaskView | None = None
) -> MaskAgreementReport:
    """Measure the overlap of the masks of the same image.

    Examples
    --------
    >>> one, two = np.ones((2, 2)), np.eye(2)
    >>> data = CrowdMasks.from_arrays(["i"] * 2, list("ab"), [one, two])
    >>> measure_mask_agreement(data).mean
    0.5
    """
    from scipy.special import stdtr

    check_number("level", level, 0.0, 1.0)
    view = mask_view(data) if view is None else view
    per_task = view.of_tasks(view.iou)
    known = per_task[np.isfinite(per_task)]
    if not len(known):
        raise NotApplicable("Masks cannot be compared: no image has two of them.")
    error = float(known.std(ddof=1) / np.sqrt(len(known))) if len(known) > 1 else 0.5
    n, mean, spread = view.of_workers(view.iou)
    tested = n >= FEWEST
    q = np.ones(len(n))
    if np.count_nonzero(tested) > 2:
        typical = float(np.median(mean[tested]))
        below = (APART * typical - mean[tested]) / np.maximum(spread[tested], LEAST_ERROR)
        q[tested] = benjamini_hochberg(stdtr(np.maximum(n[tested] - 1, 1), -below))
    return MaskAgreementReport(
        float(known.mean()), error, data.tasks, per_task, data.labels_per_task, data.workers, n,
        mean, q, q <= level,
    )  # fmt: skip


PLAN = AuditPlan(
    parts={
        "extent": find_extents,
        "agreement": measure_mask_agreement,
    },
    shared={"view": mask_view},
)
