"""A small crowd for the common checks, and the symmetries that they verify."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from wisecrowd.core.kinds import Symmetry
from wisecrowd.kinds.numbers.container import CrowdNumbers
from wisecrowd.testing.foundation import Make, text_ids, who_labels_what


def example(make: Make, seed: int = 0) -> CrowdNumbers:
    """Return 40 tasks with numbers by 4 of 7 workers each, with text ids."""
    rng = np.random.default_rng(seed)
    task, worker = who_labels_what(rng)
    noise, bias = rng.uniform(0.2, 1.5, 7), rng.normal(0, 0.5, 7)
    value = rng.normal(10, 2, 40)[task] + bias[worker] + noise[worker] * rng.normal(size=len(task))
    return CrowdNumbers.from_arrays(*text_ids(task, worker), value)


def _scaled(data: CrowdNumbers) -> CrowdNumbers:
    return replace(data, value=3.0 + 2.0 * data.value)


def _scaled_results(learned: Mapping[str, Any]) -> dict[str, Any]:
    places, amounts = ("values_", "low_", "high_"), ("noise_", "bias_")
    found = {name: 3.0 + 2.0 * learned[name] for name in places}
    found |= {name: 2.0 * learned[name] for name in amounts if name in learned}
    return found | {"variance_": 4.0 * learned["variance_"]}


def _negated(data: CrowdNumbers) -> CrowdNumbers:
    return replace(data, value=-data.value)


def _negated_results(learned: Mapping[str, Any]) -> dict[str, Any]:
    found = {"values_": -learned["values_"], "low_": -learned["high_"], "high_": -learned["low_"]}
    return found | {"variance_": learned["variance_"]}


SYMMETRIES = (
    Symmetry(name="shift and scale", change=_scaled, expected=_scaled_results),
    Symmetry(name="turning the sign", change=_negated, expected=_negated_results),
)
