"""Checks of any method that kinds list beside their own."""

from __future__ import annotations

from typing import Any

import numpy as np

from wisecrowd.testing.crowds import example
from wisecrowd.testing.foundation import Make, check, fit_or_refusal, require


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
