"""The kernels of :mod:`wisecrowd.kernels.comparisons.reference`, compiled."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from wisecrowd.kernels.comparisons.reference import Comparisons, chances
from wisecrowd.kernels.compiling import compiled, exp_below_zero

__all__ = ["chances", "crowd_bt_sums"]

Floats = NDArray[np.float64]


def crowd_bt_sums(
    votes: Comparisons, scores: Floats, logit: Floats
) -> tuple[float, Floats, Floats]:
    """Return the log-likelihood of CrowdBT and its gradients in scores and logits of η."""
    to_items, to_own = np.zeros(len(scores)), np.zeros(len(logit))
    value = _crowd_bt(votes, scores, chances(logit), to_items, to_own)
    return value, to_items, to_own


@compiled
def _crowd_bt(
    votes: Comparisons, scores: Floats, sure: Floats, to_items: Floats, to_own: Floats
) -> float:
    value, product = 0.0, 1.0
    for e in range(len(votes.left)):
        left, right, j = votes.left[e], votes.right[e], votes.worker[e]
        gap = scores[left] - scores[right]
        small = exp_below_zero(-abs(gap))
        high = 1 / (1 + small)
        low = small * high
        p, q = (high, low) if gap >= 0 else (low, high)
        eta = sure[j]
        rest = 1 - eta
        first, second = eta * p + rest * q, eta * q + rest * p
        a, b = votes.left_wins[e], votes.right_wins[e]
        if a == 1 and b == 0:
            product *= first
            pull = 1 / first
        elif b == 1 and a == 0:
            product *= second
            pull = -1 / second
        else:
            value += (a * np.log(first) if a > 0 else 0.0) + (b * np.log(second) if b > 0 else 0.0)
            pull = (a / first if a > 0 else 0.0) - (b / second if b > 0 else 0.0)
        if product < 1e-200:  # a factor is above 1e-100: one logarithm for many votes
            value += np.log(product)
            product = 1.0
        to_gap = pull * (eta - rest) * p * q
        to_items[left] += to_gap
        to_items[right] -= to_gap
        to_own[j] += pull * (p - q) * eta * rest
    total: float = value + np.log(product)
    return total
