r"""Simulated votes on pairs of items, with adversaries, ties, sides and tastes.

A vote of worker j on items l and r has the log-odds

.. math:: x = \pm \gamma_j (s_l + t_{jl} - s_r - t_{jr}) + h_j,

where adversaries have the minus sign, :math:`t_j` is the worker's own taste and :math:`h_j` a
preference for the left side. Ties follow Davidson's model.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.exceptions import ParameterError
from wisecrowd.core.parameter_checks import as_generator, check_integer, check_number
from wisecrowd.core.types import Floats
from wisecrowd.kinds.pairs.container import CrowdPairs


@dataclass(frozen=True, kw_only=True)
class VoteWorkers:
    """A population of workers who compare items.

    Attributes
    ----------
    adversaries : float
        Share of workers who vote against their own opinion.
    flips : float
        Probability that a vote of an honest worker is turned around, as in CrowdBT.
    discrimination_spread : float
        Standard deviation of the logarithm of the discrimination between workers.
    side, side_spread : float
        Mean and standard deviation of the log-odds of the left side between workers.
    tie_level : float, optional
        Level of ties in Davidson's model; None means that nobody votes for a tie.
    tie_spread : float
        Its standard deviation between workers.
    taste : float
        Standard deviation of a worker's own opinion of an item.
    groups : int
        Populations of workers, each with scores of its own; the first one's are the truth.
    """

    adversaries: float = 0.0
    flips: float = 0.0
    discrimination_spread: float = 0.0
    side: float = 0.0
    side_spread: float = 0.0
    tie_level: float | None = None
    tie_spread: float = 0.0
    taste: float = 0.0
    groups: int = 1

    def __post_init__(self) -> None:
        check_number("adversaries", self.adversaries, 0.0, 1.0)
        check_number("flips", self.flips, 0.0, 1.0)
        for name in ("discrimination_spread", "side_spread", "tie_spread", "taste"):
            check_number(name, getattr(self, name), 0.0, 100.0)
        check_number("side", self.side, -100.0, 100.0)
        if self.tie_level is not None:
            check_number("tie_level", self.tie_level, -100.0, 100.0)
        check_integer("groups", self.groups, 1, 1000)


@dataclass(frozen=True, eq=False, repr=False)
class SimulatedVotes:
    """Votes and what they were drawn from.

    Attributes
    ----------
    pairs : CrowdPairs
    scores : (n_items,)
        True scores, mean 0.
    is_adversary : (n_workers,) bool
    group : (n_workers,) int
    discrimination, side, tie_threshold : (n_workers,)
    """

    pairs: CrowdPairs
    scores: Floats
    is_adversary: NDArray[np.bool_]
    group: NDArray[np.int64]
    discrimination: Floats
    side: Floats
    tie_threshold: Floats

    def __repr__(self) -> str:
        return f"SimulatedVotes({self.pairs!r})"

    @property
    def truth(self) -> dict[Any, float]:
        """True scores by item, as ``score`` takes them."""
        return dict(zip(self.pairs.items.tolist(), self.scores.tolist(), strict=True))


def votes(
    n_items: int,
    n_workers: int,
    n_votes: int,
    workers: VoteWorkers | None = None,
    *,
    scores: Any = None,
    spread: float = 1.0,
    random_state: Any = None,
) -> SimulatedVotes:
    """Simulate votes on random pairs of items by random workers.

    Parameters
    ----------
    n_items, n_workers, n_votes : int
    workers : VoteWorkers, optional
        The population; by default honest Bradley-Terry workers.
    scores : (n_items,), optional
        True scores, centred here; by default normal.
    spread : float
        Standard deviation of the drawn scores.
    random_state : int, Generator or None

    Examples
    --------
    >>> made = votes(5, 10, 200, VoteWorkers(adversaries=0.2), random_state=0)
    >>> made
    SimulatedVotes(CrowdPairs(10 tasks, 10 workers, 5 items, 200 annotations))
    >>> int(made.is_adversary.sum())
    2
    """
    check_integer("n_items", n_items, 2)
    check_integer("n_workers", n_workers, 1)
    check_integer("n_votes", n_votes, 1)
    check_number("spread", spread, 0.0, 100.0)
    people, rng = workers or VoteWorkers(), as_generator(random_state)
    worth = rng.normal(0, spread, (people.groups, n_items))
    if scores is not None:
        given = np.asarray(scores, dtype=np.float64)
        if given.shape != (n_items,):
            raise ParameterError(f"scores has shape {given.shape}; give one per item ({n_items}).")
        worth[0] = given
    worth -= worth.mean(axis=1, keepdims=True)
    left = rng.integers(0, n_items, n_votes)
    right = (left + rng.integers(1, n_items, n_votes)) % n_items
    worker = rng.integers(0, n_workers, n_votes)
    group = rng.integers(0, people.groups, n_workers)
    adversary = np.zeros(n_workers, dtype=bool)
    adversary[rng.permutation(n_workers)[: round(people.adversaries * n_workers)]] = True
    sharp = np.exp(people.discrimination_spread * rng.normal(size=n_workers))
    side = people.side + people.side_spread * rng.normal(size=n_workers)
    level = -np.inf if people.tie_level is None else people.tie_level
    threshold = level + people.tie_spread * rng.normal(size=n_workers)
    gap = worth[group[worker], left] - worth[group[worker], right]
    if people.taste > 0:
        taste = people.taste * rng.normal(size=(n_workers, n_items))
        gap += taste[worker, left] - taste[worker, right]
    turned = adversary[worker] ^ (rng.random(n_votes) < people.flips)
    x = sharp[worker] * np.where(turned, -gap, gap) + side[worker]
    # Davidson's model, with Gumbel noise on the log weights.
    logs = np.stack([x / 2, -x / 2, threshold[worker]], axis=1)
    outcome = np.argmax(logs + rng.gumbel(size=logs.shape), axis=1)
    pairs = CrowdPairs.from_arrays(
        None, worker, left, right, np.array(["left", "right", "tie"], dtype=object)[outcome],
        items=np.arange(n_items), workers=np.arange(n_workers),
    )  # fmt: skip
    return SimulatedVotes(pairs, worth[0], adversary, group, sharp, side, threshold)
