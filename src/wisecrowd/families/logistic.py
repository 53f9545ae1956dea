"""Logistic functions; SciPy is imported when they are first called, which keeps start-up short."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def sigmoid(x: Floats) -> Floats:
    """Return 1 / (1 + exp(-x)).

    Examples
    --------
    >>> sigmoid(np.array([0.0])).tolist()
    [0.5]
    """
    from scipy.special import expit

    return np.asarray(expit(x), dtype=np.float64)


def log_sigmoid(x: Floats) -> Floats:
    """Return the logarithm of the sigmoid, without overflow."""
    from scipy.special import log_expit

    return np.asarray(log_expit(x), dtype=np.float64)


def log_softmax_rows(*columns: Floats) -> Floats:
    """Return the logarithms (n, len(columns)) of probabilities from columns of log weights."""
    table = np.stack(np.broadcast_arrays(*columns), axis=1)
    table = table - table.max(axis=1, keepdims=True)
    return np.asarray(table - np.log(np.exp(table).sum(axis=1, keepdims=True)))
