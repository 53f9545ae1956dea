"""Copied boxes: pairs of workers who drew exactly the same boxes."""

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
from wisecrowd.families.box_objects import BoxObjects
from wisecrowd.families.dependence import benjamini_hochberg

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
EQUAL = 1e-6  # of the object: sides that are closer are the same
LEAST_RATE = 0.01  # of equal boxes of independent workers, at least
FEWEST = 5  # equal boxes of an accused pair
COMMON = 0.5  # share of equal boxes from which all workers seem to start from the same boxes
MOST_PAIRS = 50_000_000  # pairs of boxes that are compared


@dataclass(frozen=True, eq=False)
class CopyReport(Part):
    """Pairs of workers with equal boxes; arrays have one entry per pair, the most certain first.

    Attributes
    ----------
    first, second
        Ids of workers.
    n_shared, n_equal
        Objects that both drew, and those of which their boxes are the same.
    q : float
        False discovery rate at which more boxes are equal than is usual.
    copied : bool
    usual : float
        Share of equal boxes among all pairs of boxes of one object.
    """

    first: NDArray[Any]
    second: NDArray[Any]
    n_shared: Ints
    n_equal: Ints
    q: Floats
    copied: NDArray[np.bool_]
    usual: float

    def tables(self) -> dict[str, Table]:
        """Return the table of pairs."""
        names = ("first", "second", "n_shared", "n_equal", "q", "copied")
        return {"copies": {name: getattr(self, name) for name in names}}

    def findings(self) -> list[Finding]:
        """Return workers with copied boxes, or equal boxes of the whole crowd."""
        if self.usual >= COMMON:
            return [Finding(
                "equal-boxes", "medium", self.usual, (),
                f"{self.usual:.0%} of all pairs of boxes of one object are exactly equal, which is "
                "the score: workers seem to start from the same boxes and leave them as they are.",
                "If they correct the boxes of a model, their agreement does not show that the "
                "boxes are right; let some images be drawn without them.",
            )]  # fmt: skip
        if not self.copied.any():
            return []
        both = np.concatenate([self.first[self.copied], self.second[self.copied]])
        ids = np.array(list(dict.fromkeys(both.tolist())), dtype=object)
        share = float(np.max(self.n_equal[self.copied] / self.n_shared[self.copied]))
        return [Finding(
            "copied-boxes", "high", share, tuple(ids.tolist()),
            f"{int(self.copied.sum())} pairs among {len(ids)} workers ({describe_ids(ids)}) drew "
            f"exactly the same boxes, up to {share:.0%} of those of the objects that both drew, "
            "which is the score.",
            "Count such workers once: leave all but one out with "
            + for_reader("exclude_workers.", "--exclude-workers."),
        )]  # fmt: skip


def find_copied_boxes(
    data: CrowdRegions, *, level: float = 0.05, view: BoxView | None = None
) -> CopyReport:
    """Find pairs of workers who drew exactly the same boxes.

    The number of equal boxes of a pair is tested against the share of equal boxes in the whole
    crowd, at least 1%, at a false discovery rate of ``level``. A pair needs five equal boxes, and
    half of its boxes must be equal.

    Examples
    --------
    >>> from wisecrowd import simulate
    >>> crowd = simulate.boxes(60, 8, simulate.Dense(), miss=0.1, phantoms=0.05).data
    >>> find_copied_boxes(crowd).findings()
    []
    """
    from scipy.stats import binom

    check_number("level", level, 0.0, 1.0)
    objects = (box_view(data) if view is None else view).objects
    one, two = _pairs(objects)
    if len(one) == 0:
        raise NotApplicable("Copies cannot be searched: no object was drawn by two workers.")
    scale = objects.size[objects.object[one]]
    apart = np.abs(data.boxes[one] - data.boxes[two]) / scale
    equal = (apart <= EQUAL).all(axis=1)
    low, high = (np.sort(np.stack([data.box_worker[one], data.box_worker[two]]), axis=0)
                 .astype(np.int64))  # fmt: skip
    keys, place = np.unique(low * data.n_workers + high, return_inverse=True)
    n_shared = np.bincount(place, minlength=len(keys))
    n_equal = np.bincount(place, equal, len(keys)).astype(np.int64)
    usual = float(equal.mean())
    p = binom.sf(n_equal - 1, n_shared, max(usual, LEAST_RATE))
    q = benjamini_hochberg(p)
    copied = (q <= level) & (n_equal >= FEWEST) & (2 * n_equal >= n_shared)
    order = np.lexsort((keys, -n_equal, q))
    first, second = data.workers[keys // data.n_workers], data.workers[keys % data.n_workers]
    return CopyReport(
        first[order], second[order], n_shared[order], n_equal[order], q[order], copied[order], usual
    )


def _pairs(objects: BoxObjects) -> tuple[Ints, Ints]:
    """Return all pairs of boxes of one object, by different workers."""
    order, size = objects.order, np.bincount(objects.object, minlength=objects.n_candidates)
    if int((size * (size - 1) // 2).sum()) > MOST_PAIRS:
        raise NotApplicable("There are too many pairs of boxes to search for copies.")
    later = np.repeat(size, size) - 1 - (np.arange(len(order)) - np.repeat(
        np.append(0, np.cumsum(size))[:-1], size))  # fmt: skip
    first = np.repeat(np.arange(len(order)), later)
    begin = np.append(0, np.cumsum(later))
    second = first + 1 + np.arange(begin[-1]) - np.repeat(begin[:-1], later)
    one, two = order[first], order[second]
    different = objects.data.box_worker[one] != objects.data.box_worker[two]
    return one[different], two[different]
