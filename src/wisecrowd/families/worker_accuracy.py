"""Worker accuracies from confusion matrices."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def accuracy_of(confusion: Floats, class_prior: Floats) -> Floats:
    r"""Return the worker accuracy (n_workers,) :math:`\sum_k \pi_k \theta_{jkk}`."""
    diagonal = np.diagonal(confusion, axis1=1, axis2=2)  # (J, K)
    # Not a matrix product: BLAS would start threads for it.
    return np.asarray(np.einsum("jk,k->j", diagonal, class_prior))
