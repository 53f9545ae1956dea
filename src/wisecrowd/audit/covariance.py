r"""Low-rank part, off the diagonal, of the workers' label covariance: the part due to the classes.

.. math::
    C_{jj'} = \sum_l cov(1[y_j = l], 1[y_{j'} = l]) \approx v_j^\top v_{j'}, \qquad j \neq j'

Labels of different workers covary only through the class. Thus the row :math:`v_j` of a worker
whose labels are independent of the class is zero.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.families.moments.pair_moments import PairMoments

Floats = NDArray[np.float64]

RIDGES = np.geomspace(1e-3, 10.0, 9)  # candidates for the ridge, largest last
N_FOLDS = 4
N_SWEEPS = 200
CLOSE = 1e-10  # relative length of a step at which the descent ends
ROUGH = 1e-4  # the same for the comparison of ridges
WORTH = 1e-6  # share of the ridge: a column that gains less than its ridge and this is rounding
EQUAL = 1e-9  # ridges with a smaller relative difference of errors are equally good
DENSE = 200  # workers up to which all eigenvectors are computed


class RowFit:
    r"""Weighted least squares of :math:`C \approx V V^\top` off the diagonal, with a ridge.

    .. math::
        F(V) = \sum_{j < j'} w_{jj'} (C_{jj'} - v_j^\top v_{j'})^2 + \rho \sum_j \lVert v_j \rVert^2

    Parameters
    ----------
    pairs : PairMoments
    rank : int
        Maximum number of columns of :math:`V`.

    Notes
    -----
    :math:`F` does not change when :math:`V` is rotated. The rows are returned in their principal
    axes, longest first; callers may use only lengths and angles.

    Rounding would determine a column that the data do not support, so such columns are left out. A
    new column :math:`t u` lowers :math:`F` if and only if :math:`u^\top (W \circ E) u > \rho`,
    where :math:`E` is the residual with a diagonal of zeros. The fit starts without columns, adds
    the eigenvectors of :math:`W \circ E` with eigenvalues above the ridge, descends, and repeats
    this. Unused columns are zero.

    The descent is by conjugate gradients, preconditioned by the normal equations of each row given
    the others. The step is the first minimum of :math:`F` along the direction, a polynomial of
    degree four.
    """

    def __init__(self, pairs: PairMoments, rank: int) -> None:
        self._pairs = pairs
        self._rank = max(1, min(rank, pairs.n_workers))
        self._weight = pairs.n_shared / max(pairs.n_shared.max(initial=0.0), 1.0)

    def rows(self, ridge: float) -> Floats:
        """Return the rows (n_workers, rank) under a ridge."""
        found = self._fit(self._weight, ridge, self._nothing(), CLOSE)
        axes, lengths, _ = np.linalg.svd(found, full_matrices=False)
        rows = np.zeros((self._pairs.n_workers, self._rank))
        rows[:, : len(lengths)] = axes * lengths
        return rows

    def choose_ridge(self, rng: np.random.Generator) -> tuple[float, Floats]:
        """Choose the ridge by cross-validation; return it and the error (n_ridges,) of each.

        Pairs are assigned to folds at random. The rows are fitted to all folds except one, and the
        weighted squared error is computed on the held-out fold. Among equally good ridges the
        largest is chosen.
        """
        fold = rng.permutation(self._pairs.n_pairs) % N_FOLDS
        error = np.zeros(len(RIDGES))
        for left_out in range(N_FOLDS):
            weight = np.where(fold == left_out, 0.0, self._weight)
            rows = self._nothing()
            for place in reversed(range(len(RIDGES))):  # each starts from the previous result
                rows = self._fit(weight, RIDGES[place], rows, ROUGH)
                error[place] += float((self._weight - weight) @ self._residual(rows) ** 2)
        best = np.flatnonzero(error <= error.min() * (1 + EQUAL))[-1]
        return float(RIDGES[best]), error / max(self._weight.sum(), 1e-300)

    def _nothing(self) -> Floats:
        return np.zeros((self._pairs.n_workers, 0))

    def _residual(self, rows: Floats) -> Floats:
        first, second = self._pairs.first, self._pairs.second
        fitted = np.einsum("pr,pr->p", rows[first], rows[second])
        return np.asarray(self._pairs.covariance - fitted)

    def _fit(self, weight: Floats, ridge: float, rows: Floats, close: float) -> Floats:
        """Descend from rows (n_workers, any), and add columns until none lowers the objective."""
        if rows.shape[1]:
            rows = self._descend(weight, ridge, rows, close)
        while rows.shape[1] < self._rank:
            new = self._new_columns(weight, ridge, rows)
            if not new.shape[1]:
                break
            rows = self._descend(weight, ridge, np.hstack([rows, new]), close)
        return rows

    def _new_columns(self, weight: Floats, ridge: float, rows: Floats) -> Floats:
        """Return new columns (n_workers, n) that lower the objective, each of optimal length."""
        strength = self._pairs.matrix(weight * self._residual(rows))
        if abs(strength).sum(axis=1).max() <= ridge:  # no eigenvalue exceeds that sum
            return self._nothing()
        values, vectors = _leading(strength, self._rank - rows.shape[1])
        worth = values > ridge * (1 + WORTH)
        values, vectors = values[worth], vectors[:, worth]
        squares = vectors**2
        quartic = (squares * (self._pairs.matrix(weight) @ squares)).sum(axis=0)
        return np.asarray(vectors * np.sqrt((values - ridge) / quartic))

    def _descend(self, weight: Floats, ridge: float, rows: Floats, close: float) -> Floats:
        weights = self._pairs.matrix(weight)
        targets = self._pairs.matrix(weight * self._pairs.covariance)
        gram, pull = weights @ _products(rows, rows), targets @ rows
        direction, slope, former = np.zeros_like(rows), np.inf, np.zeros_like(rows)
        for _ in range(N_SWEEPS):
            size = rows.shape[1]
            normal = gram.reshape(-1, size, size) + ridge * np.eye(size)
            gap = np.linalg.solve(normal, pull[:, :, None])[:, :, 0] - rows
            descent = np.einsum("jrs,js->jr", normal, gap)
            now = float((descent * gap).sum())
            if now <= close**2 * float((rows**2).sum()) * ridge:
                break
            onwards = max(0.0, float((descent * (gap - former)).sum()) / slope)
            direction = gap + onwards * direction
            if (descent * direction).sum() <= 0:
                direction = gap
            # The objective along the direction is a polynomial of these products.
            mixed, square = _products(rows, direction), _products(direction, direction)
            mixed = mixed + _products(direction, rows)
            of_mixed, of_square, onto = weights @ mixed, weights @ square, targets @ direction
            step = _first_minimum(
                2 * (square * of_square).sum(),
                3 * (mixed * of_square).sum(),
                2 * (gram * square).sum() + (mixed * of_mixed).sum()
                + 2 * (direction * (ridge * direction - onto)).sum(),
                -2 * (descent * direction).sum(),
            )  # fmt: skip
            rows = rows + step * direction
            gram, pull = gram + step * of_mixed + step**2 * of_square, pull + step * onto
            slope, former = now, gap
        return rows


def _products(left: Floats, right: Floats) -> Floats:
    """Return the outer products (n, r²) of rows."""
    return np.asarray((left[:, :, None] * right[:, None, :]).reshape(len(left), -1))


def _first_minimum(*derivative: float) -> float:
    """Return the first positive minimum of a polynomial of degree four, given its derivative."""
    roots = np.roots(derivative)
    ahead = roots.real[(roots.imag == 0) & (roots.real > 0)]
    return float(ahead.min()) if len(ahead) else 0.5


def _leading(matrix: Any, n: int) -> tuple[Floats, Floats]:
    """Return the n largest eigenvalues of a sparse symmetric matrix, and their eigenvectors."""
    size = matrix.shape[0]
    if size <= max(DENSE, 2 * n + 2):
        values, vectors = np.linalg.eigh(matrix.toarray())
        return values[-n:], vectors[:, -n:]
    from scipy.sparse.linalg import eigsh

    start = np.random.default_rng(0).standard_normal(size)
    values, vectors = eigsh(matrix, k=n, which="LA", v0=start)
    return values, vectors


def pair_z(pairs: PairMoments) -> Floats:
    r"""Return (n_pairs,) covariances in standard errors of independent workers.

    The one-hot labels of a worker have the covariance matrix
    :math:`\Sigma_j = diag(p_j) - p_j p_j^\top`. The sample covariance of two independent workers
    has the variance :math:`tr(\Sigma_j \Sigma_{j'}) / n`.
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
    """Split rows (n, r) by 2-means; return the mask of the cluster nearer to zero, and the centres.

    The first of the centres (2, r) is that of the cluster nearer to zero. The best of ``n_init``
    starts is used, each at two different rows.

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
