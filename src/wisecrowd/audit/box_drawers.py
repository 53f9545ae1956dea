"""Workers who miss objects that the others drew, draw nothing at all, or draw phantoms."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.audit.box_view import BoxView, box_view
from wisecrowd.audit.part import NotApplicable, Part, Table
from wisecrowd.core.findings import Finding
from wisecrowd.core.messages.descriptions import describe_ids
from wisecrowd.core.messages.option_spelling import for_reader
from wisecrowd.core.parameter_checks import check_number
from wisecrowd.core.regions import CrowdRegions
from wisecrowd.families.dependence import benjamini_hochberg

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

FEWEST = 5  # images on which a worker is tested
MISSES = 0.5  # a worker who finds less than this part of what the others find misses objects
MANY = 3.0  # times the median number of phantoms per image
LEAST = 0.2  # phantoms per image below which nobody is accused
LEAST_PHANTOMS = 5  # of an accused worker


@dataclass(frozen=True, eq=False)
class DrawerReport(Part):
    """What workers miss and invent; arrays have one entry per worker.

    Attributes
    ----------
    workers, n_images
        Ids, and number of images that two others saw too.
    n_objects : float
        Objects in these images that half of the others drew.
    detection : float
        Share of these objects that the worker drew; NaN without any.
    relative : float
        Objects found over the number that a worker like the others would have found.
    phantoms : float
        Boxes per image that fewer than a quarter of the others drew.
    q_misses, q_phantoms : float
        False discovery rates at which the worker finds less than half of what others find, and
        draws more than three times the median number of phantoms.
    idle, missing, inventing : bool
        Whether the worker drew nothing in any image although others did; finds less than half of
        what others find; draws many phantoms.
    typical : float
        Median of the workers' detection.
    """

    workers: NDArray[Any]
    n_images: NDArray[np.int64]
    n_objects: Floats
    detection: Floats
    relative: Floats
    phantoms: Floats
    q_misses: Floats
    q_phantoms: Floats
    idle: Mask
    missing: Mask
    inventing: Mask
    typical: float

    def tables(self) -> dict[str, Table]:
        """Return the table of workers."""
        names = (
            "n_images", "n_objects", "detection", "relative", "phantoms", "q_misses", "q_phantoms",
            "idle", "missing", "inventing",
        )  # fmt: skip
        return {"drawers": {"worker": self.workers} | {n: getattr(self, n) for n in names}}

    def findings(self) -> list[Finding]:
        """Return workers who draw nothing, miss many objects, or draw many phantoms."""
        kinds = (
            ("draws-nothing", self.idle,
             "drew no box in any image, although the others drew some",
             f"Leave these workers out with {for_reader('exclude_workers', '--exclude-workers')}, "
             "and ask them whether their tool worked."),
            ("misses-objects", self.missing & ~self.idle,
             "drew less than half of the objects that a worker like the others would have drawn",
             "Show these workers examples of all objects to draw; box-em trusts their silence "
             "less than that of the others."),
            ("draws-phantoms", self.inventing,
             "drew more than three times as many boxes as is usual that hardly anybody else drew",
             "Look at some of them (status phantom in "
             f"{for_reader('assignment_columns', '--assignments-to')}): they are mistakes, or "
             "objects that the others overlooked. Use box-em, which trusts such boxes less."),
        )  # fmt: skip
        return [self._finding(*one) for one in kinds if one[1].any()]

    def _finding(self, name: str, who: Mask, did: str, remedy: str) -> Finding:
        share = float(self.n_images[who].sum() / max(int(self.n_images.sum()), 1))
        order = np.argsort(-self.n_images[who], kind="stable")
        ids = self.workers[who][order]
        severity = "high" if share >= 0.2 else "medium" if share >= 0.02 else "low"
        return Finding(
            name, severity, share, tuple(ids.tolist()),
            f"{len(ids)} worker{'s' if len(ids) > 1 else ''} ({describe_ids(ids)}; {share:.1%} of "
            f"all annotations, which is the score) {did}.",
            remedy,
        )  # fmt: skip


def find_bad_drawers(
    data: CrowdRegions, *, level: float = 0.05, view: BoxView | None = None
) -> DrawerReport:
    r"""Find workers who miss objects, draw nothing, or draw phantoms.

    An object counts for a worker if half of the others drew it; :math:`f` of these were found in an
    image, and :math:`e`, the sum of the others' shares, would have been found by a worker like the
    others. A t-test over images rejects :math:`E[f - e/2] \ge 0` for workers who miss objects, and
    :math:`E[p] \le \max(.2, 3 \tilde p)` for the number :math:`p` of phantoms per image, with the
    median :math:`\tilde p` over workers; both at a false discovery rate of ``level``.

    Examples
    --------
    >>> from wisecrowd import simulate
    >>> crowd = simulate.boxes(60, 8, simulate.Dense(), miss=0.1, phantoms=0.05).data
    >>> find_bad_drawers(crowd).findings()
    []
    """
    check_number("level", level, 0.0, 1.0)
    view = box_view(data) if view is None else view
    worker, J = data.worker, data.n_workers
    n_images = np.bincount(worker[view.compared], minlength=J)
    shown = view.judged > 0
    images = np.bincount(worker[shown], minlength=J)
    if (images >= FEWEST).sum() < 2:
        raise NotApplicable(
            f"Workers cannot be judged: fewer than two of them saw {FEWEST} images with objects "
            "together with two others."
        )
    found, expected, judged = (
        np.bincount(worker, values, J).astype(np.float64)
        for values in (view.found, view.expected, view.judged)
    )
    phantoms = np.bincount(worker, view.phantoms, J)
    rate = phantoms / np.maximum(n_images, 1)
    enough = n_images >= FEWEST
    limit = max(LEAST, MANY * float(np.median(rate[enough])) if enough.any() else LEAST)
    q_misses = _adjusted(worker, -(view.found - MISSES * view.expected), shown, J)
    q_phantoms = _adjusted(worker, view.phantoms - limit, view.compared, J)
    with np.errstate(invalid="ignore", divide="ignore"):
        detection = np.where(judged > 0, found / judged, np.nan)
        relative = np.where(expected > 0, found / expected, np.nan)
    boxes = np.bincount(data.box_worker, minlength=J)
    missing = (q_misses <= level) & (relative < MISSES)
    known = detection[images >= FEWEST]
    return DrawerReport(
        data.workers, n_images, judged, detection, relative, rate, q_misses, q_phantoms,
        missing & (boxes == 0), missing,
        (q_phantoms <= level) & (phantoms >= LEAST_PHANTOMS) & (rate > limit),
        float(np.median(known)) if len(known) else float("nan"),
    )  # fmt: skip


def _adjusted(group: NDArray[Any], value: Floats, use: Mask, n_groups: int) -> Floats:
    """Return adjusted p-values of one-sided t-tests that the mean is at most 0, by group."""
    from scipy.special import stdtr

    n = np.bincount(group[use], minlength=n_groups)
    testable = n >= FEWEST
    mean = np.bincount(group[use], value[use], n_groups) / np.maximum(n, 1)
    squares = np.bincount(group[use], (value[use] - mean[group[use]]) ** 2, n_groups)
    # Equal values in all images have no error; a quarter of an object keeps the test finite.
    variance = np.maximum(squares, 0.25) / np.maximum(n - 1, 1)
    t = mean / np.sqrt(variance / np.maximum(n, 1))
    adjusted = np.ones(n_groups)
    adjusted[testable] = benjamini_hochberg(stdtr(n[testable] - 1.0, -t[testable]))
    return adjusted
