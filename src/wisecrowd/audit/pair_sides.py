"""Side bias: votes for the left or the right item whatever the items are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.audit.pair_view import PairView, pair_view
from wisecrowd.audit.part import NotApplicable, Part, Table
from wisecrowd.core.findings import Finding
from wisecrowd.core.messages.descriptions import describe_ids
from wisecrowd.core.messages.option_spelling import parameter
from wisecrowd.core.pairs import CrowdPairs
from wisecrowd.core.parameter_checks import check_number
from wisecrowd.families.dependence import benjamini_hochberg
from wisecrowd.families.logistic import sigmoid

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

FEWEST = 8  # votes of a worker who is tested
HABIT = 1.0  # log-odds up to which a worker's preference for a side is a common habit
ALWAYS = 0.95  # share of votes for one side
SMALL, LARGE = 0.1, 0.7  # log-odds of the crowd's bias for medium and high severity
WIDTH = 1.959963984540054


@dataclass(frozen=True, eq=False)
class SideReport(Part):
    """Preference for a side; arrays have one entry per worker.

    Attributes
    ----------
    bias, low, high : float
        Log-odds of the left side in the whole crowd, with the 95% interval, workers as clusters.
    left_share : float
        Share of the left side among the votes that are not ties.
    workers, n_votes, worker_left_share
        Ids, numbers of votes without ties, and the share of left ones.
    worker_bias, worker_low, worker_high
        Log-odds of the left side and their 95% interval.
    q : float
        False discovery rate at which the log-odds are beyond ±1.
    one_sided, clicker : bool
        Whether the false discovery rate is small; whether, moreover, 95% of the votes are for one
        side.
    """

    bias: float
    low: float
    high: float
    left_share: float
    workers: NDArray[Any]
    n_votes: NDArray[np.int64]
    worker_left_share: Floats
    worker_bias: Floats
    worker_low: Floats
    worker_high: Floats
    q: Floats
    one_sided: Mask
    clicker: Mask

    def tables(self) -> dict[str, Table]:
        """Return the table of workers."""
        names = ("n_votes", "worker_left_share", "worker_bias", "worker_low", "worker_high", "q",
                 "one_sided", "clicker")  # fmt: skip
        columns = {name.removeprefix("worker_"): getattr(self, name) for name in names}
        return {"sides": {"worker": self.workers} | columns}

    def findings(self) -> list[Finding]:
        """Return the bias of the crowd, workers who click one side, and one-sided workers."""
        found = []
        least = min(abs(self.low), abs(self.high)) if self.low * self.high > 0 else 0.0
        if least > 0:
            severity = "high" if least > LARGE else "medium" if least > SMALL else "low"
            side = "left" if self.bias > 0 else "right"
            found.append(Finding(
                "side-bias", severity, abs(self.bias), (),
                f"The {side} item wins more often than its quality explains: log-odds "
                f"{self.bias:+.2f} ({self.low:+.2f} to {self.high:+.2f}), the score without its "
                f"sign; equal items would win {sigmoid(np.array(abs(self.bias))):.0%} of votes on "
                "that side.",
                "Show items on random sides, and estimate the bias beside the scores "
                f"(bradley-terry with {parameter('side', True)}).",
            ))  # fmt: skip
        if self.clicker.any():
            found.append(self._finding(
                "side-clickers", self.clicker, f"voted for one side in {ALWAYS:.0%} or more of "
                "their votes", True,
            ))  # fmt: skip
        rest = self.one_sided & ~self.clicker
        if rest.any():
            did = "preferred one side by log-odds of more than 1"
            found.append(self._finding("one-sided-workers", rest, did, False))
        return found

    def _finding(self, name: str, who: Mask, did: str, bad: bool) -> Finding:
        order = np.argsort(-self.n_votes[who], kind="stable")
        ids = self.workers[who][order]
        share = float(self.n_votes[who].sum() / max(int(self.n_votes.sum()), 1))
        severity = "high" if share >= 0.2 else "medium" if share >= 0.02 else "low"
        return Finding(
            name, severity if bad else "low", share, tuple(ids.tolist()),
            f"{len(ids)} worker{'s' if len(ids) > 1 else ''} ({describe_ids(ids)}; {share:.1%} of "
            f"all votes, which is the score) {did}.",
            "Do not give them more tasks; worker-ties estimates the side of every worker."
            if bad else "Show items on random sides; then such habits cancel.",
        )  # fmt: skip


def find_side_bias(
    data: CrowdPairs, *, level: float = 0.05, view: PairView | None = None
) -> SideReport:
    r"""Measure the preference for a side, of the crowd and of every worker.

    The bias of the crowd is estimated together with the scores. That of a worker is
    :math:`h_j = \sum (y_e - p_e) / \sum p_e (1 - p_e)`, with :math:`y_e = 1` for left, 1/2 for a
    tie and :math:`p_e` from the scores of the others. Preferences up to ±1 are common habits; a
    worker is one-sided if a test rejects :math:`|h_j| \le 1` at a false discovery rate of
    ``level``.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> left = rng.integers(0, 9, 800)
    >>> right = (left + rng.integers(1, 9, 800)) % 9
    >>> worker = np.repeat(np.arange(8), 100)
    >>> outcome = np.where(worker == 7, 0, rng.integers(0, 2, 800))
    >>> report = find_side_bias(CrowdPairs.from_arrays(None, worker, left, right, outcome))
    >>> report.workers[report.clicker]
    array([7])
    """
    from scipy.special import ndtr, stdtrit

    check_number("level", level, 0.0, 1.0)
    view = pair_view(data) if view is None else view
    if not view.has_sides:
        raise NotApplicable(
            "Sides cannot be compared: every vote is for the same side, as in tables of chosen and "
            "rejected items."
        )
    J, worker = data.n_workers, data.worker
    p = sigmoid(view.gap)
    apart = (1 + view.vote) / 2 - p
    total = np.bincount(worker, apart, J)
    curve = np.maximum(np.bincount(worker, p * (1 - p), J), 1e-12)
    noise = np.maximum(np.bincount(worker, apart**2, J), curve)
    own, error = total / curve, np.sqrt(noise) / curve
    decided = view.vote != 0
    n = np.bincount(worker[decided], minlength=J)
    share = np.bincount(worker, view.vote > 0, J) / np.maximum(n, 1)
    tested = (n >= FEWEST) & data.has_workers
    q = np.ones(J)
    if tested.any():
        q[tested] = benjamini_hochberg(ndtr(-(np.abs(own) - HABIT)[tested] / error[tested]))
    one_sided = q <= level
    # Without votes for the other side the log-odds saturate; such votes are tested directly.
    always = tested & (np.maximum(share, 1 - share) >= ALWAYS) & _beyond_chance(view, p, n, level)
    half = float(stdtrit(max(data.n_workers - 1, 2), 0.975)) * view.side_error
    return SideReport(
        view.side, view.side - half, view.side + half, float(np.mean(view.vote[decided] > 0)),
        data.workers, n, np.where(n > 0, share, np.nan), own, own - WIDTH * error,
        own + WIDTH * error, q, one_sided | always, always,
    )  # fmt: skip


def _beyond_chance(view: PairView, p: Floats, n: NDArray[np.int64], level: float) -> Mask:
    """Return whether honest votes, with a habit of log-odds 1, would be as one-sided by chance."""
    worker, J = view.data.worker, view.data.n_workers
    gap = np.log(np.clip(p, 1e-9, 1 - 1e-9)) - np.log1p(-np.clip(p, 1e-9, 1 - 1e-9))
    likely = np.where(view.vote > 0, sigmoid(gap + HABIT), sigmoid(HABIT - gap))
    log_p = np.bincount(worker, np.where(view.vote != 0, np.log(likely), 0.0), J)
    # A few votes for the other side: the number of ways to place them, by the binomial bound.
    return np.asarray(np.exp(np.minimum(log_p, 0.0)) <= level / max(J, 1))
