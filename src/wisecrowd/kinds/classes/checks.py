"""A small crowd for the common checks, and the symmetries that they verify."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from wisecrowd.core.kinds import Symmetry
from wisecrowd.kinds.classes.container import CrowdLabels
from wisecrowd.testing.crowds import small_labels
from wisecrowd.testing.foundation import Make


def example(make: Make, seed: int = 0) -> CrowdLabels:
    """Return 40 tasks with labels by 4 of 7 workers each, with text ids."""
    return small_labels(make, seed)


def reverse_classes(data: CrowdLabels) -> CrowdLabels:
    """Return the labels with the classes in reverse order."""
    return replace(data, label=(data.n_classes - 1 - data.label).astype(np.int32))


def _reversed_results(learned: Mapping[str, Any]) -> dict[str, Any]:
    expected = {"probas_": learned["probas_"][:, ::-1]}
    if "confusion_" in learned:
        expected["confusion_"] = learned["confusion_"][:, ::-1, ::-1]
    return expected


SYMMETRIES = (
    Symmetry(name="reversing the classes", change=reverse_classes, expected=_reversed_results),
)
