r"""Bradley-Terry scores by Newton's method: a method of its own, and the start of others.

The penalised log-likelihood :math:`\sum w \log \sigma(\pm d) + \log p(s)` is strictly concave. Its
negative Hessian is the Laplacian of the comparisons, weighted by :math:`w p (1 - p)`, plus the
curvature of the prior.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.exceptions import DataError
from wisecrowd.core.messages.option_spelling import parameter
from wisecrowd.core.pairs import CrowdPairs
from wisecrowd.families.comparisons import Votes, is_strongly_connected, pair_votes, virtual_item
from wisecrowd.families.item_intervals import laplacian, sparse_laplacian
from wisecrowd.families.large_covariance import conjugate_gradients
from wisecrowd.families.vote_laws import Solution

Floats = NDArray[np.float64]

DENSE_STEP = 1500  # items up to which a Newton step factorises the dense Hessian
HALVINGS = 30
SLOW = 0.1  # ratio of the lengths of two steps above which the Hessian is factorised again


def start_scores(data: CrowdPairs, prior: float) -> Floats:
    """Return Bradley-Terry scores (n_items,) to start other models from; ties are half wins."""
    return newton(pair_votes(data), max(prior, 0.01), 50, 1e-6).scores


def require_votes(votes: Votes, prior: float, name: str = "prior") -> None:
    """Refuse votes without weight, and no prior where the maximum likelihood does not exist."""
    if not votes.compared.any():
        raise DataError("No vote has a weight above zero; give at least one.")
    if prior == 0 and not is_strongly_connected(votes):
        raise DataError(
            f"Without a {name}, some items have infinite scores: they only win, only lose, or are "
            f"not compared with the others; give {parameter(name, 0.5)}."
        )


class _Point(NamedTuple):
    """Scores, objective, win probabilities of left (n_rows,), gradient and prior curvature."""

    scores: Floats
    value: float
    p: Floats
    gradient: Floats
    curve: Floats


def newton(votes: Votes, prior: float, max_iter: int, tol: float) -> Solution:
    """Return the maximum by Newton's method with step halving; the objective never decreases.

    The Hessian is factorised again only while steps shrink slowly, which is enough near the
    maximum. ``tol`` bounds the error of a score.
    """
    wins = votes.halved
    left, total = wins[:, 0], wins.sum(axis=1)

    def at(scores: Floats) -> _Point:
        gap = votes.gap(scores)
        small = np.exp(-np.abs(gap))
        high = 1 / (1 + small)
        p = np.where(gap >= 0, high, small * high)
        prior_value, slope, curve = virtual_item(scores, prior)
        # log σ(-d) = -max(d, 0) - log(1 + exp(-|d|))
        value = float(left @ gap - total @ (np.maximum(gap, 0) + np.log1p(small)))
        gradient = votes.item_sums(left - total * p) + slope
        return _Point(scores, value + prior_value, p, gradient, np.maximum(curve, 1e-9))

    zero, guess = at(np.zeros(votes.n_items)), at(_first_guess(votes, prior))
    point = guess if guess.value > zero.value else zero
    history: list[float] = []
    solve, before, converged = None, 0.0, False
    for _ in range(max_iter):
        if solve is None:
            solve = _solver(votes, total * point.p * (1 - point.p), point.curve)
        step = solve(point.gradient)
        size = float(np.abs(step).max())
        for _ in range(HALVINGS):
            new = at(point.scores + step)
            if new.value >= point.value - 1e-12 * abs(point.value):
                break
            step, solve = step / 2, None
        point = new._replace(value=max(new.value, point.value))
        history.append(point.value)
        rate = size / before if before else 0.0
        if size * (min(1.0, rate) if before else 1.0) <= tol:
            converged = True
            break
        if rate > SLOW:
            solve = None
        before = size
    own = np.zeros((votes.n_workers, 0))
    return Solution(point.scores, np.zeros(0), own, tuple(history), len(history), converged)


def _first_guess(votes: Votes, prior: float) -> Floats:
    """Return the log-odds of the share of wins of each item, stretched.

    Against random opponents with variance v, the log-odds shrink by about 1 / √(1 + π v / 8).
    """
    n, wins = votes.n_items, votes.halved
    won = np.bincount(votes.left, wins[:, 0], n) + np.bincount(votes.right, wins[:, 1], n)
    lost = np.bincount(votes.left, wins[:, 1], n) + np.bincount(votes.right, wins[:, 0], n)
    guess = np.log((won + prior + 0.1) / (lost + prior + 0.1))
    return np.asarray(guess / np.sqrt(max(0.25, 1 - np.pi / 8 * float(guess.var()))))


def _solver(votes: Votes, weight: Floats, curve: Floats) -> Callable[[Floats], Floats]:
    """Return a function that solves with the Hessian: factorised, or by conjugate gradients."""
    from scipy import sparse
    from scipy.linalg import cho_factor, cho_solve

    n = votes.n_items
    if n <= DENSE_STEP:
        hessian = laplacian(votes, weight)
        hessian[np.diag_indices(n)] += curve
        factor = cho_factor(hessian.T, lower=True, overwrite_a=True, check_finite=False)
        return lambda side: np.asarray(cho_solve(factor, side, check_finite=False))
    full = (sparse_laplacian(votes, weight) + sparse.diags(curve)).tocsr()
    return lambda side: conjugate_gradients(full, side[:, None])[:, 0]
