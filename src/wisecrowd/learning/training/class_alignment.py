"""Class biases that make the mean prediction of a classifier proportional to a target."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from wisecrowd.learning.training.logistic import log_softmax

Floats = NDArray[np.float64]

STEPS = 15


def aligned(log_f: Floats, log_target: Floats) -> Floats:
    """Return class biases (K,) that make the mean prediction proportional to a target."""
    bias: Floats = np.zeros(len(log_target))
    for _ in range(STEPS):
        mean = np.exp(log_softmax(log_f + bias)).mean(axis=0)
        bias += log_target - np.log(np.maximum(mean, 1e-300))
    return np.asarray(bias - bias.mean())
