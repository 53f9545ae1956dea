"""Use of ties: how often the crowd and each worker call two items equal."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.audit.pair_view import PairView
from wisecrowd.audit.part import Part, Table
from wisecrowd.core.findings import Finding
from wisecrowd.core.messages.descriptions import describe_ids
from wisecrowd.core.outcomes import TIE
from wisecrowd.core.pairs import CrowdPairs

FEWEST = 8  # votes of a worker who is tested
ALWAYS = 0.95
CHANCE = 0.001  # probability that a worker with the crowd's habits calls as many votes ties
MANY = 0.5  # share of ties in the crowd that is worth a note


@dataclass(frozen=True, eq=False)
class TieReport(Part):
    """Shares of ties; arrays have one entry per worker.

    Attributes
    ----------
    share : float
        Share of ties among all votes.
    workers, n_votes, worker_share
        Ids, numbers of votes and shares of ties.
    always : bool
        Whether 95% of the worker's votes are ties, which the habits of the crowd do not explain.
    """

    share: float
    workers: NDArray[Any]
    n_votes: NDArray[np.int64]
    worker_share: NDArray[np.float64]
    always: NDArray[np.bool_]

    def tables(self) -> dict[str, Table]:
        """Return the table of workers."""
        columns = {"n_votes": self.n_votes, "share": self.worker_share, "always": self.always}
        return {"ties": {"worker": self.workers} | columns}

    def findings(self) -> list[Finding]:
        """Return workers who call everything a tie, and very frequent ties."""
        found = []
        if self.always.any():
            ids = self.workers[self.always]
            share = float(self.n_votes[self.always].sum() / max(int(self.n_votes.sum()), 1))
            severity = "high" if share >= 0.2 else "medium" if share >= 0.02 else "low"
            found.append(Finding(
                "tie-clickers", severity, share, tuple(ids.tolist()),
                f"{len(ids)} worker{'s' if len(ids) > 1 else ''} ({describe_ids(ids)}; {share:.1%} "
                f"of all votes, which is the score) called {ALWAYS:.0%} or more of their votes "
                "ties.",
                "Do not give them more tasks; worker-ties estimates how each worker uses ties.",
            ))  # fmt: skip
        if self.share > MANY:
            found.append(Finding(
                "many-ties", "info", self.share, (),
                f"{self.share:.0%} of the votes are ties, which is the score.",
                "Use davidson, which has a probability of ties; they say that items are close.",
            ))  # fmt: skip
        return found


def find_tie_habits(data: CrowdPairs, *, view: PairView | None = None) -> TieReport:
    """Measure the share of ties, and find workers who call nearly everything a tie.

    Examples
    --------
    >>> votes = CrowdPairs.from_arrays(None, list("abab"), list("xxyy"), list("yyzz"), [0, 2, 0, 2])
    >>> find_tie_habits(votes).worker_share
    array([0., 1.])
    """
    from scipy.special import bdtrc

    tie = data.outcome == TIE
    n = data.labels_per_worker
    count = np.bincount(data.worker, tie, data.n_workers)
    share = count / np.maximum(n, 1)
    # Half of the workers use ties more often than the median one; habits differ widely.
    usual = float(np.median(share[n > 0]))
    spread = float(np.quantile(share[n > 0], 0.9)) if (n > 0).any() else usual
    rate = min(0.9, max(usual, spread, 0.02))
    chance = np.where(count > 0, bdtrc(np.maximum(count - 1, 0), n, rate), 1.0)
    always = (
        data.has_workers
        & (n >= FEWEST)
        & (share >= ALWAYS)
        & (chance < CHANCE / max(data.n_workers, 1))
    )
    return TieReport(float(np.mean(tie)), data.workers, n, np.where(n > 0, share, np.nan), always)
