"""Cycles: triples of items of which each beats the next."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.audit.pair_view import PairView, pair_view
from wisecrowd.audit.part import NotApplicable, Part
from wisecrowd.core.findings import Finding
from wisecrowd.core.pairs import CrowdPairs
from wisecrowd.core.parameter_checks import as_generator, check_integer
from wisecrowd.families.comparisons import pair_votes
from wisecrowd.families.logistic import sigmoid

Floats = NDArray[np.float64]

MOST_WORK = 200_000_000  # steps of the count of triangles
FEWEST = 10  # triples with three decided comparisons
FAR = 4.0  # standard deviations of the simulated crowds
EXCESS = 0.05  # share of triples beyond the expected one
CLEAR = 2.0  # standard deviations of a coin, from which a majority is clear
SLOPES = tuple(2.0 ** (power / 2) for power in range(-2, 5))


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
        if self.n_triples < FEWEST or not (self._many or self._many_clear):
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
        least = max(FEWEST / 2, EXCESS * self.n_clear_triples)
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
