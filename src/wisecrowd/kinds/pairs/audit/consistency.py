"""What votes say together: contradictions of a worker, cycles of items, and separate parts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.findings import Finding
from wisecrowd.core.messages.descriptions import describe_ids
from wisecrowd.core.parameter_checks import as_generator, check_integer, check_number
from wisecrowd.core.part import NotApplicable, Part, Table, WorkerPart
from wisecrowd.core.statistics import benjamini_hochberg, sigmoid
from wisecrowd.core.types import Floats, Mask
from wisecrowd.kinds.pairs.audit.view import PairView, pair_view
from wisecrowd.kinds.pairs.container import CrowdPairs
from wisecrowd.kinds.pairs.methods.comparisons import pair_votes, parts

FEWEST = 10  # repeated comparisons
MARGIN = 0.05  # up to this, close scores explain the reversals
COIN = 0.45  # share of opposite repeats that is close to tossing a coin
FEW = 4  # comparisons of an item
MANY_ITEMS = 0.1  # share of items with few comparisons that is worth a note
MOST_WORK = 200_000_000  # steps of the count of triangles
FEWEST_TRIPLES = 10  # triples with three decided comparisons
FAR = 4.0  # standard deviations of the simulated crowds
EXCESS = 0.05  # share of triples beyond the expected one
CLEAR = 2.0  # standard deviations of a coin, from which a majority is clear
SLOPES = tuple(2.0 ** (power / 2) for power in range(-2, 5))


@dataclass(frozen=True, eq=False)
class ContradictionReport(WorkerPart):
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

    table = "contradictions"

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
        columns = super().tables()["contradictions"]
        return {"contradictions": {name: one[self.repeats > 0] for name, one in columns.items()}}

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
            who = np.flatnonzero(self.inconsistent)
            found.append(Finding(
                "inconsistent-workers", "low", float(len(who)), tuple(self.workers[who].tolist()),
                f"{self.named(who)} reversed their own votes on the same pair more often than the "
                "scores explain; the score is their number.",
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


@dataclass(frozen=True, eq=False)
class CycleReport(Part):
    """Share of cyclic triples among those whose three comparisons are decided.

    Attributes
    ----------
    n_triples, n_cycles : int
    share, expected, spread : float
        Observed share of cycles; mean and standard deviation in votes simulated from the scores.
    n_clear_triples, n_clear_cycles : int
        The same among pairs of items with a clear majority, beyond two standard deviations.
    expected_clear, spread_clear : float
        Mean and standard deviation of the number of clear cycles in simulated votes.
    """

    n_triples: int
    n_cycles: int
    share: float
    expected: float
    spread: float
    n_clear_triples: int
    n_clear_cycles: int
    expected_clear: float
    spread_clear: float

    def findings(self) -> list[Finding]:
        """Return more cycles than the scores explain, among all majorities or the clear ones."""
        if self.n_triples < FEWEST_TRIPLES or not (self._many or self._many_clear):
            return []
        clear = self.n_clear_cycles / max(self.n_clear_triples, 1)
        return [Finding(
            "cycles", "medium", max(self.share - self.expected, clear), (),
            f"{self.n_cycles} of {self.n_triples} triples of items form a cycle ({self.share:.0%}, "
            f"expected {self.expected:.0%}); of those with clear majorities "
            f"{self.n_clear_cycles} of {self.n_clear_triples}, where one order of the items "
            f"explains {self.expected_clear:.0f}. The score is the larger excess.",
            "One score per item does not describe these votes: look for groups of workers with "
            "different tastes, or for several criteria in one question.",
        )]  # fmt: skip

    @property
    def _many(self) -> bool:
        excess = self.share - self.expected
        return excess >= max(EXCESS, FAR * max(self.spread, 1e-3))

    @property
    def _many_clear(self) -> bool:
        excess = self.n_clear_cycles - self.expected_clear
        least = max(FEWEST_TRIPLES / 2, EXCESS * self.n_clear_triples)
        return excess >= max(least, FAR * max(self.spread_clear, 0.5))


def find_cycles(
    data: CrowdPairs,
    *,
    n_simulations: int = 20,
    view: PairView | None = None,
    random_state: Any = 0,
) -> CycleReport:
    """Count triples whose majorities form a cycle, and compare with votes drawn from the scores.

    The simulated crowds have the same comparisons, ties and workers. Scores are shrunk by their
    own uncertainty first, because estimated scores are further apart than the true ones.

    Examples
    --------
    >>> votes = CrowdPairs.from_arrays(None, None, list("xyz"), list("yzx"), [0, 0, 0])
    >>> find_cycles(votes).n_cycles
    1
    """
    check_integer("n_simulations", n_simulations, 2, 1000)
    view = pair_view(data) if view is None else view
    rng = as_generator(random_state)
    votes = pair_votes(data)
    degree = np.bincount(votes.left, minlength=data.n_items)
    degree = degree + np.bincount(votes.right, minlength=data.n_items)
    if float(np.sum(degree.astype(np.float64) ** 2)) * n_simulations > MOST_WORK:
        raise NotApplicable("Cycles were not counted: there are too many comparisons of items.")
    net = votes.counts[:, 0] - votes.counts[:, 1]
    size = votes.counts[:, :2].sum(axis=1)
    n_cycles, n_triples = _count(votes.left, votes.right, net, data.n_items)
    if n_triples == 0:
        raise NotApplicable("Cycles cannot be counted: no three items were all compared.")
    clear, clear_triples = _count(votes.left, votes.right, _clear(net, size), data.n_items)
    shares, counts = _simulated(view, n_simulations, rng)
    return CycleReport(
        n_triples, n_cycles, n_cycles / n_triples, float(np.mean(shares)), float(np.std(shares)),
        clear_triples, clear, float(np.mean(counts)), float(np.std(counts)),
    )  # fmt: skip


def _clear(net: Floats, size: Floats) -> Floats:
    """Return majorities beyond two standard deviations of a coin, 0 for the others."""
    return np.where(net**2 >= CLEAR**2 * np.maximum(size, 1.0), net, 0.0)


def _count(left: Any, right: Any, net: Floats, n_items: int) -> tuple[int, int]:
    """Return the numbers of cycles and of triples among decided pairs."""
    from scipy import sparse

    decided = net != 0
    winner = np.where(net > 0, left, right)[decided]
    loser = np.where(net > 0, right, left)[decided]
    shape = n_items, n_items
    beats = sparse.csr_matrix((np.ones(len(winner)), (winner, loser)), shape=shape)
    known = beats + beats.T
    cycles = float((beats @ beats).multiply(beats.T).sum()) / 3
    triples = float((known @ known).multiply(known).sum()) / 6
    return round(cycles), round(triples)


def _simulated(
    view: PairView, n_simulations: int, rng: np.random.Generator
) -> tuple[Floats, Floats]:
    """Return the shares of cycles and the numbers of clear cycles in simulated crowds."""
    data = view.data
    use = view.vote != 0
    left, right, worker = data.left[use], data.right[use], data.worker[use]
    scores = _shrunk(view)
    gap = scores[left] - scores[right]
    chance = _vote_law(gap, view.vote[use], worker, data.n_workers)
    low, high = np.minimum(left, right).astype(np.int64), np.maximum(left, right)
    cell, code = np.unique(low * data.n_items + high, return_inverse=True)
    first, second = np.divmod(cell, data.n_items)
    turn = np.where(left < right, 1.0, -1.0)
    size: Floats = np.asarray(np.bincount(code, data.weights[use]), dtype=np.float64)
    shares, counts = [], []
    for _ in range(n_simulations):
        vote = np.where(rng.random(len(chance)) < chance, 1.0, -1.0)
        total = np.bincount(code, vote * turn * data.weights[use])
        net: Floats = np.round(total, 9).astype(np.float64)
        cycles, triples = _count(first, second, net, data.n_items)
        shares.append(cycles / max(triples, 1))
        counts.append(_count(first, second, _clear(net, size), data.n_items)[0])
    return np.array(shares), np.array(counts, dtype=np.float64)


def _vote_law(gap: Floats, vote: Floats, worker: Any, n_workers: int) -> Floats:
    """Return P(left) of every vote: a common slope, and a reliability per worker."""
    best: tuple[float, Floats] | None = None
    for slope in SLOPES:
        expected = 2 * sigmoid(slope * gap) - 1
        top = np.bincount(worker, vote * expected, n_workers)
        norm = np.bincount(worker, expected**2, n_workers)
        crowd = float(np.clip(top.sum() / max(norm.sum(), 1e-9), -1, 1))
        own = np.clip((top + 20 * crowd) / (norm + 20), -0.99, 0.99)
        p = 0.5 * (1 + own[worker] * expected)
        score = float(np.mean(np.log(np.where(vote > 0, p, 1 - p))))
        if best is None or score > best[0]:
            best = score, p
    return np.full(len(gap), 0.5) if best is None else best[1]


def _shrunk(view: PairView) -> Floats:
    """Return scores with the spread that is left after their own variance is taken out."""
    data = view.data
    p = sigmoid(view.scores[data.left] - view.scores[data.right])
    curve = data.weights * p * (1 - p)
    n = data.n_items
    information = np.bincount(data.left, curve, n) + np.bincount(data.right, curve, n)
    has = information > 0
    variance = float(np.var(view.scores[has])) if has.any() else 0.0
    noise = float(np.mean(1 / (information[has] + 0.25))) if has.any() else 0.0
    factor = np.sqrt(max(0.0, 1 - noise / variance)) if variance > 0 else 0.0
    return np.asarray(view.scores * factor)
