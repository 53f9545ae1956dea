"""Side bias: workers whose boxes are tighter, looser or shifted against those of the others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.audit.box_view import BoxView, box_view
from wisecrowd.audit.number_bias import BiasReport, bias_report
from wisecrowd.audit.number_view import number_view
from wisecrowd.audit.part import NotApplicable, Part, Table
from wisecrowd.core.findings import Finding
from wisecrowd.core.messages.descriptions import describe_ids
from wisecrowd.core.messages.option_spelling import parameter
from wisecrowd.core.parameter_checks import check_number
from wisecrowd.core.region_answers import SIDES
from wisecrowd.core.regions import CrowdRegions

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]
LEAST = 0.05  # of an object's width or height: a smaller bias is not worth a finding
LEAST_SHIFT = 0.1  # the same of a single side, of which there are four


@dataclass(frozen=True, eq=False)
class SideReport(Part):
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
        names = ("n_boxes", "looseness", "low", "high", "tight", "loose", "shifted")
        table = {"worker": self.workers} | {name: getattr(self, name) for name in names}
        return {"sides": table | {name: self.sides[:, k] for k, name in enumerate(SIDES)}}

    def findings(self) -> list[Finding]:
        """Return workers whose boxes are too tight, too loose or shifted."""
        found = []
        for name, who, how in (
            ("tight-boxes", self.tight, "tighter"), ("loose-boxes", self.loose, "looser"),
            ("shifted-boxes", self.shifted & ~self.tight & ~self.loose, "shifted"),
        ):  # fmt: skip
            if who.any():
                found.append(self._finding(name, who, how))
        return found

    def _finding(self, name: str, who: Mask, how: str) -> Finding:
        size = np.abs(self.looseness) if how != "shifted" else np.abs(self.sides).max(axis=1)
        order = np.argsort(-np.where(who, size, -1.0), kind="stable")[: int(who.sum())]
        ids = self.workers[order]
        share = float(self.n_boxes[who].sum() / max(int(self.n_boxes.sum()), 1))
        return Finding(
            name, "medium" if share >= 0.2 else "low", float(size[order[0]]), tuple(ids.tolist()),
            f"{len(ids)} worker{'s' if len(ids) > 1 else ''} ({describe_ids(ids)}; {share:.0%} of "
            f"all compared boxes) drew boxes that are {how} than those of the others, the most by "
            f"{size[order[0]]:.0%} of the object on average, which is the score.".replace(
                "shifted than those", "shifted against those"
            ),
            "Show these workers examples of exact boxes; "
            f"{parameter('corners', 'gaussian-em')} estimates and subtracts such biases.",
        )  # fmt: skip


def find_side_bias_of_boxes(
    data: CrowdRegions, *, level: float = 0.05, view: BoxView | None = None
) -> SideReport:
    r"""Find workers whose boxes are systematically too tight, too loose or shifted.

    Distances of sides from the medians of their objects are numbers, in widths and heights of the
    object, and are tested as those of :func:`~wisecrowd.audit.number_bias.find_biased_workers`:
    against the median of the others, at a false discovery rate of ``level``, here a fifth of it for
    each of the mean and the four sides.

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
    whole = bias_report(number_view_of(view, None), share)
    parts = [bias_report(number_view_of(view, k), share) for k in range(len(SIDES))]
    sides = np.stack([part.bias for part in parts], axis=1)
    away = _beyond(whole, LEAST)
    far = [_beyond(part, LEAST_SHIFT) for part in parts]
    return SideReport(
        data.workers, whole.n_labels, whole.bias, whole.low, whole.high, sides,
        away & (whole.bias < 0), away & (whole.bias > 0), np.asarray(np.stack(far).any(axis=0)),
    )  # fmt: skip


def _beyond(report: BiasReport, least: float) -> Mask:
    """Return whose bias is far more than usual, with an interval beyond ``least``."""
    nearest = np.where(report.bias > 0, report.low, -report.high)
    return np.asarray(report.strongly & (nearest > least))


def number_view_of(view: BoxView, side: int | None) -> Any:
    """Return the view of the distances of a side, or of the mean of all, on a linear scale."""
    return number_view(view.looseness(side))
