"""Voters who decide at random or against the crowd."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.audit.answer_pruning import RemovalEffect, effect_of_removal
from wisecrowd.audit.pair_view import PairView, pair_view
from wisecrowd.audit.part import NotApplicable, Part, Table
from wisecrowd.core.findings import Finding
from wisecrowd.core.messages.descriptions import describe_ids
from wisecrowd.core.messages.option_spelling import for_reader
from wisecrowd.core.pairs import CrowdPairs
from wisecrowd.core.parameter_checks import check_number
from wisecrowd.families.dependence import benjamini_hochberg

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

FEWEST = 8  # votes of a worker who is tested
LITTLE = 1 / 4  # share of the typical information, which grows with the squared slope
SURE = 1.645  # standard errors: one-sided 95%
WIDTH = 1.959963984540054


@dataclass(frozen=True, eq=False)
class VoterReport(Part):
    """Result of the search for bad voters; arrays have one entry per worker.

    Attributes
    ----------
    workers, n_votes
        Ids and numbers of votes.
    reliability, low, high
        Slope of the votes on those that the other workers' scores predict, with its 95% interval: 1
        for votes as predicted, 0 for random votes, -1 for votes against the crowd.
    testable : bool
        Whether a typical worker on the same pairs would have been distinguished from a random one.
    random, against : bool
        Whether the votes are unrelated to the others', or opposed to them.
    typical : float
        Median slope of the workers whose slope is significant; 0 without any.
    """

    workers: NDArray[Any]
    n_votes: NDArray[np.int64]
    reliability: Floats
    low: Floats
    high: Floats
    testable: Mask
    random: Mask
    against: Mask
    typical: float
    _pruning: RemovalEffect | None = None

    @property
    def accused(self) -> Mask:
        """(n_workers,): workers whom pruning removes."""
        return self.random | self.against

    def tables(self) -> dict[str, Table]:
        """Return the table of workers."""
        names = ("n_votes", "reliability", "low", "high", "testable", "random", "against")
        return {"voters": {"worker": self.workers} | {name: getattr(self, name) for name in names}}

    def findings(self) -> list[Finding]:
        """Return adversaries, random voters, and the lack of any signal."""
        found = []
        if self.typical == 0:
            found.append(Finding(
                "no-signal", "high", 1.0, (),
                "No worker's votes follow those of the others: they are all random, or the items "
                "cannot be put in an order.",
                "Check the columns of items and outcomes; ask whether there is one order at all.",
            ))  # fmt: skip
        kinds = (
            ("adversaries", self.against, "voted against the others more often than chance allows"),
            ("random-voters", self.random, "gave votes that have nothing to do with the others'"),
        )
        return found + [self._finding(name, who, did) for name, who, did in kinds if who.any()]

    def _finding(self, name: str, who: Mask, did: str) -> Finding:
        order = np.argsort(-self.n_votes[who], kind="stable")
        ids = self.workers[who][order]
        share = float(self.n_votes[who].sum() / max(int(self.n_votes.sum()), 1))
        severity = "high" if share >= 0.2 else "medium" if share >= 0.02 else "low"
        return Finding(
            name, severity, share, tuple(ids.tolist()),
            f"{len(ids)} worker{'s' if len(ids) > 1 else ''} ({describe_ids(ids)}; {share:.1%} of "
            f"all votes, which is the score) {did}.",
            self._remedy(name == "adversaries"),
        )  # fmt: skip

    def _remedy(self, against: bool) -> str:
        how = for_reader(
            'wisecrowd.audit.clean(votes, ["spammers"])',
            "wisecrowd audit FILE --prune-to CLEAN.csv",
        )
        model = "crowd-bt, which " + ("turns their votes around" if against else "ignores them")
        if self._pruning is None:
            return f"Prune them ({how}), or use {model}."
        if self._pruning.helps:
            return f"Prune them ({how}): for crowd-bt, {self._pruning}."
        return f"Use {model}: {self._pruning}. Do not give them more tasks."


def find_bad_voters(
    data: CrowdPairs,
    *,
    level: float = 0.01,
    view: PairView | None = None,
    pruning: bool = True,
) -> VoterReport:
    r"""Find workers whose votes do not follow the items, without truth.

    With the vote :math:`o_e \in \{1, 0, -1\}` and the vote :math:`w_e = 2\sigma(d_e) - 1` that the
    scores of the other workers predict, the slope is
    :math:`\beta_j = \sum o_e w_e / \sum w_e^2`, an estimate of :math:`2\eta_j - 1` of CrowdBT with
    the standard error :math:`1/\sqrt{\sum w_e^2}` for random votes. A worker votes *against* the
    crowd if the slope is negative at a false discovery rate of ``level``. It is *random* if
    independence is not rejected, although a typical worker would be at twice the critical value,
    and if the slope is, with 95% confidence, under half of the typical one.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> score, worker = rng.normal(0, 1.5, 20), np.repeat(np.arange(12), 100)
    >>> left = rng.integers(0, 20, 1200)
    >>> right = (left + rng.integers(1, 20, 1200)) % 20
    >>> right_wins = score[left] - score[right] + rng.logistic(size=1200) < 0
    >>> right_wins = np.where(worker == 11, ~right_wins, right_wins)
    >>> votes = CrowdPairs.from_arrays(None, worker, left, right, right_wins.astype(int))
    >>> report = find_bad_voters(votes)
    >>> report.workers[report.against], report.workers[report.random]
    (array([11]), array([], dtype=int64))
    """
    from scipy.special import ndtr, ndtri

    check_number("level", level, 0.0, 1.0)
    if not data.has_workers:
        raise NotApplicable("Voters cannot be compared: the workers are unknown.")
    view = pair_view(data) if view is None else view
    n = data.labels_per_worker
    error = 1 / np.sqrt(np.maximum(view.information, 1e-12))
    slope, enough = view.reliability, n >= FEWEST
    if not enough.any() or data.n_workers < 2:
        raise NotApplicable(
            f"Voters cannot be compared: there are fewer than two workers, or none has {FEWEST} "
            "votes."
        )
    critical = float(-ndtri(level / 2))
    z = slope / error
    clear = enough & (benjamini_hochberg(np.where(enough, ndtr(-z), 1.0)) <= level)
    typical = float(np.median(slope[clear])) if clear.any() else 0.0
    if not clear.any() and not (view.information > (2 * critical) ** 2).any():
        raise NotApplicable("Voters cannot be compared: they have too few votes on the same items.")
    testable = enough & (typical / error >= 2 * critical)
    against = enough & (benjamini_hochberg(np.where(enough, ndtr(z), 1.0)) <= level) & (typical > 0)
    silent = testable & (np.abs(z) <= critical)
    random = silent & (slope + SURE * error <= np.sqrt(LITTLE) * typical)
    accused = against | random
    return VoterReport(
        data.workers, n, slope, slope - WIDTH * error, slope + WIDTH * error, testable, random,
        against, typical,
        effect_of_removal(data, accused) if pruning and accused.any() else None,
    )  # fmt: skip
