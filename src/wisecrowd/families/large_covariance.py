"""Errors of the scores of very many items, drawn by conjugate gradients without a dense matrix.

An error is H⁻¹ u, where u is drawn with the covariance of the gradient: a standard normal number
times the summed score vector of each cluster, and one per item for the prior. Its covariance is the
sandwich of :mod:`wisecrowd.families.item_intervals`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.families.comparisons import Votes

Floats = NDArray[np.float64]
Ints = NDArray[np.integer[Any]]

TOLERANCE = 1e-6  # relative residual of the solver
MOST_STEPS = 2000
SMALLEST = 1e-9  # curvature of an item without prior and votes


def scores_errors(
    hessian: Any, prior: Floats, votes: Votes, pull: Floats, code: Ints | None, n_draws: int
) -> Floats:
    """Return draws (n_draws, n_items) of the errors of centred scores.

    Parameters
    ----------
    hessian : (n_items, n_items) sparse
        Negative Hessian of the log-likelihood, without the prior.
    prior : (n_items,)
        Curvature of the prior.
    votes : Votes
    pull : (n_rows,)
        Derivative of the log-likelihood of each row in the gap, weighted.
    code : (n_rows,) int, optional
        Cluster of each row; None if each is its own.
    n_draws : int
    """
    from scipy import sparse

    rng = np.random.default_rng(0)
    n, rows = votes.n_items, len(pull)
    cluster = np.arange(rows) if code is None else code
    place = sparse.csr_matrix(
        (np.concatenate([pull, -pull]),
         (np.concatenate([votes.left, votes.right]), np.concatenate([cluster, cluster]))),
        shape=(n, int(cluster.max()) + 1),
    )  # fmt: skip
    u = place @ rng.standard_normal((place.shape[1], n_draws))
    u += np.sqrt(prior)[:, None] * rng.standard_normal((n, n_draws))
    full = (hessian + sparse.diags(np.maximum(prior, SMALLEST))).tocsr()
    errors = conjugate_gradients(full, u)
    errors[votes.compared] -= errors[votes.compared].mean(axis=0)
    return errors.T


def conjugate_gradients(matrix: Any, sides: Floats) -> Floats:
    """Solve for many right-hand sides at once, (n, m), preconditioned by the diagonal.

    Examples
    --------
    >>> from scipy import sparse
    >>> conjugate_gradients(sparse.diags([2.0, 4.0]).tocsr(), np.array([[2.0], [2.0]])).tolist()
    [[1.0], [0.5]]
    """
    scale = 1 / matrix.diagonal()[:, None]
    x, r = np.zeros_like(sides), sides.copy()
    z = scale * r
    p, rz = z.copy(), (r * z).sum(axis=0)
    goal = TOLERANCE**2 * np.maximum(rz, 1e-300)
    for _ in range(MOST_STEPS):
        if (rz <= goal).all():
            break
        image = matrix @ p
        step = rz / np.maximum((p * image).sum(axis=0), 1e-300)
        x += step * p
        r -= step * image
        z = scale * r
        new = (r * z).sum(axis=0)
        p = z + (new / np.maximum(rz, 1e-300)) * p
        rz = new
    return x
