"""Multinomial logistic regression on class probabilities, with a ridge penalty."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


class Standardised(NamedTuple):
    """Standardised features, and the way back to the features as given.

    Attributes
    ----------
    X : (N, d + 1)
        Features of mean 0 and deviation 1, then a column of ones. A constant feature is 0.
    mean, scale : (d,)
        Centre and deviation of the features as given; the scale of a constant one is infinite.
    """

    X: Floats
    mean: Floats
    scale: Floats

    @classmethod
    def of(cls, X: Floats) -> Standardised:
        """Standardise features (N, d)."""
        mean, scale = X.mean(axis=0), X.std(axis=0)
        scale = np.where(scale > 1e-12 * (1 + np.abs(mean)), scale, np.inf)
        return cls(np.hstack([(X - mean) / scale, np.ones((len(X), 1))]), mean, scale)

    def as_given(self, weights: Floats) -> tuple[Floats, Floats]:
        """Return weights (K, d) and intercepts (K,) for the features as given."""
        coef = weights[:, :-1] / self.scale
        return coef, weights[:, -1] - coef @ self.mean


def solve_logistic(
    X: Floats, targets: Floats, l2: float, start: Floats, tol: float = 1e-7
) -> Floats:
    r"""Return the (K, d) weights of a logistic regression on class probabilities.

    They minimise :math:`-\sum_{ik} q_i(k) \log f_k(x_i) + \frac{\lambda}{2} \|W\|^2`; the last
    column, the intercept, is not penalised.

    Parameters
    ----------
    X : (N, d)
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
