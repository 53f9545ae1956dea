"""Agreement of masks: mean overlap of pairs, workers apart from the others, and hard images."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.audit.mask_view import MaskView, mask_view
from wisecrowd.audit.part import NotApplicable, Part, Table
from wisecrowd.core.findings import Finding
from wisecrowd.core.masks import CrowdMasks
from wisecrowd.core.messages.descriptions import describe_ids
from wisecrowd.core.parameter_checks import check_number
from wisecrowd.families.dependence import benjamini_hochberg

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]

FEWEST = 5  # masks of a worker beside others
LOW = 0.4  # mean overlap of two masks below which workers mark different things
APART = 0.5  # of the typical worker's overlap with the others
LEAST_ERROR = 0.02


@dataclass(frozen=True, eq=False)
class MaskAgreementReport(Part):
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

    mean: float
    error: float
    tasks: NDArray[Any]
    task_iou: Floats
    n_masks: Ints
    workers: NDArray[Any]
    n_images: Ints
    worker_iou: Floats
    q: Floats
    apart: Flags

    def tables(self) -> dict[str, Table]:
        """Return the tables of workers and of images."""
        own = {"n_images": self.n_images, "iou": self.worker_iou, "q": self.q, "apart": self.apart}
        images = {"task": self.tasks, "n_masks": self.n_masks, "iou": self.task_iou}
        return {"agreement": {"worker": self.workers} | own, "images": images}

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
        if self.apart.any():
            order = np.flatnonzero(self.apart)
            ids = self.workers[order[np.argsort(self.worker_iou[order], kind="stable")]]
            share = float(self.n_images[self.apart].sum() / max(int(self.n_images.sum()), 1))
            found.append(Finding(
                "masks-apart", "high" if share >= 0.2 else "medium", share, tuple(ids.tolist()),
                f"{len(ids)} worker{'s' if len(ids) > 1 else ''} ({describe_ids(ids)}; {share:.0%} "
                "of the compared masks, which is the score) overlap with the others less than half "
                "as much as the typical worker.",
                "Look at their masks before you pay for more; mask-em gives them less weight.",
            ))  # fmt: skip
        return found


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
