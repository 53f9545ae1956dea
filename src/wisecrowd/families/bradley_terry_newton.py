r"""Bradley-Terry scores by Newton's method: a method of its own, and the start of others.

The penalised log-likelihood :math:`\sum w \log \sigma(\pm d) + \log p(s)` is strictly concave. Its
negative Hessian is the Laplacian of the comparisons, weighted by :math:`w p (1 - p)`, plus the
curvature of the prior.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.exceptions import DataError
from wisecrowd.core.messages.option_spelling import option
from wisecrowd.core.pairs import CrowdPairs
from wisecrowd.families.comparisons import Votes, is_strongly_connected, pair_votes, virtual_item
from wisecrowd.families.item_intervals import laplacian, sparse_laplacian
from wisecrowd.families.large_covariance import conjugate_gradients
from wisecrowd.families.logistic import log_sigmoid, sigmoid
from wisecrowd.families.vote_laws import Solution

Floats = NDArray[np.float64]

DENSE_STEP = 1500  # items up to which a Newton step factorises the dense Hessian
HALVINGS = 30


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
            f"not compared with the others; give {option(name, '0.5')}."
        )


def newton(votes: Votes, prior: float, max_iter: int, tol: float) -> Solution:
    """Return the maximum by Newton's method with step halving; the objective never decreases."""
    from scipy import sparse
    from scipy.linalg import cho_factor, cho_solve

    wins = votes.halved
    total = wins.sum(axis=1)
    scores, n = np.zeros(votes.n_items), votes.n_items
    dense = n <= DENSE_STEP

    def value_of(scores: Floats, gap: Floats) -> float:
        value = float(wins[:, 0] @ gap + total @ log_sigmoid(-gap))
        return value + virtual_item(scores, prior)[0]

    value, history, converged = value_of(scores, votes.gap(scores)), [], False
    for _ in range(max_iter):
        p = sigmoid(votes.gap(scores))
        _, slope, curve = virtual_item(scores, prior)
        gradient = votes.item_sums(wins[:, 0] - total * p) + slope
        weight = total * p * (1 - p)
        curve = np.maximum(curve, 1e-9)
        if dense:
            hessian = laplacian(votes, weight)
            hessian[np.diag_indices(n)] += curve
            step = cho_solve(cho_factor(hessian, lower=True, overwrite_a=True), gradient)
        else:
            full = (sparse_laplacian(votes, weight) + sparse.diags(curve)).tocsr()
            step = conjugate_gradients(full, gradient[:, None])[:, 0]
        for _ in range(HALVINGS):
            new = scores + step
            moved = value_of(new, votes.gap(new))
            if moved >= value - 1e-12 * abs(value):
                break
            step = step / 2
        scores, value = new, max(value, moved)
        history.append(value)
        if np.abs(step).max() <= tol:
            converged = True
            break
    none = np.zeros(0)
    own = np.zeros((votes.n_workers, 0))
    return Solution(scores, none, own, tuple(history), len(history), converged)
