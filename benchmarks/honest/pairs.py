"""Pairs: the default on real votes and simulated voters, and the probability of being the best.

``python -m benchmarks.run honest_pairs`` takes about 6 CPU minutes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from benchmarks.accuracy.item_ranking import read_pairs
from benchmarks.rows import Row
from wisecrowd.kinds.pairs.answers import kendall_tau
from wisecrowd.kinds.pairs.methods.auto_pairs import AutoPairs
from wisecrowd.kinds.pairs.methods.bradley_terry import BradleyTerry
from wisecrowd.kinds.pairs.scorer import held_out_votes
from wisecrowd.simulate import SimulatedVotes, VoteWorkers, votes

BARS = {"llmfao": -0.92, "reading_difficulty": -0.509}
VOTERS = ("honest", "30% random", "15% adversaries")
SIZES = ((10, 20, 1000), (15, 30, 1500), (20, 40, 2400), (20, 60, 3000))  # items, workers, votes
CELLS = tuple(
    (n, per_item, spread)
    for n in (3, 5, 10, 15, 25)
    for per_item in (6, 24)
    for spread in (0.5, 1.5)
)


def held_out(names: Sequence[str] = tuple(BARS)) -> list[Row]:
    """Score the default, which chooses again in each fold, on real votes."""
    rows = []
    for name in names:
        found = held_out_votes(AutoPairs()._fit_without_checks, read_pairs(name))
        rows.append(Row(
            f"{name}: held-out log-probability of a vote, the default", f"≥ {BARS[name]:.3f}",
            f"{found.mean:.4f} ± {found.standard_error:.4f}", found.mean >= BARS[name],
        ))  # fmt: skip
    return rows


# ------------------------------------------------------------------------------------ simulations


class Fitness(NamedTuple):
    """Slope of the scores on the truth, coverage, Kendall's τ and mean width of intervals."""

    slope: float
    coverage: float
    tau: float
    width: float

    @classmethod
    def of(cls, fit, scores) -> Fitness:
        inside = (fit.low_ <= scores) & (scores <= fit.high_)
        return cls(
            float(fit.scores_ @ scores / (scores @ scores)), float(inside.mean()),
            kendall_tau(fit.scores_, scores), float((fit.high_ - fit.low_).mean()),
        )  # fmt: skip


def crowd(voters: str, size: tuple[int, int, int], seed: int) -> SimulatedVotes:
    """Return simulated votes; random voters toss a coin each time."""
    people = VoteWorkers(adversaries=0.15 if voters == "15% adversaries" else 0.0)
    made = votes(*size, people, random_state=seed)
    if voters != "30% random":
        return made
    rng, pairs = np.random.default_rng(seed), made.pairs
    idle = rng.permutation(pairs.n_workers) < 0.3 * pairs.n_workers
    coin = rng.integers(0, 2, pairs.n_annotations)
    outcome = np.where(idle[pairs.worker], coin, pairs.outcome).astype(np.int8)
    return replace(made, pairs=replace(pairs, outcome=outcome))


def simulated(sizes: Sequence[tuple[int, int, int]] = SIZES, n_crowds: int = 3) -> list[Row]:
    """Measure scale, coverage and the price of the choice on voters of three sorts."""
    rows = []
    for voters in VOTERS:
        found = []
        for size in sizes:
            for seed in range(n_crowds):
                made = crowd(voters, size, seed)
                found.append([Fitness.of(method().fit(made.pairs), made.scores)
                              for method in (AutoPairs, BradleyTerry)])  # fmt: skip
        own, plain = (Fitness(*np.mean(part, axis=0)) for part in zip(*found, strict=True))
        rows += [
            Row(f"{voters}: slope of the scores on the truth (bradley-terry)", ".9 to 1.3",
                f"{own.slope:.2f} ({plain.slope:.2f})", 0.9 <= own.slope <= 1.3),
            Row(f"{voters}: coverage of 95% intervals (bradley-terry)", "≥ .90",
                f"{own.coverage:.3f} ({plain.coverage:.3f})", own.coverage >= 0.9),
            Row(f"{voters}: Kendall's tau and width of intervals (bradley-terry)", "–",
                f"{own.tau:.3f}, {own.width:.2f} ({plain.tau:.3f}, {plain.width:.2f})"),
        ]  # fmt: skip
    return rows


def claims(cell: tuple[int, int, float], n_crowds: int) -> Iterator[tuple[float, bool]]:
    """Yield the P(best) of the leader and whether it is the best item, crowd by crowd."""
    n, per_item, spread = cell
    for seed in range(n_crowds):
        made = votes(n, 10, n * per_item // 2, spread=spread, random_state=seed)
        fit = BradleyTerry(cluster="votes").fit(made.pairs)
        leader = int(np.argmax(fit.p_best_))
        yield float(fit.p_best_[leader]), leader == int(np.argmax(made.scores))


def best_items(cells: Sequence[tuple[int, int, float]] = CELLS, n_crowds: int = 150) -> list[Row]:
    """Compare the claimed P(best) of the leader with how often it is the best."""
    pairs = np.array([np.mean(list(claims(cell, n_crowds)), axis=0) for cell in cells])
    claim, right = pairs.mean(axis=0)
    gap = float(np.abs(pairs[:, 0] - pairs[:, 1]).mean())
    return [
        Row(f"P(best): mean |claim - right| over {len(cells)} cells of {n_crowds} crowds", "≤ .05",
            f"{gap:.3f} (claim {claim:.3f}, right {right:.3f})", gap <= 0.05),
    ]  # fmt: skip


def run() -> list[Row]:
    return [*held_out(), *simulated(), *best_items()]


if __name__ == "__main__":
    print("\n".join(row.line() for row in run()))
