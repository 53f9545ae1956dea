"""Contradictions: opposite votes of one worker on the same pair of items."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.audit.pair_view import PairView, pair_view
from wisecrowd.audit.part import NotApplicable, Part, Table
from wisecrowd.core.findings import Finding
from wisecrowd.core.messages.descriptions import describe_ids
from wisecrowd.core.pairs import CrowdPairs
from wisecrowd.core.parameter_checks import check_number
from wisecrowd.families.dependence import benjamini_hochberg
from wisecrowd.families.logistic import sigmoid

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

FEWEST = 10  # repeated comparisons
MARGIN = 0.05  # up to this, close scores explain the reversals
COIN = 0.45  # share of opposite repeats that is close to tossing a coin


@dataclass(frozen=True, eq=False)
class ContradictionReport(Part):
    """Repeated comparisons of the same pair, in the same task, by the same worker.

    Attributes
    ----------
    n_repeats, n_opposite : float
        Pairs of votes on the same comparison without ties, and how many of them are opposite.
    expected : float
        Opposite ones if every vote were drawn from the fitted scores.
    workers, repeats, opposite, expected_opposite : (n_workers,)
    q : (n_workers,)
        False discovery rate of an excess of opposite votes.
    inconsistent : (n_workers,) bool
    """

    n_repeats: float
    n_opposite: float
    expected: float
    workers: NDArray[Any]
    repeats: Floats
    opposite: Floats
    expected_opposite: Floats
    q: Floats
    inconsistent: Mask

    def tables(self) -> dict[str, Table]:
        """Return the workers with repeated comparisons."""
        has = self.repeats > 0
        names = ("repeats", "opposite", "expected_opposite", "q", "inconsistent")
        columns = {name: getattr(self, name)[has] for name in names}
        return {"contradictions": {"worker": self.workers[has]} | columns}

    def findings(self) -> list[Finding]:
        """Return a crowd that contradicts itself like a coin, and inconsistent workers."""
        found = []
        share = self.n_opposite / max(self.n_repeats, 1.0)
        error = np.sqrt(share * (1 - share) / max(self.n_repeats, 1.0))
        if self.n_repeats >= FEWEST and share - 1.645 * error > COIN:
            explained = self.expected / max(self.n_repeats, 1.0)
            severity = "low" if share - explained < MARGIN else "medium"
            found.append(Finding(
                "contradictory-crowd", severity, share, (),
                f"Asked twice about the same pair, workers reverse their vote in {share:.0%} of "
                f"{self.n_repeats:.0f} cases, which is the score; the scores explain "
                f"{explained:.0%}.",
                "Check that the question is clear and that pairs are not equal; the order of the "
                "items is not reliable.",
            ))  # fmt: skip
        if self.inconsistent.any():
            ids = self.workers[self.inconsistent]
            found.append(Finding(
                "inconsistent-workers", "low", float(len(ids)), tuple(ids.tolist()),
                f"{len(ids)} worker{'s' if len(ids) > 1 else ''} ({describe_ids(ids)}) reversed "
                "their own votes on the same pair more often than the scores explain; the score is "
                "their number.",
                "Use crowd-bt, which gives them less weight.",
            ))  # fmt: skip
        return found


def find_contradictions(
    data: CrowdPairs, *, level: float = 0.01, view: PairView | None = None
) -> ContradictionReport:
    """Count opposite votes of the same worker on the same pair, against what the scores explain.

    Two votes drawn from the fitted scores are opposite with probability 2 p (1 - p). Votes on the
    same items in different tasks, such as different prompts, are not repeats.

    Examples
    --------
    >>> left, right = ["x"] * 12, ["y"] * 12
    >>> votes = CrowdPairs.from_arrays(None, ["a"] * 12, left, right, [0, 1] * 6)
    >>> report = find_contradictions(votes)
    >>> report.n_opposite, report.n_repeats
    (36.0, 66.0)
    """
    from scipy.special import ndtr

    check_number("level", level, 0.0, 1.0)
    if not data.has_workers:
        raise NotApplicable("Contradictions cannot be counted: the workers are unknown.")
    view = pair_view(data) if view is None else view
    decided = np.flatnonzero(view.vote != 0)
    turned = data.left > data.right
    low = np.where(turned, data.right, data.left)[decided]
    high = np.where(turned, data.left, data.right)[decided]
    for_low = ((view.vote > 0) ^ turned)[decided]
    columns = np.stack([data.worker[decided], data.task[decided], low, high])
    key, code = np.unique(columns, axis=1, return_inverse=True)
    n = np.bincount(code)
    wins = np.bincount(code, for_low)
    twice = n > 1
    if not twice.any():
        raise NotApplicable("Contradictions cannot be counted: no worker compared a pair twice.")
    worker, J = key[0][twice], data.n_workers
    p = sigmoid(view.scores[key[2][twice]] - view.scores[key[3][twice]])
    pairs = (n * (n - 1) / 2)[twice]
    opposite = (wins * (n - wins))[twice]
    chance = 2 * p * (1 - p)
    repeats, seen, expected = (
        np.asarray(np.bincount(worker, counts, J), dtype=np.float64)
        for counts in (pairs, opposite, pairs * chance)
    )
    # Pairs of the same votes are dependent; n votes hold the evidence of n - 1 of them.
    shrink = (n[twice] - 1) / np.maximum(pairs, 1)
    variance = np.bincount(worker, pairs * chance * (1 - chance) / np.maximum(shrink, 1e-9), J)
    enough = np.bincount(worker, n[twice] - 1.0, J) >= FEWEST
    q = np.ones(J)
    if enough.any():
        z = (seen - expected)[enough] / np.sqrt(np.maximum(variance[enough], 1e-12))
        q[enough] = benjamini_hochberg(ndtr(-z))
    return ContradictionReport(
        float(repeats.sum()), float(seen.sum()), float(expected.sum()), data.workers, repeats, seen,
        expected, q, q <= level,
    )  # fmt: skip
