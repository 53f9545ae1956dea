r"""The part of the workers' label covariance that the truth explains: low rank, off the diagonal.

.. math::
    C_{jj'} = \sum_l cov(1[y_j = l], 1[y_{j'} = l]) \approx v_j^\top v_{j'}, \qquad j \neq j'

Labels of different workers covary through the class alone, so that the row :math:`v_j` of a worker
whose labels have nothing to do with it is zero.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.families.moments import PairMoments

Floats = NDArray[np.float64]

RIDGES = np.geomspace(1e-3, 10.0, 9)  # where the ridge is looked for, widest last
N_FOLDS = 4
N_SWEEPS = 60
DENSE = 1000  # workers up to which all eigenvectors are computed


class RowFit:
    r"""Weighted least squares of :math:`C \approx V V^\top` off the diagonal, with a ridge.

    Parameters
    ----------
    pairs : PairMoments
    rank : int
        Columns of :math:`V`.

    Notes
    -----
    Each sweep solves for all rows at once, given the others of the sweep before, and goes half of
    the way: the full step of a symmetric factorisation would swing between two solutions.
    """

    def __init__(self, pairs: PairMoments, rank: int) -> None:
        self._pairs = pairs
        self._rank = max(1, min(rank, pairs.n_workers))
        self._weight = pairs.n_shared / max(pairs.n_shared.max(initial=0.0), 1.0)

    def rows(self, ridge: float) -> Floats:
        """Return the rows (n_workers, rank) under a ridge."""
        return self._fit(self._weight, ridge, self._start(self._weight))

    def choose_ridge(self, rng: np.random.Generator) -> tuple[float, Floats]:
        """Return the ridge that predicts left-out pairs best, and the error (n_ridges,) of each.

        Pairs are dealt into folds at random; the rows are fitted to all folds but one, and the
        weighted squared error is that on the fold left out. Nothing but the labels is used.
        """
        fold = rng.permutation(self._pairs.n_pairs) % N_FOLDS
        error = np.zeros(len(RIDGES))
        for left_out in range(N_FOLDS):
            weight = np.where(fold == left_out, 0.0, self._weight)
            rows = self._start(weight)
            for place in reversed(range(len(RIDGES))):  # each starts where the wider one ended
                rows = self._fit(weight, RIDGES[place], rows, N_SWEEPS // 3)
                error[place] += self._error(rows, self._weight - weight)
        return float(RIDGES[error.argmin()]), error / max(self._weight.sum(), 1e-300)

    def _fit(self, weight: Floats, ridge: float, rows: Floats, n_sweeps: int = N_SWEEPS) -> Floats:
        size = self._rank
        weights = self._pairs.matrix(weight)
        targets = self._pairs.matrix(weight * self._pairs.covariance)
        for _ in range(n_sweeps):
            outer = (rows[:, :, None] * rows[:, None, :]).reshape(-1, size * size)
            gram = (weights @ outer).reshape(-1, size, size) + ridge * np.eye(size)
            solved = np.linalg.solve(gram, (targets @ rows)[:, :, None])[:, :, 0]
            rows = 0.5 * (rows + solved)
        return rows

    def _start(self, weight: Floats) -> Floats:
        """Leading eigenvectors of the covariance, with nothing where a pair is missing."""
        known: Any = self._pairs.matrix(np.where(weight > 0, self._pairs.covariance, 0.0))
        n = self._pairs.n_workers
        if n <= max(DENSE, 2 * self._rank):
            values, vectors = np.linalg.eigh(known.toarray())
        else:
            from scipy.sparse.linalg import eigsh

            values, vectors = eigsh(known, k=self._rank, which="LA", v0=np.ones(n))
        top = np.argsort(values)[-self._rank :]
        return np.asarray(vectors[:, top] * np.sqrt(np.maximum(values[top], 1e-6)))

    def _error(self, rows: Floats, weight: Floats) -> float:
        first, second = self._pairs.first, self._pairs.second
        fitted = np.einsum("pr,pr->p", rows[first], rows[second])
        return float(weight @ (self._pairs.covariance - fitted) ** 2)


def pair_z(pairs: PairMoments) -> Floats:
    r"""(n_pairs,): the covariance of each pair in standard errors of independent workers.

    With :math:`\Sigma_j = diag(p_j) - p_j p_j^\top` the covariance matrix of a worker's one-hot
    labels, that of independent workers varies by :math:`tr(\Sigma_j \Sigma_{j'}) / n`.
    """
    own, other = pairs.tables.sum(axis=2), pairs.tables.sum(axis=1)
    agreement = np.einsum("pl,pl->p", own, other)
    variance = agreement - np.einsum("pl,pl->p", own * other, own + other) + agreement**2
    error = np.sqrt(np.maximum(variance, 0.0) / pairs.n_shared)
    known = error > 1e-12
    return np.where(known, pairs.covariance / np.where(known, error, 1.0), 0.0)


def two_means(
    rows: Floats, rng: np.random.Generator, n_init: int = 10
) -> tuple[NDArray[np.bool_], Floats]:
    """Split rows (n, r) into two clusters; return the mask of the one nearer to zero, and centres.

    The centres (2, r) are that of the cluster nearer to zero, then the other. The best of
    ``n_init`` starts at two different rows counts.

    Examples
    --------
    >>> rows = np.array([[0.0], [0.9], [0.1], [1.1]])
    >>> two_means(rows, np.random.default_rng(0))[0]
    array([ True, False,  True, False])
    """
    best, chosen, centres = np.inf, np.zeros(len(rows), dtype=bool), np.zeros((2, rows.shape[1]))
    if len(rows) < 2:
        return chosen, centres
    for _ in range(n_init):
        start = rows[rng.choice(len(rows), 2, replace=False)]
        second, found, cost = _lloyd(rows, start)
        if cost < best:
            best, chosen, centres = cost, second, found
    order = np.argsort((centres**2).sum(axis=1), kind="stable")
    return (chosen if order[0] == 1 else ~chosen), centres[order]


def _lloyd(rows: Floats, centres: Floats) -> tuple[NDArray[np.bool_], Floats, float]:
    for _ in range(100):
        distance = ((rows[:, None, :] - centres) ** 2).sum(axis=2)
        second = distance[:, 1] < distance[:, 0]
        if second.all() or not second.any():
            break
        moved = np.stack([rows[~second].mean(axis=0), rows[second].mean(axis=0)])
        if np.array_equal(moved, centres):
            break
        centres = moved
    return second, centres, float(distance.min(axis=1).sum())
