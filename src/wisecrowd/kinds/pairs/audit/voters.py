"""Voters: who does not follow the others, prefers a side, or has habits of ties."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.audit.answer_pruning import RemovalEffect, effect_of_removal
from wisecrowd.core.findings import Finding
from wisecrowd.core.messages.option_spelling import parameter
from wisecrowd.core.parameter_checks import check_number
from wisecrowd.core.part import NotApplicable, WorkerPart, no_signal, prune_or
from wisecrowd.core.statistics import (
    WIDTH,
    as_many_by_chance,
    benjamini_hochberg,
    following,
    sigmoid,
)
from wisecrowd.core.types import Floats, Mask
from wisecrowd.kinds.pairs.audit.view import PairView, pair_view
from wisecrowd.kinds.pairs.container import CrowdPairs
from wisecrowd.kinds.pairs.outcomes import TIE

FEWEST = 8  # votes of a worker who is tested
LITTLE = 1 / 4  # share of the typical information, which grows with the squared slope
SURE = 1.645  # standard errors: one-sided 95%
HABIT = 1.0  # log-odds up to which a worker's preference for a side is a common habit
ALWAYS = 0.95  # share of votes for one side
SMALL, LARGE = 0.1, 0.7  # log-odds of the crowd's bias for medium and high severity
ALWAYS_TIED = 0.95  # share of votes that are ties
CHANCE = 0.001  # probability that a worker with the crowd's habits calls as many votes ties
MANY = 0.5  # share of ties in the crowd that is worth a note


@dataclass(frozen=True, eq=False)
class VoterReport(WorkerPart):
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

    table = "voters"
    noun = "all votes"

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

    def findings(self) -> list[Finding]:
        """Return adversaries, random voters, and the lack of any signal."""
        check = "Check the columns of items and outcomes; ask whether there is one order at all."
        turned, ignored = (
            prune_or("crowd-bt", does, self._pruning, data="votes")
            for does in ("which turns their votes around", "which ignores them")
        )
        lost = (
            [no_signal("votes", "the items cannot be put in an order", check)]
            if self.typical == 0
            else []
        )
        return [
            *lost,
            *self.about("adversaries", self.against,
                        "voted against the others more often than chance allows", turned),
            *self.about("random-voters", self.random,
                        "gave votes that have nothing to do with the others'", ignored),
        ]  # fmt: skip


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
    found = following(slope, 1 / error, enough, level)
    if not found.possible:
        raise NotApplicable("Voters cannot be compared: they have too few votes on the same items.")
    against = found.against & (found.typical > 0)
    random = found.silent & (slope + SURE * error <= np.sqrt(LITTLE) * found.typical)
    accused = against | random
    return VoterReport(
        data.workers, n, slope, slope - WIDTH * error, slope + WIDTH * error, found.testable,
        random, against, found.typical,
        effect_of_removal(data, accused) if pruning and accused.any() else None,
    )  # fmt: skip


@dataclass(frozen=True, eq=False)
class SideReport(WorkerPart):
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

    table = "sides"
    noun = "all votes"

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
        return [
            *found,
            *self.about(
                "side-clickers", self.clicker, f"voted for one side in {ALWAYS:.0%} or more of "
                "their votes",
                "Do not give them more tasks; worker-ties estimates the side of every worker.",
            ),
            *self.about(
                "one-sided-workers", self.one_sided & ~self.clicker, "preferred one side by "
                "log-odds of more than 1",
                "Show items on random sides; then such habits cancel.", "low",
            ),
        ]  # fmt: skip


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


@dataclass(frozen=True, eq=False)
class TieReport(WorkerPart):
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

    table = "ties"
    noun = "all votes"

    share: float
    workers: NDArray[Any]
    n_votes: NDArray[np.int64]
    worker_share: NDArray[np.float64]
    always: NDArray[np.bool_]

    def findings(self) -> list[Finding]:
        """Return workers who call everything a tie, and very frequent ties."""
        found = self.about(
            "tie-clickers", self.always, f"called {ALWAYS_TIED:.0%} or more of their votes ties",
            "Do not give them more tasks; worker-ties estimates how each worker uses ties.",
            by=self.always,
        )  # fmt: skip
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
    tie = data.outcome == TIE
    n = data.labels_per_worker
    count = np.bincount(data.worker, tie, data.n_workers)
    share = count / np.maximum(n, 1)
    # Half of the workers use ties more often than the median one; habits differ widely.
    usual = float(np.median(share[n > 0]))
    spread = float(np.quantile(share[n > 0], 0.9)) if (n > 0).any() else usual
    rate = min(0.9, max(usual, spread, 0.02))
    chance = as_many_by_chance(count, n, rate)
    always = (
        data.has_workers
        & (n >= FEWEST)
        & (share >= ALWAYS_TIED)
        & (chance < CHANCE / max(data.n_workers, 1))
    )
    return TieReport(float(np.mean(tie)), data.workers, n, np.where(n > 0, share, np.nan), always)
