"""Who saw what: images that one worker saw, and annotations without boxes that seem to be lost."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from wisecrowd.audit.box_view import BoxView, box_view
from wisecrowd.audit.part import Part, Table
from wisecrowd.core.findings import Finding
from wisecrowd.core.regions import CrowdRegions

MANY_SINGLE = 0.5  # share of images that one worker saw


@dataclass(frozen=True, eq=False)
class BoxEvidence(Part):
    """How many workers saw each image.

    Attributes
    ----------
    n_images, n_single : int
        Images that somebody saw, and those that one worker saw.
    n_empty : int
        Annotations without boxes.
    """

    n_images: int
    n_single: int
    n_empty: int
    _lost: Finding | None = None

    def tables(self) -> dict[str, Table]:
        """Return the counts as a table of one row."""
        names = ("n_images", "n_single", "n_empty")
        return {"evidence": {name: np.array([getattr(self, name)]) for name in names}}

    def findings(self) -> list[Finding]:
        """Return lost annotations and images that one worker saw."""
        found = [] if self._lost is None else [self._lost]
        share = self.n_single / max(self.n_images, 1)
        if share >= MANY_SINGLE:
            found.append(Finding(
                "one-worker-per-image", "medium", share, (),
                f"One worker saw {share:.0%} of the images, which is the score: their boxes cannot "
                "be compared with anything.",
                "Let two others see some of these images.",
            ))  # fmt: skip
        return found


def measure_box_evidence(data: CrowdRegions, *, view: BoxView | None = None) -> BoxEvidence:
    """Count who saw what.

    Examples
    --------
    >>> data = CrowdRegions.from_arrays(["a", "b"], ["ann", "ann"], [1, 1], [1, 1], [9, 9], [9, 9])
    >>> [finding.id for finding in measure_box_evidence(data).findings()]
    ['one-worker-per-image']
    """
    seen = data.labels_per_task[data.labels_per_task > 0]
    objects = (box_view(data) if view is None else view).objects
    return BoxEvidence(
        len(seen), int((seen == 1).sum()), int((np.diff(data.pointer) == 0).sum()),
        objects.lost_looks(),
    )  # fmt: skip
