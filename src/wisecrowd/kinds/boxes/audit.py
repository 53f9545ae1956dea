"""Audit of boxes: what workers miss and invent, biased sides, copies, and who saw what."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.findings import Finding
from wisecrowd.core.messages.descriptions import describe_ids
from wisecrowd.core.messages.option_spelling import for_reader, parameter
from wisecrowd.core.parameter_checks import check_number
from wisecrowd.core.part import AuditPlan, NotApplicable, Part, Table, WorkerPart
from wisecrowd.core.statistics import (
    as_many_by_chance,
    benjamini_hochberg,
    equal_pairs,
    pairs_within,
)
from wisecrowd.core.types import Floats, Longs, Mask
from wisecrowd.kinds.boxes.answers import SIDES
from wisecrowd.kinds.boxes.container import CrowdRegions
from wisecrowd.kinds.boxes.methods.objects import ENOUGH, OUTWARD, BoxObjects
from wisecrowd.kinds.boxes.metrics import sides_of
from wisecrowd.kinds.numbers.audit.view import number_view
from wisecrowd.kinds.numbers.audit.workers import BiasReport, bias_report
from wisecrowd.kinds.numbers.container import CrowdNumbers

OVERLAP = 0.4  # mean IoU of boxes of one object, as in box-consensus
REAL = 0.5  # share of the others who drew an object
LONELY = 0.25  # a box that fewer of the others drew is a phantom
FEWEST = 5  # images on which a worker is tested
MISSES = 0.5  # a worker who finds less than this part of what the others find misses objects
MANY = 3.0  # times the median number of phantoms per image
LEAST = 0.2  # phantoms per image below which nobody is accused
LEAST_PHANTOMS = 5  # of an accused worker
LEAST_BIAS = 0.05  # of an object's width or height: a smaller bias is not worth a finding
LEAST_SHIFT = 0.1  # the same of a single side, of which there are four
EQUAL = 1e-6  # of the object: sides that are closer are the same
LEAST_RATE = 0.01  # of equal boxes of independent workers, at least
FEWEST_EQUAL = 5  # equal boxes of an accused pair
COMMON = 0.5  # share of equal boxes from which all workers seem to start from the same boxes
MOST_PAIRS = 50_000_000  # pairs of boxes that are compared
MANY_SINGLE = 0.5  # share of images that one worker saw


@dataclass(frozen=True, eq=False)
class BoxView:
    """Boxes compared with those of the others who saw the same image.

    Attributes
    ----------
    data : CrowdRegions
    objects : BoxObjects
        Groups of boxes.
    found, expected : (n_annotations,)
        Number of objects that half of the others drew and this worker too, and the number that a
        worker like the others would have drawn: the sum of the others' shares.
    judged : (n_annotations,)
        Number of objects that half of the others drew.
    phantoms : (n_annotations,)
        Number of boxes that fewer than a quarter of the others drew.
    compared : (n_annotations,) bool
        Whether two others saw the image; all counts are 0 elsewhere.
    """

    data: CrowdRegions
    objects: BoxObjects
    found: Floats
    expected: Floats
    judged: Floats
    phantoms: Floats
    compared: NDArray[np.bool_]

    def looseness(self, side: int | None = None) -> CrowdNumbers:
        """Return how far a side of each box, or the mean of all, is beyond that of its object."""
        objects, own = self.objects, self.objects.object
        away = OUTWARD * (sides_of(self.data.boxes) - objects.sides[own]) / objects.size[own]
        return objects.numbers(away.mean(axis=1) if side is None else away[:, side])


def box_view(data: CrowdRegions, fit: Any = None) -> BoxView:
    """Return the view of boxes; every worker is compared with the others only.

    Examples
    --------
    >>> rows = [("a", w, 1, 1, 9, 9) for w in ("ann", "bob", "cem")] + [("a", "dan", 50, 50, 9, 9)]
    >>> view = box_view(CrowdRegions.from_arrays(*zip(*rows)))
    >>> view.found.tolist(), view.phantoms.tolist()
    ([1.0, 1.0, 1.0, 0.0], [0.0, 0.0, 0.0, 1.0])
    """
    objects = BoxObjects.of(data, OVERLAP, same_class=False)
    pairs, n = objects.pairs, data.n_annotations
    drew = pairs.box >= 0
    size = np.diff(data.indptr)
    others = (size[data.task[pairs.annotation]] - 1).astype(np.float64)
    votes = np.bincount(objects.object, minlength=objects.n_candidates)[pairs.candidate] - drew
    share = votes / np.maximum(others, 1)
    compared = size[data.task] >= 3
    usable = compared[pairs.annotation]
    real = usable & (share >= REAL - ENOUGH)
    lonely = usable & drew & (share < LONELY)

    def count(which: NDArray[np.bool_], weight: Floats | None = None) -> Floats:
        chosen = None if weight is None else weight[which]
        return np.bincount(pairs.annotation[which], chosen, n).astype(np.float64)

    return BoxView(
        data, objects, count(real & drew), count(real, share), count(real), count(lonely), compared
    )


@dataclass(frozen=True, eq=False)
class DrawerReport(WorkerPart):
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

    table = "drawers"
    noun = "all annotations"

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
        return [found for one in kinds for found in self.about(*one)]


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
    limit = max(LEAST, MANY * float(np.median(rate[n_images >= FEWEST])))
    q_misses = _adjusted(worker, -(view.found - MISSES * view.expected), shown, J)
    q_phantoms = _adjusted(worker, view.phantoms - limit, view.compared, J)
    with np.errstate(invalid="ignore", divide="ignore"):
        detection = np.where(judged > 0, found / judged, np.nan)
        relative = np.where(expected > 0, found / expected, np.nan)
    boxes = np.bincount(data.box_worker, minlength=J)
    missing = (q_misses <= level) & (relative < MISSES)
    return DrawerReport(
        data.workers, n_images, judged, detection, relative, rate, q_misses, q_phantoms,
        missing & (boxes == 0), missing,
        (q_phantoms <= level) & (phantoms >= LEAST_PHANTOMS) & (rate > limit),
        float(np.median(detection[images >= FEWEST])),
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


@dataclass(frozen=True, eq=False)
class SideReport(WorkerPart):
    """Bias of sides; arrays have one entry per worker.

    Attributes
    ----------
    workers, n_boxes
        Ids, and number of boxes of objects that others drew too.
    looseness, low, high : float
        Mean distance of all sides from the others', outwards, in widths and heights of the object,
        with its 95% interval. The median worker has 0.
    sides : (n_workers, 4)
        The same of left, top, right and bottom.
    tight, loose, shifted : bool
        Whether all sides on average are away from the others' by more than 5% of the object, or a
        single side by more than 10%, with 95% confidence and far more than usual.
    """

    table = "sides"

    workers: NDArray[Any]
    n_boxes: NDArray[np.int64]
    looseness: Floats
    low: Floats
    high: Floats
    sides: Floats
    tight: Mask
    loose: Mask
    shifted: Mask

    def tables(self) -> dict[str, Table]:
        """Return the table of workers."""
        sides = {name: self.sides[:, k] for k, name in enumerate(SIDES)}
        return {"sides": {**super().tables()["sides"], **sides}}

    def findings(self) -> list[Finding]:
        """Return workers whose boxes are too tight, too loose or shifted."""
        found = []
        for name, who, how in (
            ("tight-boxes", self.tight, "tighter than"), ("loose-boxes", self.loose, "looser than"),
            ("shifted-boxes", self.shifted & ~self.tight & ~self.loose, "shifted against"),
        ):  # fmt: skip
            if not who.any():
                continue
            away = self.sides if name == "shifted-boxes" else self.looseness[:, None]
            size = np.abs(away).max(axis=1)
            order, share = self.largest(who, size), self.share_of(who)
            found.append(Finding(
                name, "medium" if share >= 0.2 else "low", float(size[order[0]]),
                tuple(self.workers[order].tolist()),
                f"{self.named(order, f'; {share:.0%} of all compared boxes')} drew boxes that are "
                f"{how} those of the others, the most by {size[order[0]]:.0%} of the object on "
                "average, which is the score.",
                "Show these workers examples of exact boxes; "
                f"{parameter('corners', 'gaussian-em')} estimates and subtracts such biases.",
            ))  # fmt: skip
        return found


def find_side_bias_of_boxes(
    data: CrowdRegions, *, level: float = 0.05, view: BoxView | None = None
) -> SideReport:
    r"""Find workers whose boxes are systematically too tight, too loose or shifted.

    Distances of sides from the medians of their objects are numbers, in widths and heights of the
    object, and are tested as those of
    :func:`~wisecrowd.kinds.numbers.audit.workers.find_biased_workers`: against the median of the
    others, at a false discovery rate of ``level``, here a fifth of it for each of the mean and the
    four sides.

    Examples
    --------
    >>> from wisecrowd import simulate
    >>> crowd = simulate.boxes(60, 8, simulate.Dense(), miss=0.1, phantoms=0.05).data
    >>> find_side_bias_of_boxes(crowd).findings()
    []
    """
    check_number("level", level, 0.0, 1.0)
    view = box_view(data) if view is None else view
    if data.n_boxes == 0:
        raise NotApplicable("Sides cannot be compared: there are no boxes.")
    share = level / (1 + len(SIDES))
    whole = bias_report(number_view(view.looseness()), share)
    parts = [bias_report(number_view(view.looseness(k)), share) for k in range(len(SIDES))]
    sides = np.stack([part.bias for part in parts], axis=1)
    away = _beyond(whole, LEAST_BIAS)
    shifted = np.any([_beyond(part, LEAST_SHIFT) for part in parts], axis=0)
    return SideReport(
        data.workers, whole.n_labels, whole.bias, whole.low, whole.high, sides,
        away & (whole.bias < 0), away & (whole.bias > 0), shifted,
    )  # fmt: skip


def _beyond(report: BiasReport, least: float) -> Mask:
    """Return whose bias is far more than usual, with an interval beyond ``least``."""
    nearest = np.where(report.bias > 0, report.low, -report.high)
    return np.asarray(report.strongly & (nearest > least))


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

    table = "copies"
    column_names = ("first", "second", "n_shared", "n_equal", "q", "copied")

    first: NDArray[Any]
    second: NDArray[Any]
    n_shared: Longs
    n_equal: Longs
    q: Floats
    copied: NDArray[np.bool_]
    usual: float

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
    check_number("level", level, 0.0, 1.0)
    objects = (box_view(data) if view is None else view).objects
    size = np.bincount(objects.object, minlength=objects.n_candidates)
    if int((size * (size - 1) // 2).sum()) > MOST_PAIRS:
        raise NotApplicable("There are too many pairs of boxes to search for copies.")
    pairs = pairs_within(np.append(0, np.cumsum(size)))
    one, two = (objects.order[place] for place in pairs)
    by_two = data.box_worker[one] != data.box_worker[two]
    one, two = one[by_two], two[by_two]
    if len(one) == 0:
        raise NotApplicable("Copies cannot be searched: no object was drawn by two workers.")
    scale = objects.size[objects.object[one]]
    apart = np.abs(data.boxes[one] - data.boxes[two]) / scale
    equal = np.all(apart <= EQUAL, axis=1)
    first, second, n_shared, n_equal = equal_pairs(
        data.box_worker[one], data.box_worker[two], equal, data.n_workers
    )
    usual = float(equal.mean())
    q = benjamini_hochberg(as_many_by_chance(n_equal, n_shared, max(usual, LEAST_RATE)))
    copied = (q <= level) & (n_equal >= FEWEST_EQUAL) & (2 * n_equal >= n_shared)
    order = np.lexsort((second, first, -n_equal, q))
    return CopyReport(
        data.workers[first[order]], data.workers[second[order]], n_shared[order], n_equal[order],
        q[order], copied[order], usual,
    )  # fmt: skip


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


PLAN = AuditPlan(
    parts={
        "drawers": find_bad_drawers,
        "sides": find_side_bias_of_boxes,
        "copies": find_copied_boxes,
        "evidence": measure_box_evidence,
    },
    shared={"view": box_view},
)
