"""Connectivity of comparisons: items that cannot be compared, and items with few votes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.audit.pair_view import PairView
from wisecrowd.audit.part import Part, Table
from wisecrowd.core.findings import Finding
from wisecrowd.core.messages.descriptions import describe_ids
from wisecrowd.core.pairs import CrowdPairs
from wisecrowd.families.comparisons import parts

FEW = 4  # comparisons of an item
MANY_ITEMS = 0.1  # share of items with few comparisons that is worth a note


@dataclass(frozen=True, eq=False)
class ConnectivityReport(Part):
    """Connected parts and numbers of comparisons; arrays have one entry per item.

    Attributes
    ----------
    items, component, n_comparisons
        Ids, connected parts (the largest is 0) and numbers of votes.
    n_components : int
        Parts with comparisons.
    """

    items: NDArray[Any]
    component: NDArray[np.int64]
    n_comparisons: NDArray[np.int64]
    n_components: int

    def tables(self) -> dict[str, Table]:
        """Return the table of items."""
        return {"connectivity": {
            "item": self.items, "component": self.component, "n_comparisons": self.n_comparisons,
        }}  # fmt: skip

    def findings(self) -> list[Finding]:
        """Return separate parts, items without votes, and few votes per item."""
        found = []
        compared = self.n_comparisons > 0
        if self.n_components > 1:
            apart = compared & (self.component > 0)
            ids, share = self.items[apart], float(apart.sum() / max(int(compared.sum()), 1))
            found.append(Finding(
                "separate-items", "high" if share >= 0.1 else "medium", share, tuple(ids.tolist()),
                f"The comparisons fall into {self.n_components} parts: {describe_ids(ids)} "
                f"({share:.0%} of the items, which is the score) were never compared with the "
                "others, directly or through other items, so their scores cannot be compared.",
                "Collect votes that compare an item of each part with one of the largest part.",
            ))  # fmt: skip
        bare = ~compared
        if bare.any():
            ids = self.items[bare]
            found.append(Finding(
                "items-without-votes", "low", float(bare.mean()), tuple(ids.tolist()),
                f"{len(ids)} item{'s' if len(ids) > 1 else ''} ({describe_ids(ids)}) got no votes"
                "; the score is their share.",
                "Collect votes on them; their rank is not known.",
            ))  # fmt: skip
        few = compared & (self.n_comparisons < FEW)
        share = float(few.sum() / max(int(compared.sum()), 1))
        if share > MANY_ITEMS:
            ids = self.items[few][np.argsort(self.n_comparisons[few], kind="stable")]
            found.append(Finding(
                "few-comparisons", "medium" if share > 0.5 else "low", share, tuple(ids.tolist()),
                f"{share:.0%} of the items, which is the score, have fewer than {FEW} comparisons "
                f"({describe_ids(ids)}); their ranks are hardly known.",
                "Collect more votes on them.",
            ))  # fmt: skip
        return found


def check_connectivity(data: CrowdPairs, *, view: PairView | None = None) -> ConnectivityReport:
    """Find items that cannot be compared with the others, and items with few comparisons.

    Examples
    --------
    >>> votes = CrowdPairs.from_arrays(None, None, ["a", "b", "x"], ["b", "c", "y"], [0, 0, 1])
    >>> [(found.id, found.affected) for found in check_connectivity(votes).findings()][0]
    ('separate-items', ('x', 'y'))
    """
    component = parts(data.left, data.right, data.n_items) if view is None else view.component
    n = data.comparisons_per_item
    return ConnectivityReport(data.items, component, n, len(np.unique(component[n > 0])))
