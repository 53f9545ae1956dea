"""A small crowd for the common checks, and the symmetries that they verify."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from wisecrowd.core.kinds import Symmetry
from wisecrowd.kinds.pairs.checks import items_reversed
from wisecrowd.kinds.rankings.container import CrowdRankings
from wisecrowd.testing.foundation import Make, text_ids


def example(make: Make, seed: int = 0) -> CrowdRankings:
    """Return 120 rankings of two to five of 8 items by 7 workers, with text ids."""
    rng = np.random.default_rng(seed)
    score, texts = rng.normal(0, 1, 8), []
    for _ in range(120):
        chosen = rng.permutation(8)[: rng.integers(2, 6)]
        order = chosen[np.argsort(-(score[chosen] + rng.gumbel(size=len(chosen))))]
        texts.append(" > ".join(f"item-{a:03d}" for a in order.tolist()))
    task, workers = text_ids(np.arange(120) % 40, rng.integers(0, 7, 120))
    return CrowdRankings.from_arrays(task, workers, texts)


def _reverse_ranked(data: CrowdRankings) -> CrowdRankings:
    return replace(data, ranking=np.int32(data.n_items - 1) - data.ranking)


SYMMETRIES = (
    Symmetry(name="reversing the items", change=_reverse_ranked, expected=items_reversed),
)
