"""Agreement of the crowd about sets: alpha of whole sets and of every class."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.audit.part import NotApplicable, Part, Table
from wisecrowd.audit.set_view import SetView, set_codes
from wisecrowd.core.findings import Finding
from wisecrowd.core.messages.descriptions import describe_ids
from wisecrowd.core.sets import CrowdSets
from wisecrowd.metrics.set_agreement import class_alphas, set_alpha

Floats = NDArray[np.float64]

SAMPLES = 200  # of tasks, for the intervals
AT_CHANCE = 0.05  # an alpha below this is too low for any use
UNCLEAR = 0.2  # classes whose interval is below are reported
FEWEST = 20  # tasks with two labels or more, for findings
MOST_ALONE = 0.5  # share of tasks with a single label


@dataclass(frozen=True, eq=False)
class SetAgreementReport(Part):
    """Agreement of the workers; 1 is perfect, 0 is chance.

    Attributes
    ----------
    n_tasks : int
        Number of tasks with two sets or more; others do not count.
    share_alone : float
        Share of the tasks with a single set.
    alpha : float
        Krippendorff's alpha of whole sets, with MASI distances; NaN if there are too many.
    classes, ticked : (n_classes,)
        Classes, and the share of sets with each.
    class_alpha, low, high : (n_classes,)
        Krippendorff's alpha of each class, with its 95% interval over tasks; NaN if undefined.
    """

    n_tasks: int
    share_alone: float
    alpha: float
    classes: NDArray[Any]
    ticked: Floats
    class_alpha: Floats
    low: Floats
    high: Floats

    def tables(self) -> dict[str, Table]:
        """Return the table of classes."""
        columns = {"ticked": self.ticked, "alpha": self.class_alpha, "low": self.low,
                   "high": self.high}  # fmt: skip
        return {"agreement": {"class": self.classes} | columns}

    def findings(self) -> list[Finding]:
        """Return agreement at chance, unclear classes, and tasks with a single label."""
        found = []
        if self.share_alone > MOST_ALONE:
            found.append(Finding(
                "one-label-per-task", "medium", self.share_alone, (),
                f"{self.share_alone:.0%} of the tasks, which is the score, have a single label, so "
                "neither these labels nor their workers can be checked.",
                "Ask a second worker about some of these tasks.",
            ))  # fmt: skip
        if self.n_tasks < FEWEST:
            return found
        if self.alpha < AT_CHANCE and not (self.high >= UNCLEAR).any():
            found.append(Finding(
                "agreement-at-chance", "high", 1 - self.alpha, (),
                f"Workers hardly agree on sets or on any class: alpha of sets is {self.alpha:.2f}, "
                "where 0 is chance and 1 is perfect; the score is one minus alpha.",
                "Check the task and label columns; explain the classes better, with examples.",
            ))  # fmt: skip
            return found
        unclear = np.flatnonzero(self.high < UNCLEAR)
        if len(unclear):
            unclear = unclear[np.argsort(self.class_alpha[unclear], kind="stable")]
            ids = self.classes[unclear]
            worst = float(self.class_alpha[unclear[0]])
            found.append(Finding(
                "unclear-classes", "info", 1 - worst, tuple(ids.tolist()),
                f"Workers hardly agree on when {describe_ids(ids)} applies: alpha is below "
                f"{UNCLEAR} with 95% confidence ({worst:.2f} at worst; the score is one minus "
                "it).",
                "Explain these classes with examples, or merge them with others.",
            ))  # fmt: skip
        return found


def measure_set_agreement(
    data: CrowdSets, *, view: SetView | None = None, random_state: int = 0
) -> SetAgreementReport:
    """Measure the agreement of workers on sets and on single classes.

    Examples
    --------
    >>> sets = ["x", "x", "y", "", "x|y", "x|y"]
    >>> data = CrowdSets.from_arrays([0, 0, 1, 1, 2, 2], list("ababab"), sets)
    >>> measure_set_agreement(data).class_alpha.round(2)
    array([1.  , 0.44])
    """
    n = data.labels_per_task.astype(np.float64)
    if not (n > 1).any():
        raise NotApplicable("Agreement needs tasks with two labels or more; there are none.")
    ticks = np.zeros((data.n_tasks, data.n_classes))
    np.add.at(ticks, (data.task[data.annotation], data.members), 1.0)
    several = n > 1
    times = np.random.default_rng(random_state).multinomial(
        int(several.sum()), several / several.sum(), SAMPLES
    )
    drawn = class_alphas(ticks, n, times.astype(np.float64))
    known = np.isfinite(drawn).any(axis=0)
    ends = np.full((2, data.n_classes), np.nan)
    if known.any():
        ends[:, known] = np.nanquantile(drawn[:, known], [0.025, 0.975], axis=0)
    code = view.set_code if view is not None else set_codes(data)
    distinct = np.zeros((int(code.max()) + 1, data.n_classes))
    distinct[code[data.annotation], data.members] = 1.0
    return SetAgreementReport(
        int(several.sum()), float(np.mean(n[n > 0] == 1)), set_alpha(code, distinct, data.indptr),
        data.classes, ticks.sum(axis=0) / max(data.n_annotations, 1), class_alphas(ticks, n),
        *ends,
    )  # fmt: skip
