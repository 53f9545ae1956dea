"""Workers who mistake each class for one fixed other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from wisecrowd.core.parameter_checks import check_number
from wisecrowd.simulate._checks import Codes, Floats
from wisecrowd.simulate.one_coin_workers import one_coin_confusion
from wisecrowd.simulate.worker_population import Population


@dataclass(frozen=True)
class PairwiseFlippers(Population):
    r"""Right with probability p, else one fixed other class per worker and true class.

    .. math:: \theta_j[k, k] = p_j, \quad \theta_j[k, t_j(k)] = 1 - p_j, \qquad
              p_j = p + \varepsilon_j, \; \varepsilon_j \sim N(0, \text{jitter}^2)

    clipped to [0, 1], with the target :math:`t_j(k) \ne k` uniform for every worker and class.

    Parameters
    ----------
    p : float, default 0.7
        Mean probability of the right label.
    jitter : float, default 0.01
        Standard deviation of the workers' accuracies around p.

    References
    ----------
    R. Tanno, A. Saeedi, S. Sankaranarayanan, D. Alexander, N. Silberman (2019). Learning from
    noisy labels by regularized estimation of annotator confusion. CVPR.

    Examples
    --------
    >>> import numpy as np
    >>> confusion = PairwiseFlippers(0.6, jitter=0).sample(1, 4, np.random.default_rng(0))[0]
    >>> (confusion > 0).sum(axis=1).tolist()
    [2, 2, 2, 2]
    """

    kind: ClassVar[str] = "pairwise-flipper"
    p: float = 0.7
    jitter: float = 0.01

    def __post_init__(self) -> None:
        check_number("p", self.p, 0.0, 1.0)
        check_number("jitter", self.jitter, 0.0)

    def sample(self, n_workers: int, n_classes: int, rng: np.random.Generator) -> Floats:
        """Draw accuracies and targets; shape (n_workers, n_classes, n_classes)."""
        accuracy = np.clip(self.p + self.jitter * rng.standard_normal(n_workers), 0.0, 1.0)
        return flip_confusion(accuracy, random_targets(n_workers, n_classes, rng))


@dataclass(frozen=True)
class Adversaries(Population):
    r"""Workers who know the class and mostly give a wrong label on purpose.

    .. math:: \theta_j[k, k] = p, \qquad \theta_j[k, l] = \frac{1 - p}{K - 1} \; (l \ne k)

    or, with ``fixed=True``, all the remaining probability on one other class per worker and
    true class.

    Parameters
    ----------
    p : float, default 0.1
        Probability of the right label; below 1/K the worker is worse than chance.
    fixed : bool, default False
        Whether each class is always swapped for the same other one.

    Examples
    --------
    >>> import numpy as np
    >>> Adversaries(0.1).sample(1, 2, np.random.default_rng(0))[0].tolist()
    [[0.1, 0.9], [0.9, 0.1]]
    """

    kind: ClassVar[str] = "adversaries"
    p: float = 0.1
    fixed: bool = False

    def __post_init__(self) -> None:
        check_number("p", self.p, 0.0, 1.0)

    def sample(self, n_workers: int, n_classes: int, rng: np.random.Generator) -> Floats:
        """Turn the labels around; shape (n_workers, n_classes, n_classes)."""
        accuracy = np.full(n_workers, float(self.p))
        if self.fixed:
            return flip_confusion(accuracy, random_targets(n_workers, n_classes, rng))
        return one_coin_confusion(accuracy, n_classes)


def random_targets(n_workers: int, n_classes: int, rng: np.random.Generator) -> Codes:
    """Draw another class, uniformly, for every worker and class: shape (J, K)."""
    shift = rng.integers(1, max(n_classes, 2), size=(n_workers, n_classes))
    return ((np.arange(n_classes) + shift) % n_classes).astype(np.int32)


def flip_confusion(accuracy: Floats, targets: Codes) -> Floats:
    """Fill (J, K, K) matrices: the accuracy on the diagonal, the rest on the target.

    Examples
    --------
    >>> import numpy as np
    >>> flip_confusion(np.array([0.75]), np.array([[1, 0]]))[0].tolist()
    [[0.75, 0.25], [0.25, 0.75]]
    """
    n_workers, n_classes = targets.shape
    confusion = np.zeros((n_workers, n_classes, n_classes))
    j, k = np.arange(n_workers)[:, None], np.arange(n_classes)
    # Added, not assigned: with one class the target is the class itself.
    confusion[j, k, k] += accuracy[:, None]
    confusion[j, k, targets] += 1.0 - accuracy[:, None]
    return confusion
