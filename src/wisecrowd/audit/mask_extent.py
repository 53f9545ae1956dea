"""Workers who mark more or less than the others: too wide, too tight, or objects missed."""

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
Flags = NDArray[np.bool_]

FEWEST = 5  # images of a worker with two or more others
MARGIN = float(np.log(1.2))  # areas that differ by less are common habits
LEAST_ERROR = 0.02


@dataclass(frozen=True, eq=False)
class ExtentReport(Part):
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

    workers: NDArray[Any]
    n_images: NDArray[np.int64]
    ratio: Floats
    low: Floats
    high: Floats
    q: Floats
    wide: Flags
    tight: Flags

    def tables(self) -> dict[str, Table]:
        """Return the table of workers."""
        names = ("n_images", "ratio", "low", "high", "q", "wide", "tight")
        return {"extent": {"worker": self.workers} | {name: getattr(self, name) for name in names}}

    def findings(self) -> list[Finding]:
        """Return workers who mark more, and those who mark less, than the others."""
        found = []
        for name, who, did in (
            ("wide-masks", self.wide, "more"), ("tight-masks", self.tight, "less"),
        ):  # fmt: skip
            if who.any():
                found.append(self._finding(name, who, did))
        return found

    def _finding(self, name: str, who: Flags, did: str) -> Finding:
        size = np.where(who, np.abs(np.log(np.where(who, self.ratio, 1.0))), -1.0)
        order = np.argsort(-size, kind="stable")[: int(who.sum())]
        ids, worst = self.workers[order], int(order[0])
        share = float(self.n_images[who].sum() / max(int(self.n_images.sum()), 1))
        return Finding(
            name, "medium" if share >= 0.1 else "low", share, tuple(ids.tolist()),
            f"{len(ids)} worker{'s' if len(ids) > 1 else ''} ({describe_ids(ids)}; {share:.0%} of "
            f"the compared masks, which is the score) marked {did} than the others in the same "
            f"images; the largest difference is a factor of {self.ratio[worst]:.2f} in area "
            f"({self.low[worst]:.2f} to {self.high[worst]:.2f}).",
            "Show them where the border of an object is. mask-em estimates how often each worker "
            "covers pixels inside and outside.",
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
