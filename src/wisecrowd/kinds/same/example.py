"""A small crowd for the common checks, and the symmetries that they verify."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from wisecrowd.core.kinds import Symmetry
from wisecrowd.kinds.pairs.example import reverse_items
from wisecrowd.kinds.same.container import CrowdSame
from wisecrowd.testing.foundation import Make, text_ids


def example(make: Make, seed: int = 0) -> CrowdSame:
    """Return 150 votes on the sameness of 11 items in 3 clusters by 7 workers, with text ids."""
    rng = np.random.default_rng(seed)
    cluster = np.repeat([0, 1, 2], [5, 4, 2])
    left = rng.integers(0, 11, 150)
    right = (left + rng.integers(1, 11, 150)) % 11
    worker = rng.integers(0, 7, 150)
    right_answer = rng.random(150) < np.linspace(0.75, 0.97, 7)[worker]
    same = (cluster[left] == cluster[right]) == right_answer
    items = np.array([f"item-{a:03d}" for a in range(11)], dtype=object)
    answers = np.array(["different", "same"], dtype=object)
    task, workers = text_ids(np.arange(150) % 60, worker)
    return CrowdSame.from_arrays(
        task, workers, items[left], items[right], answers[same.astype(np.int64)]
    )


def _same_clusters(learned: Mapping[str, Any]) -> dict[str, Any]:
    kept = ("item_probas_", "same_rate_", "different_rate_", "p_same_", "worker_accuracy_")
    return {name: learned[name] for name in kept}


def _clusters_reversed(learned: Mapping[str, Any]) -> dict[str, Any]:
    kept = ("same_rate_", "different_rate_", "p_same_", "worker_accuracy_")
    found = {name: learned[name] for name in kept}
    return found | {"item_probas_": learned["item_probas_"][::-1]}


SYMMETRIES = (
    Symmetry(name="swapping sides", change=CrowdSame.mirrored, expected=_same_clusters),
    Symmetry(name="reversing the items", change=reverse_items, expected=_clusters_reversed),
)
