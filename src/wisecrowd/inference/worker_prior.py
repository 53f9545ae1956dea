"""Interface of priors on workers: sampling, integration rules and posteriors."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from wisecrowd.inference.quadrature import Rule

Floats = NDArray[np.float64]


class WorkerPosterior(NamedTuple):
    """Conjugate posterior of workers given expected counts.

    Attributes
    ----------
    expected_log, mean : (J, K, K) expected logarithm and mean of the confusion matrix
    log_evidence : (J,) log evidence of the counts under the prior
    """

    expected_log: Floats
    mean: Floats
    log_evidence: Floats


class WorkerPrior:
    """Interface of priors for belief propagation, mean field and simulators.

    Where ``coin`` is true, one accuracy describes a worker: wrong labels are spread evenly, and the
    nodes of ``rule`` are accuracies (S,) instead of matrices (S, K, K).
    """

    @property
    def coin(self) -> bool:
        """Whether one accuracy describes a worker."""
        return False

    def sample(self, n_workers: int, n_classes: int, rng: np.random.Generator) -> Floats:
        """Draw confusion matrices (n_workers, n_classes, n_classes)."""
        raise TypeError(f"{type(self).__name__} cannot be sampled.")

    def rule(
        self, degree: int, n_classes: int, counts: Floats | None = None, size: int = 512
    ) -> Rule:
        """Return nodes and log weights for a worker with ``degree`` labels.

        ``counts`` (K, K), if given, locate the worker's posterior; ``size`` is the number of points
        if no exact rule is affordable.
        """
        raise TypeError(f"{type(self).__name__} has no integration rule.")

    def exact(self, degree: int, n_classes: int) -> bool:
        """Return whether ``rule`` is exact for a worker with this number of labels."""
        return False

    def posterior(self, counts: Floats) -> WorkerPosterior:
        """Return the posterior given expected counts (J, K, K), true class second."""
        raise TypeError(f"{type(self).__name__} has no posterior in closed form.")


def coin_matrices(accuracy: Floats, n_classes: int) -> Floats:
    """Return the (S, K, K) confusion matrices of accuracies (S,), wrong labels spread evenly."""
    if n_classes == 1:
        return np.ones((len(accuracy), 1, 1))  # no label is wrong
    off = (1 - accuracy) / (n_classes - 1)
    return np.where(np.eye(n_classes, dtype=bool), accuracy[:, None, None], off[:, None, None])
