"""A small crowd for the common checks, and the symmetries that they verify."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from wisecrowd.core.kinds import Symmetry
from wisecrowd.kinds.classes.container import CrowdLabels
from wisecrowd.kinds.classes.example import reverse_classes
from wisecrowd.testing.foundation import Make, text_ids, who_labels_what


def example(make: Make, seed: int = 0) -> CrowdLabels:
    """Return 40 tasks with ordered labels by 4 of 7 workers each, with text ids."""
    rng = np.random.default_rng(seed)
    task, worker = who_labels_what(rng)
    level = rng.normal(0, 1, 40)
    seen = level[task] + 0.3 * rng.normal(size=7)[worker] + 0.5 * rng.normal(size=len(task))
    label = np.searchsorted([-0.6, 0.2, 1.1], seen)
    names = np.array(["1", "2", "3", "4"], dtype=object)
    return CrowdLabels.from_arrays(
        *text_ids(task, worker), names[label], classes=names.tolist(), ordered=True
    )


def _reversed_grades(learned: Mapping[str, Any]) -> dict[str, Any]:
    last = len(learned["classes_"]) - 1
    return {"probas_": learned["probas_"][:, ::-1], "grade_": last - learned["grade_"]}


SYMMETRIES = (
    Symmetry(name="reversing the order", change=reverse_classes, expected=_reversed_grades),
)
