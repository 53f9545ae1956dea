"""Multinomial logistic regression on class probabilities, with a ridge penalty."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.features import is_sparse

Floats = NDArray[np.float64]


class Standardised(NamedTuple):
    """Standardised features, and the way back to the features as given.

    Attributes
    ----------
    X : (N, d + 1) array, or what has its products
        Features of mean 0 and deviation 1, then a column of ones. A constant feature is 0.
    mean, scale : (d,)
        Centre and deviation of the features as given; the scale of a constant one is infinite.
    """

    X: Any
    mean: Floats
    scale: Floats

    @classmethod
    def of(cls, X: Any) -> Standardised:
        """Standardise features (N, d), which may be sparse."""
        mean, scale = _moments(X)
        scale = np.where(scale > 1e-12 * (1 + np.abs(mean)), scale, np.inf)
        if is_sparse(X):
            return cls(SparseStandardised(X, mean, scale), mean, scale)
        return cls(np.hstack([(X - mean) / scale, np.ones((len(X), 1))]), mean, scale)

    def as_given(self, weights: Floats) -> tuple[Floats, Floats]:
        """Return weights (K, d) and intercepts (K,) for the features as given."""
        coef = weights[:, :-1] / self.scale
        return coef, weights[:, -1] - coef @ self.mean


class SparseStandardised:
    """Products with standardised sparse features and a column of ones, without a dense array."""

    __array_ufunc__ = None  # products with arrays from the left come here

    def __init__(self, X: Any, mean: Floats, scale: Floats) -> None:
        self.X, self.mean, self.scale = X, mean, scale
        self.shape = (X.shape[0], X.shape[1] + 1)

    def __len__(self) -> int:
        return int(self.shape[0])

    def __getitem__(self, rows: NDArray[np.bool_]) -> SparseStandardised:
        return SparseStandardised(self.X[np.flatnonzero(rows)], self.mean, self.scale)

    def __matmul__(self, weights: Floats) -> Floats:
        inner = weights[:-1] / self.scale[:, None]
        return np.asarray(self.X @ inner + (weights[-1] - self.mean @ inner))

    def __rmatmul__(self, left: Floats) -> Floats:
        total = left.sum(axis=1, keepdims=True)
        inner = ((self.X.T @ left.T).T - total * self.mean) / self.scale
        return np.hstack([inner, total])


def _moments(X: Any) -> tuple[Floats, Floats]:
    """Return mean and standard deviation of each column; X may be sparse."""
    if not is_sparse(X):
        return X.mean(axis=0), X.std(axis=0)
    n = X.shape[0]
    mean = np.asarray(X.sum(axis=0)).ravel() / n
    # Zeros that are not stored deviate by the mean.
    stored = X.copy()
    stored.data = (X.data - mean[X.indices]) ** 2
    count = np.bincount(X.indices, minlength=X.shape[1])
    total = np.asarray(stored.sum(axis=0)).ravel() + (n - count) * mean**2
    return mean, np.sqrt(total / n)


def solve_logistic(X: Any, targets: Floats, l2: float, start: Floats, tol: float = 1e-7) -> Floats:
    r"""Return the (K, d) weights of a logistic regression on class probabilities.

    They minimise :math:`-\sum_{ik} q_i(k) \log f_k(x_i) + \frac{\lambda}{2} \|W\|^2`; the last
    column, the intercept, is not penalised.

    Parameters
    ----------
    X : (N, d) array, or what has its products
        Features with a last column of ones.
    targets : (N, K)
    l2 : float
    start : (K, d)
        Initial weights; returned unchanged if L-BFGS does not improve on them.
    tol : float
        Largest entry of the mean gradient at convergence.
    """
    from scipy.optimize import minimize

    n_classes, penalty = targets.shape[1], np.full(X.shape[1], l2)
    penalty[-1] = 0.0

    def loss(flat: Floats) -> tuple[float, Floats]:
        weights = flat.reshape(n_classes, -1)
        log_f = log_softmax(X @ weights.T)
        value = -(targets * log_f).sum() + 0.5 * (penalty * weights**2).sum()
        gradient = (np.exp(log_f) - targets).T @ X + penalty * weights
        return float(value) / len(X), gradient.ravel() / len(X)

    options = {"maxiter": 1000, "ftol": 0.0, "gtol": tol, "maxcor": 20}
    found = minimize(loss, start.ravel(), jac=True, method="L-BFGS-B", options=options)
    better = np.isfinite(found.fun) and found.fun <= loss(start.ravel())[0]
    return np.asarray(found.x.reshape(n_classes, -1) if better else start)


def log_softmax(scores: Floats) -> Floats:
    """Return (N, K) log-probabilities of log-scores."""
    top = scores.max(axis=1, keepdims=True)
    shifted = scores - top
    return np.asarray(shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True)))
