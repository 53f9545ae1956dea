"""Comparison of printed text: numbers as numbers, everything else as text."""

from __future__ import annotations

import doctest
import math
import re

# A number stands alone: the digits of `img12` and `v1.2.3` are part of a word.
NUMBER = re.compile(r"(?<![\w.])[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?(?![\w]|\.\d)")
TOLERANCE = 1e-6  # relative: what may differ between processors is far below, an error far above


def same_output(shown: str, printed: str, tolerance: float = TOLERANCE) -> bool:
    """Tell whether two texts agree: fractional numbers to a tolerance, all else exactly.

    Examples
    --------
    >>> same_output("accuracy 0.25 of 12", "accuracy 0.25000000001 of 12")
    True
    >>> same_output("accuracy 0.25 of 12", "accuracy 0.25 of 13")
    False
    """
    if NUMBER.sub("#", shown) != NUMBER.sub("#", printed):
        return False
    pairs = zip(NUMBER.findall(shown), NUMBER.findall(printed), strict=True)
    return all(_same_number(one, other, tolerance) for one, other in pairs)


def _same_number(one: str, other: str, tolerance: float) -> bool:
    if re.fullmatch(r"[+-]?\d+", one):
        return one == other
    return math.isclose(float(one), float(other), rel_tol=tolerance)


class NumberChecker(doctest.OutputChecker):
    """A doctest checker that compares the numbers of an output as numbers."""

    def check_output(self, want: str, got: str, optionflags: int) -> bool:
        """Tell whether an example printed what is shown."""
        if super().check_output(want, got, optionflags):
            return True
        if optionflags & doctest.NORMALIZE_WHITESPACE:
            want, got = (" ".join(text.split()) for text in (want, got))
        return same_output(want, got)
