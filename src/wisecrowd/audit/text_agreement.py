"""Agreement of texts: how far the workers of a task differ from each other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.audit.part import NotApplicable, Part, Table
from wisecrowd.audit.text_view import TextView, text_view
from wisecrowd.core.findings import Finding
from wisecrowd.core.texts import CrowdTexts

Floats = NDArray[np.float64]
LOW = 0.8  # mean difference above which texts have no common wording


@dataclass(frozen=True, eq=False)
class TextAgreement(Part):
    """Differences between the texts of the same task; arrays have one entry per task.

    Attributes
    ----------
    difference, standard_error : float
        Mean over tasks of the share of words in which two workers differ (word error rate between
        workers, of the longer text), and its standard error.
    equal : float
        Mean share of pairs of workers with the same words.
    tasks, n_texts, task_difference
        Ids, numbers of texts, and mean difference of two texts; NaN with fewer than two.
    """

    difference: float
    standard_error: float
    equal: float
    tasks: NDArray[Any]
    n_texts: NDArray[np.int64]
    task_difference: Floats

    def tables(self) -> dict[str, Table]:
        """Return the table of tasks."""
        return {
            "disagreement": {
                "task": self.tasks, "n_texts": self.n_texts, "difference": self.task_difference,
            }
        }  # fmt: skip

    def findings(self) -> list[Finding]:
        """Return a finding if the texts hardly agree."""
        if not self.difference - 2 * self.standard_error > LOW:  # also if undefined
            return []
        return [Finding(
            "no-common-wording", "low", self.difference, (),
            f"Two texts of the same task differ in {self.difference:.0%} of their words on average "
            f"(± {self.standard_error:.0%}), which is the score.",
            "If tasks have several right wordings, use text-medoid or embedding-medoid, which "
            "return a text that somebody wrote; if not, check that rows belong to their tasks.",
        )]  # fmt: skip


def measure_text_agreement(data: CrowdTexts, *, view: TextView | None = None) -> TextAgreement:
    """Measure how far texts of the same task differ; case and punctuation do not count.

    Examples
    --------
    >>> texts = ["a small dog", "A small dog.", "one small dog"]
    >>> data = CrowdTexts.from_arrays(["r"] * 3, ["ann", "bob", "cem"], texts)
    >>> round(measure_text_agreement(data).difference, 2)
    0.22
    """
    view = text_view(data) if view is None else view
    votes, n = view.votes, data.n_tasks
    own = votes.sums(np.ones(data.n_annotations))
    first, second, distance = votes.distances
    total = np.bincount(votes.variant_task[first], own[first] * own[second] * distance, n)
    count = data.labels_per_task
    pairs = count * (count - 1) / 2
    several = pairs > 0
    if not several.any():
        raise NotApplicable("Agreement needs tasks with two texts or more, and there are none.")
    mean = np.where(several, total / np.maximum(pairs, 1), np.nan)
    same = np.bincount(votes.variant_task, own * (own - 1) / 2, n)[several] / pairs[several]
    spread = float(np.std(mean[several], ddof=1)) if several.sum() > 1 else float("nan")
    return TextAgreement(
        float(mean[several].mean()), spread / float(np.sqrt(several.sum())), float(same.mean()),
        data.tasks, count, mean,
    )  # fmt: skip
