"""A small crowd for the common checks, and the symmetries that they verify."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from wisecrowd.core.kinds import Symmetry
from wisecrowd.kinds.sets.container import CrowdSets
from wisecrowd.testing.foundation import Make, class_names, text_ids, who_labels_what


def example(make: Make, seed: int = 0) -> CrowdSets:
    """Return 40 tasks with sets of four classes by 4 of 7 workers each, with text ids."""
    rng = np.random.default_rng(seed)
    task, worker = who_labels_what(rng)
    prototypes = np.array([[0.9, 0.8, 0.1, 0.05], [0.1, 0.2, 0.7, 0.3]])
    truth = rng.random((40, 4)) < prototypes[(rng.random(40) < 0.4).astype(int)]
    rates = np.stack([rng.uniform(0.0, 0.3, (7, 4)), rng.uniform(0.6, 0.95, (7, 4))])
    chance = np.where(truth[task], rates[1][worker], rates[0][worker])
    names = np.array(class_names(4), dtype=object)
    texts = ["|".join(names[own]) for own in rng.random((160, 4)) < chance]
    return CrowdSets.from_arrays(
        *text_ids(task, worker), np.array(texts, dtype=object), classes=names.tolist()
    )


def _reverse_members(data: CrowdSets) -> CrowdSets:
    """Return the sets with the classes in reverse order; members stay ascending."""
    last = np.int32(data.n_classes - 1)
    place = (data.pointer[:-1] + data.pointer[1:] - 1)[data.annotation]
    return replace(data, members=last - data.members[place - np.arange(len(data.members))])


def _members_reversed(learned: Mapping[str, Any]) -> dict[str, Any]:
    rates = ("probas_", "sensitivity_", "false_alarm_")
    found = {name: learned[name][:, ::-1] for name in rates if name in learned}
    kept = ("worker_accuracy_", "worker_sensitivity_", "worker_false_alarm_", "set_size_")
    return found | {name: learned[name] for name in kept}


SYMMETRIES = (
    Symmetry(name="reversing the classes", change=_reverse_members, expected=_members_reversed),
)
