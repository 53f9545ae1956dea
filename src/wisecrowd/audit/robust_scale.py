"""Robust estimate of the variance between workers."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

QUANTILE = 0.8  # up to a fifth of the workers may be outliers without effect on the estimate
NORMAL_SQUARE = 1.642374  # this quantile of the square of a standard normal variable
EFFICIENCY = 0.37  # efficiency of the robust scale relative to the standard deviation


def robust_variance(difference: Floats, variance: Floats) -> Floats:
    """Estimate the variance between workers in addition to the sampling variance, per column.

    With it, the 80% quantile of the squared standardised differences equals that of a normal
    variable. Outliers have little effect if they are at most a fifth of the workers.

    Parameters
    ----------
    difference, variance : (n_workers, ...)
        Difference of each worker from the expectation, and its sampling variance.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> x = np.append(rng.normal(0, 2.0, 2000), np.full(100, 50.0))
    >>> bool(abs(np.sqrt(robust_variance(x, np.zeros_like(x))) - 2.0) < 0.3)
    True
    """
    low = np.zeros(difference.shape[1:])
    high = (difference**2).max(axis=0) + 1e-300
    for _ in range(60):
        middle = (low + high) / 2
        size = np.quantile(difference**2 / (variance + middle + 1e-300), QUANTILE, axis=0)
        low = np.where(size > NORMAL_SQUARE, middle, low)
        high = np.where(size > NORMAL_SQUARE, high, middle)
    return np.asarray(high)


def student_tail(z: Any, n_workers: int) -> Floats:
    """Return the one-sided p-value of z if the scale was estimated from ``n_workers``.

    The degrees of freedom of Student's t distribution account for the efficiency of the robust
    scale.

    Examples
    --------
    >>> float(student_tail(3.0, 20).round(4)), float(student_tail(3.0, 2000).round(4))
    (0.0099, 0.0014)
    """
    from scipy.special import stdtr

    return np.asarray(stdtr(max(1.0, EFFICIENCY * (n_workers - 1)), -np.asarray(z)))
