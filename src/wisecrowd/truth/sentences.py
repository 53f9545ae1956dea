"""Sentences on what checked tasks say, in whole per cent."""

from __future__ import annotations

import math
from collections.abc import Callable


def measured_sentence(
    accuracy: float, low: float, high: float, n_checked: int, n_errors: int, n_tasks: int
) -> str:
    """Return a measured share in whole per cent: its interval rounded outwards, never 100%.

    Examples
    --------
    >>> measured_sentence(0.843, 0.762, 0.898, 60, 9, 800)
    '84% of the labels are right (76 to 90%; 60 tasks checked).'
    >>> measured_sentence(1.0, 0.9398, 1.0, 60, 0, 800)
    'No error in 60 checked tasks: at least 93% of the labels are right.'
    >>> measured_sentence(0.843, 0.843, 0.843, 800, 126, 800)
    '84% of the labels are right (all 800 tasks checked).'
    """
    checked = f"{n_checked} task{'s' if n_checked != 1 else ''} checked"
    if n_checked >= n_tasks:
        shown = f"{_whole(accuracy)}%" if n_errors else "All"
        return f"{shown} of the labels are right (all {checked})."
    floor, ceiling = math.floor(100 * low + 1e-9), math.ceil(100 * high - 1e-9)
    if not n_errors:
        return (
            f"No error in {n_checked} checked task{'s' if n_checked != 1 else ''}: at least "
            f"{floor}% of the labels are right."
        )
    reach = f"at least {floor}%" if ceiling >= 100 else f"{floor} to {ceiling}%"
    reach = f"at most {ceiling}%" if floor <= 0 < ceiling < 100 else reach
    return f"{_whole(accuracy)}% of the labels are right ({reach}; {checked})."


def _whole(share: float) -> int:
    """Return a share in whole per cent; 100 only if all are right."""
    return 100 if share >= 1 else min(round(100 * share), 99)


def ratio_sentence(
    heading: str, value: float, low: float, high: float, n: int, n_tasks: int, *, is_share: bool
) -> str:
    """Return a measured score with its interval, rounded outwards.

    Examples
    --------
    >>> ratio_sentence("F1 of the spans", 0.776, 0.713, 0.839, 60, 2800, is_share=True)
    'The F1 of the spans is 78% (71 to 84%; 60 tasks checked).'
    >>> ratio_sentence("mean absolute error", 0.4312, 0.377, 0.4854, 60, 700, is_share=False)
    'The mean absolute error is 0.43 (0.37 to 0.49; 60 tasks checked).'
    """
    checked = f"{n} task{'s' if n != 1 else ''} checked"
    if math.isnan(value):
        return f"The {heading} is not defined: there is nothing to score ({checked})."
    scale, unit = (1.0, "%") if is_share else (_scale(high if high == high else value), "")

    def shown(number: float, rounding: Callable[[float], float]) -> str:
        if is_share:
            return f"{rounding(100 * number):.0f}"
        return f"{rounding(number / scale) * scale:.10g}"

    middle = shown(value, round)
    if n >= n_tasks:
        return f"The {heading} is {middle}{unit} (all {checked})."
    if math.isnan(high):
        return f"The {heading} is {middle}{unit}; without any error there is no interval."
    least = shown(low, lambda x: math.floor(x + 1e-9))
    most = shown(high, lambda x: math.ceil(x - 1e-9))
    return f"The {heading} is {middle}{unit} ({least} to {most}{unit}; {checked})."


def _scale(value: float) -> float:
    """Return the unit of the second significant digit of a number."""
    return 10.0 ** (math.floor(math.log10(value)) - 1) if value > 0 else 1.0


def extremes_sentence(n_missing: int, n_listed: int, least: float, most: float) -> str:
    """Return what missing answers could change.

    Examples
    --------
    >>> extremes_sentence(9, 60, 0.7214, 0.8709)
    '9 of 60 listed tasks have no answer; if all or none of them are errors, 72% to 88% are right.'
    """
    return (
        f"{n_missing} of {n_listed} listed tasks have no answer; if all or none of them are "
        f"errors, {math.floor(100 * least + 1e-9)}% to {math.ceil(100 * most - 1e-9)}% are right."
    )


def people_sentence(agreement: float, n: int) -> str:
    """Return what the agreement of two people says about their own errors.

    Two people who err independently in a share e of the tasks agree in 1 - 2 e (1 - e), if a wrong
    answer of both is the same.

    Examples
    --------
    >>> people_sentence(0.905, 42)
    'Two people agree in 90% of 42 tasks, so each errs in about 5%: the share right is within 5 \
points of that.'
    """
    said = f"Two people agree in {agreement:.0%} of {n} tasks"
    if agreement <= 0.5:
        return f"{said}: their answers do not tell which results are right."
    error = (1 - math.sqrt(2 * agreement - 1)) / 2
    return (
        f"{said}, so each errs in about {error:.0%}: the share right is within "
        f"{math.ceil(100 * error - 1e-9)} point{'s' if error > 0.01 else ''} of that."
    )
