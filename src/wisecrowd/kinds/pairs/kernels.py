"""Kernels of pairs: sums over comparisons, and online ratings."""

from __future__ import annotations

from math import exp
from typing import NamedTuple

import numpy as np

from wisecrowd.core.types import Floats, Ints

# -------------------------------------------------------------------------------------- comparisons
# Sums over votes, in NumPy: the specification of the compiled kernels.


class Comparisons(NamedTuple):
    """Votes: codes of items and workers (n_rows,), and weights of the wins of left and right."""

    left: Ints
    right: Ints
    worker: Ints
    left_wins: Floats
    right_wins: Floats


def chances(logit: Floats) -> Floats:
    """Return the probabilities of logits, without overflow."""
    small = np.exp(-np.abs(logit))
    return np.asarray(np.where(logit >= 0, 1.0, small) / (1 + small))


def crowd_bt_sums(
    votes: Comparisons, scores: Floats, logit: Floats
) -> tuple[float, Floats, Floats]:
    """Return the log-likelihood of CrowdBT and its gradients in scores and logits of η.

    Parameters
    ----------
    votes : Comparisons
    scores : (n_items,)
    logit : (n_workers,) logit of the probability of a vote that follows the scores
    """
    gap = scores[votes.left] - scores[votes.right]
    small = np.exp(-np.abs(gap))
    high, low = 1 / (1 + small), small / (1 + small)
    p, q = np.where(gap >= 0, high, low), np.where(gap >= 0, low, high)
    sure = chances(logit)
    eta, rest = sure[votes.worker], 1 - sure[votes.worker]
    first, second = eta * p + rest * q, eta * q + rest * p
    value = float(votes.left_wins @ np.log(first) + votes.right_wins @ np.log(second))
    pull = votes.left_wins / first - votes.right_wins / second
    to_gap = pull * (eta - rest) * p * q
    to_logit = pull * (p - q) * eta * rest
    n = len(scores)
    to_items = np.bincount(votes.left, to_gap, n) - np.bincount(votes.right, to_gap, n)
    to_own = np.bincount(votes.worker, to_logit, len(logit))
    return value, to_items.astype(np.float64), to_own.astype(np.float64)


class Wins(NamedTuple):
    """Wins: codes of winner, loser and worker, and weights, (n_rows,) each."""

    winner: Ints
    loser: Ints
    worker: Ints
    weight: Floats


def reliability_logs(wins: Wins, scores: Floats, eta: Floats, n_workers: int) -> Floats:
    """Return the log-likelihood of the wins of each worker at each reliability, (n_workers, G).

    Parameters
    ----------
    wins : Wins
    scores : (n_items,)
    eta : (G,) probabilities of a vote that follows the scores
    n_workers : int
    """
    p = chances(scores[wins.winner] - scores[wins.loser])
    found = np.empty((n_workers, len(eta)))
    for g, sure in enumerate(eta.tolist()):
        logs = wins.weight * np.log((1 - sure) + (2 * sure - 1) * p)
        found[:, g] = np.bincount(wins.worker, logs, n_workers)
    return found


def reliability_pulls(wins: Wins, scores: Floats, eta: Floats, posterior: Floats) -> Floats:
    """Return the derivative of the log-likelihood in each gap, averaged over reliabilities.

    Parameters
    ----------
    wins : Wins
    scores : (n_items,)
    eta : (G,)
    posterior : (n_workers, G) weights of the reliabilities of each worker
    """
    p = chances(scores[wins.winner] - scores[wins.loser])
    total = np.zeros(len(p))
    for g, sure in enumerate(eta.tolist()):
        slope = 2 * sure - 1
        total += posterior[wins.worker, g] * slope / ((1 - sure) + slope * p)
    return np.asarray(wins.weight * total * p * (1 - p))


# ----------------------------------------------------------------------------------- online ratings
# Updates of ratings, one vote after the other, in Python: the specification.
#
# A vote depends on all before it, so there is nothing to do at once; large data run compiled.


class TimedVotes(NamedTuple):
    """Votes: codes (n,), the result of left (1, 0, or 1/2 for a tie) and the weight (n,)."""

    left: Ints
    right: Ints
    worker: Ints
    result: Floats
    weight: Floats


def elo_pass(votes: TimedVotes, order: Ints, step: float, scores: Floats) -> None:
    """Update scores (n_items,) in logits by the surprise of each vote times ``step``."""
    for e in order:
        left, right = votes.left[e], votes.right[e]
        p = 1 / (1 + exp(scores[right] - scores[left]))
        move = step * votes.weight[e] * (votes.result[e] - p)
        scores[left] += move
        scores[right] -= move


def weng_lin_pass(
    votes: TimedVotes, order: Ints, noise: float, least: float, mean: Floats, variance: Floats
) -> None:
    """Update means and variances (n_items,) of skills; ``noise`` is 2 β²."""
    for e in order:
        left, right, w = votes.left[e], votes.right[e], votes.weight[e]
        one, two = variance[left], variance[right]
        c2 = one + two + noise
        c = c2**0.5
        p = 1 / (1 + exp((mean[right] - mean[left]) / c))
        move = w * (votes.result[e] - p) / c
        mean[left] += one * move
        mean[right] -= two * move
        spread = w * p * (1 - p) / c2
        variance[left] = one * max(1 - (one**0.5 / c) * one * spread, least)
        variance[right] = two * max(1 - (two**0.5 / c) * two * spread, least)


def crowd_pass(
    votes: TimedVotes,
    order: Ints,
    least: float,
    mean: Floats,
    variance: Floats,
    alpha: Floats,
    beta: Floats,
) -> None:
    """Update means and variances (n_items,) of scores, and Beta parameters (n_workers,)."""
    for e in order:
        left, right, j, w = votes.left[e], votes.right[e], votes.worker[e], votes.weight[e]
        if w <= 0:
            continue
        one, two = variance[left], variance[right]
        gap = mean[left] - mean[right]
        a, b = alpha[j], beta[j]
        p = 1 / (1 + exp(-gap))
        won = a * p / (a * p + b * (1 - p))  # left won: probability that the worker was right
        lost = b * p / (b * p + a * (1 - p))
        result = votes.result[e]
        move = w * (result * (won - p) + (1 - result) * (lost - p))
        mean[left] += one * move
        mean[right] -= two * move
        if result == 0.5:
            continue  # a tie says nothing about the worker
        known = won if result == 1 else lost
        bend = w * (known * (1 - known) - p * (1 - p))
        variance[left] = one * max(1 + one * bend, least)
        variance[right] = two * max(1 + two * bend, least)
        right_one = p if result == 1 else 1 - p
        first = right_one + 0.5 * (one + two) * right_one * (1 - right_one) * (1 - 2 * right_one)
        first = min(max(first, 1e-6), 1 - 1e-6)
        second, n = 1 - first, a + b
        total = (first * a + second * b) / n
        eta = (first * (a + 1) * a + second * a * b) / (total * (n + 1) * n)
        square = first * (a + 2) * (a + 1) * a + second * (a + 1) * a * b
        square /= total * (n + 2) * (n + 1) * n
        scale = (eta - square) / max(square - eta * eta, 1e-12)
        alpha[j], beta[j] = max(eta * scale, 1e-3), max((1 - eta) * scale, 1e-3)
