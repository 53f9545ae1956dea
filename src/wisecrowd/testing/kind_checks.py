"""Checks that kinds list beside their own, and steps that their checks share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from wisecrowd.core.aggregator import Aggregator
from wisecrowd.core.annotations import Annotations
from wisecrowd.testing.crowds import example
from wisecrowd.testing.foundation import Make, check, fit_or_refusal, numbers_of, require


@check
def check_objective_monotone(make: Make) -> None:
    """Require that the objective never decreases, for methods that declare this."""
    if not make().tags().monotone:
        return
    for seed in range(3):
        history = np.array(make().fit(example(make, seed)).history_)
        require(len(history) > 0 and np.isfinite(history).all(), "history_ is empty or not finite")
        fall = float(np.max(history[:-1] - history[1:], initial=0.0))
        require(fall <= 1e-9 * abs(history[-1]), f"the objective falls by {fall:.3g}")


@check
def check_no_prior(make: Make) -> None:
    """Require that gold, priors and starts are refused, for kinds without them."""
    data = example(make)
    given: tuple[dict[str, Any], ...] = (
        {"gold": {data.tasks[0]: []}}, {"task_prior": [1.0]}, {"init": [1.0]},
    )  # fmt: skip
    for options in given:
        require(fit_or_refusal(make(), data, **options) is None, f"{options} was accepted")


def assert_finite(fitted: Aggregator, when: str) -> None:
    """Require that all numbers of the answers are finite."""
    for name in numbers_of(fitted):
        require(np.isfinite(getattr(fitted, name)).all(), f"{name} is not finite {when}")


def assert_all_sound(
    make: Make,
    assert_sound: Callable[[Any, Any, str], None],
    odd: Mapping[str, Annotations],
) -> None:
    """Require sound fits of two small crowds of the kind, and of odd ones, each with its name."""
    for seed in range(2):
        data = example(make, seed)
        assert_sound(make().fit(data), data, "on a small crowd")
    for when, data in odd.items():
        assert_sound(make().fit(data), data, when)
