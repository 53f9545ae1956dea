"""A small crowd for the common checks, and the symmetries that they verify."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from wisecrowd.core.kinds import Symmetry
from wisecrowd.kinds.pairs.container import CrowdPairs
from wisecrowd.testing.foundation import Make, text_ids


def example(make: Make, seed: int = 0) -> CrowdPairs:
    """Return 240 votes with ties on 9 items by 7 workers, with text ids."""
    rng = np.random.default_rng(seed)
    score = rng.normal(0, 1, 9)
    left = rng.integers(0, 9, 240)
    right = (left + rng.integers(1, 9, 240)) % 9
    worker = rng.integers(0, 7, 240)
    gap = score[left] - score[right] + rng.logistic(size=240)
    gap = np.where(worker == 6, rng.logistic(size=240), gap)
    outcome = np.where(np.abs(gap) < 0.3, 2, np.where(gap > 0, 0, 1))
    items = np.array([f"item-{a:03d}" for a in range(9)], dtype=object)
    task, workers = text_ids(np.arange(240) % 60, worker)
    timed = getattr(make(), "needs_timestamps", False)
    options = {"timestamp": rng.permutation(240).astype(np.float64)} if timed else {}
    return CrowdPairs.from_arrays(task, workers, items[left], items[right], outcome, **options)


def _same_scores(learned: Mapping[str, Any]) -> dict[str, Any]:
    kept = ("scores_", "low_", "high_", "rank_", "component_", "worker_accuracy_")
    return {name: learned[name] for name in kept if name in learned}


def reverse_items(data: CrowdPairs) -> CrowdPairs:
    """Return the votes with the items in reverse order."""
    last = np.int32(data.n_items - 1)
    return replace(data, left=last - data.left, right=last - data.right)


def items_reversed(learned: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is expected then."""
    names = ("scores_", "low_", "high_", "rank_low_", "rank_high_", "p_best_")
    found = {name: learned[name][::-1] for name in names}
    kept = ("worker_accuracy_", "discrimination_")
    return found | {name: learned[name] for name in kept if name in learned}


SYMMETRIES = (
    Symmetry(name="swapping sides", change=CrowdPairs.mirrored, expected=_same_scores),
    Symmetry(name="reversing the items", change=reverse_items, expected=items_reversed),
)
