"""Kernels of pairs, compiled."""

from __future__ import annotations

import numpy as np

from wisecrowd.core.types import Floats
from wisecrowd.kernels.compiling import compiled, exp_below_zero, inlined
from wisecrowd.kinds.pairs import kernels
from wisecrowd.kinds.pairs.kernels import Comparisons, Wins, chances

__all__ = [
    "chances",
    "crowd_bt_sums",
    "crowd_pass",
    "elo_pass",
    "reliability_logs",
    "reliability_pulls",
    "weng_lin_pass",
]

# -------------------------------------------------------------------------------------- comparisons
# Loops over votes, with the results of :mod:`wisecrowd.kinds.pairs.kernels`.


MOST_FACTORS = 40  # factors above 1e-4 whose product does not underflow


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


def reliability_logs(wins: Wins, scores: Floats, eta: Floats, n_workers: int) -> Floats:
    """Return the log-likelihood of the wins of each worker at each reliability, (n_workers, G)."""
    found = np.zeros((n_workers, len(eta)))
    _reliability_logs(wins, scores, eta, found)
    return found


@compiled
def _reliability_logs(wins: Wins, scores: Floats, eta: Floats, found: Floats) -> None:
    rest, slope = 1 - eta, 2 * eta - 1
    product, count = np.ones(found.shape), np.zeros(len(found), dtype=np.int64)
    for e in range(len(wins.winner)):
        j, weight = wins.worker[e], wins.weight[e]
        p = _chance(scores[wins.winner[e]] - scores[wins.loser[e]])
        if weight == 1:
            for g in range(len(eta)):
                product[j, g] *= rest[g] + slope[g] * p
            count[j] += 1
            if count[j] == MOST_FACTORS:
                for g in range(len(eta)):
                    found[j, g] += np.log(product[j, g])
                    product[j, g] = 1.0
                count[j] = 0
        elif weight > 0:
            for g in range(len(eta)):
                found[j, g] += weight * np.log(rest[g] + slope[g] * p)
    found += np.log(product)


def reliability_pulls(wins: Wins, scores: Floats, eta: Floats, posterior: Floats) -> Floats:
    """Return the derivative of the log-likelihood in each gap, averaged over reliabilities."""
    found = np.empty(len(wins.winner))
    _reliability_pulls(wins, scores, eta, posterior, found)
    return found


@compiled
def _reliability_pulls(
    wins: Wins, scores: Floats, eta: Floats, posterior: Floats, found: Floats
) -> None:
    rest, slope = 1 - eta, 2 * eta - 1
    for e in range(len(found)):
        p = _chance(scores[wins.winner[e]] - scores[wins.loser[e]])
        own, total = posterior[wins.worker[e]], 0.0
        for g in range(len(eta)):
            total += own[g] * slope[g] / (rest[g] + slope[g] * p)
        found[e] = wins.weight[e] * total * p * (1 - p)


@inlined
def _chance(gap: float) -> float:
    small = exp_below_zero(-abs(gap))
    high = 1 / (1 + small)
    return high if gap >= 0 else small * high


# ----------------------------------------------------------------------------------- online ratings
# Those of :mod:`wisecrowd.kinds.pairs.kernels`, compiled as they are.

elo_pass = compiled(kernels.elo_pass)
weng_lin_pass = compiled(kernels.weng_lin_pass)
crowd_pass = compiled(kernels.crowd_pass)
