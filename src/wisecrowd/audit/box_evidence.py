"""Who saw what: images that one worker saw, and annotations without boxes that seem to be lost."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from wisecrowd.audit.part import Part, Table
from wisecrowd.core.findings import Finding
from wisecrowd.core.regions import CrowdRegions

MANY_SINGLE = 0.5  # share of images that one worker saw
FEW_TASKS = 5  # images below which nothing is said about lost annotations


@dataclass(frozen=True, eq=False)
class BoxEvidence(Part):
    """How many workers saw each image.

    Attributes
    ----------
    n_images, n_single : int
        Images that somebody saw, and those that one worker saw.
    n_empty : int
        Annotations without boxes.
    uneven : bool
        Whether images were seen by different numbers of workers.
    """

    n_images: int
    n_single: int
    n_empty: int
    uneven: bool

    def tables(self) -> dict[str, Table]:
        """Return the counts as a table of one row."""
        names = ("n_images", "n_single", "n_empty")
        return {"evidence": {name: np.array([getattr(self, name)]) for name in names}}

    def findings(self) -> list[Finding]:
        """Return lost annotations and images that one worker saw."""
        found = []
        if self.n_empty == 0 and self.uneven and self.n_images >= FEW_TASKS:
            found.append(Finding(
                "no-empty-annotations", "medium", 1.0, (),
                "Every annotation has a box, and images have different numbers of annotations: "
                "those of workers who saw an image and drew nothing seem to be lost, and then a "
                "missed object cannot be told from an image that was not seen.",
                "Give a row without numbers for them, or all assignments with --seen FILE.",
            ))  # fmt: skip
        share = self.n_single / max(self.n_images, 1)
        if share >= MANY_SINGLE:
            found.append(Finding(
                "one-worker-per-image", "medium", share, (),
                f"One worker saw {share:.0%} of the images, which is the score: their boxes cannot "
                "be compared with anything.",
                "Let two others see some of these images.",
            ))  # fmt: skip
        return found


def measure_box_evidence(data: CrowdRegions) -> BoxEvidence:
    """Count who saw what.

    Examples
    --------
    >>> data = CrowdRegions.from_arrays(["a", "b"], ["ann", "ann"], [1, 1], [1, 1], [9, 9], [9, 9])
    >>> [finding.id for finding in measure_box_evidence(data).findings()]
    ['one-worker-per-image']
    """
    seen = data.labels_per_task[data.labels_per_task > 0]
    return BoxEvidence(
        len(seen), int((seen == 1).sum()), int((np.diff(data.pointer) == 0).sum()),
        bool(len(np.unique(seen)) > 1),
    )  # fmt: skip
