"""Gradients of laws of votes against finite differences, in every block of parameters."""

from __future__ import annotations

import numpy as np

from wisecrowd.kinds.pairs.methods.comparisons import Votes
from wisecrowd.kinds.pairs.methods.vote_laws import objective


def random_votes(n_items=5, n_workers=4, n_rows=60, seed=0):
    rng = np.random.default_rng(seed)
    left = rng.integers(0, n_items, n_rows)
    right = (left + rng.integers(1, n_items, n_rows)) % n_items
    counts = rng.uniform(0, 2, (n_rows, 3))
    return Votes(left, right, rng.integers(0, n_workers, n_rows), counts, n_items, n_workers)


def assert_gradient(law, votes, g, k, seed=1, spread=0.7):
    """Require that all derivatives of the objective agree with central differences."""
    rng = np.random.default_rng(seed)
    parts = [
        spread * rng.normal(size=votes.n_items), spread * rng.normal(size=g),
        spread * rng.normal(size=(votes.n_workers, k)),
    ]  # fmt: skip
    _, *slopes = objective(law, votes, *parts)
    step = 1e-6
    for which, part in enumerate(parts):
        for at in np.ndindex(part.shape):
            ends = []
            for sign in (1, -1):
                moved = [p.copy() for p in parts]
                moved[which][at] += sign * step
                ends.append(objective(law, votes, *moved)[0])
            numeric = (ends[0] - ends[1]) / (2 * step)
            assert abs(numeric - slopes[which][at]) < 1e-5 * max(1, abs(numeric)), (which, at)
