"""Crowds on which no threshold was chosen: sizes, classes, skills and troubles drawn at random.

The conditions of :mod:`benchmarks.trust.conditions` are thirteen points, and checks were made with
them in sight. Here all that they fix varies. Seeds below ``FRESH`` were looked at while checks were
mended; no threshold was chosen by those from there on.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from wisecrowd import simulate
from wisecrowd.simulate import SimulatedCrowd

FRESH = 30_000
TROUBLES = (
    "none", "imbalance", "two labels per task", "sparse workers", "hard tasks", "spam",
    "adversaries", "colluders",
)  # fmt: skip


@dataclass(frozen=True)
class HeldOut:
    """A crowd, in words, and whether it is an honest one on which nothing should fire."""

    name: str
    made: SimulatedCrowd
    clean: bool


def _honest(n_classes: int, rng: np.random.Generator) -> simulate.Population:
    """Return workers who are better than chance on average, of a kind and skill at random."""
    kind = rng.integers(3)
    if kind == 0:
        return simulate.OneCoinWorkers(float(rng.uniform(4, 12)), float(rng.uniform(1, 2.5)))
    if kind == 1:
        return simulate.DirichletWorkers(float(rng.uniform(3, 8)) * np.sqrt(n_classes - 1), 1.0)
    return simulate.OneCoinWorkers(float(rng.uniform(20, 40)), float(rng.uniform(6, 12)))


def held_out(seed: int) -> HeldOut:
    """Return the crowd with this number."""
    rng = np.random.default_rng([31, seed])
    trouble = TROUBLES[seed % len(TROUBLES)]
    K = int(rng.choice([2, 3, 6]))
    n_tasks, n_workers = int(rng.integers(200, 2500)), int(rng.integers(12, 120))
    per_task = 2 if trouble == "two labels per task" else int(rng.integers(3, 10))
    if trouble == "sparse workers":  # two to eight labels each
        n_workers = max(n_workers, round(n_tasks * per_task / rng.uniform(2, 8)))
    share = float(rng.uniform(0.15, 0.45))
    honest = _honest(K, rng)
    n_bad = round(share * n_workers) if trouble in ("spam", "adversaries", "colluders") else 0
    workers = (n_workers - n_bad) * honest
    if trouble == "spam":
        workers = workers + n_bad * simulate.Spammers()
    elif trouble == "adversaries":
        workers = workers + n_bad * simulate.Adversaries(float(rng.uniform(0.1, 0.3)))
    elif trouble == "colluders":
        copies = simulate.Copiers(float(rng.uniform(0.85, 1)), sources=n_workers - n_bad)
        workers = workers + 1 * simulate.Spammers() + max(n_bad - 1, 1) * copies
    if trouble == "imbalance":
        prior = rng.dirichlet(np.full(K, 0.7)) * 0.9 + 0.1 / K
    else:
        prior = rng.dirichlet(np.full(K, 5.0))
    difficulty = simulate.BetaDifficulty(1, float(rng.uniform(2, 4)))
    made = simulate.crowd(
        n_tasks, workers, simulate.PerTask(per_task), n_classes=K, class_prior=prior,
        difficulty=difficulty if trouble == "hard tasks" else None, random_state=seed,
    )  # fmt: skip
    name = (
        f"{seed}: {trouble}{f' {share:.0%}' if n_bad else ''}, K = {K}, {n_tasks} tasks × "
        f"{per_task}, {n_workers} workers"
    )
    enough = made.labels.n_annotations / n_workers >= max(20, K * (K - 1) / 2)
    return HeldOut(name, made, enough and trouble in TROUBLES[:3])
