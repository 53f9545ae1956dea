"""Workers who know some classes and guess on the others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from wisecrowd.core.exceptions import ParameterError
from wisecrowd.core.parameters import check_integer, check_number
from wisecrowd.simulate._checks import Floats
from wisecrowd.simulate.base import Population


@dataclass(frozen=True)
class ClassExperts(Population):
    r"""Each worker is an expert for a few classes, and mediocre on the others.

    .. math:: \theta_j[k, k] = \begin{cases} p & k \in \mathcal E_j \\ q & \text{else,}\end{cases}
              \qquad \theta_j[k, l] = \frac{1 - \theta_j[k, k]}{K - 1}

    with :math:`\mathcal E_j` a random set of `n_known` classes; the workers take turns, so that
    every class has experts as soon as there are K / n_known workers.

    Parameters
    ----------
    n_known : int, default 1
        How many classes a worker is an expert for.
    p : float, default 0.95
        Accuracy on the classes known.
    q : float, optional
        Accuracy on the others; by default 1 / K, a guess.

    Examples
    --------
    >>> import numpy as np
    >>> confusion = ClassExperts(n_known=1, p=1.0).sample(3, 3, np.random.default_rng(0))
    >>> (confusion == 1).sum(axis=0).diagonal().tolist()
    [1, 1, 1]
    """

    kind: ClassVar[str] = "class-wise-experts"
    n_known: int = 1
    p: float = 0.95
    q: float | None = None

    def __post_init__(self) -> None:
        check_integer("n_known", self.n_known, 1)
        check_number("p", self.p, 0.0, 1.0)
        if self.q is not None:
            check_number("q", self.q, 0.0, 1.0)

    def sample(self, n_workers: int, n_classes: int, rng: np.random.Generator) -> Floats:
        """Share out the classes; shape (n_workers, n_classes, n_classes)."""
        if self.n_known > n_classes:
            raise ParameterError(
                f"`n_known` is {self.n_known}, but there are {n_classes} classes; lower it."
            )
        if n_classes == 1:
            return np.ones((n_workers, 1, 1))
        # Consecutive runs of one random circle of classes: distinct within a worker, and even.
        circle = rng.permutation(n_classes)
        seats = np.arange(n_workers)[:, None] * self.n_known + np.arange(self.n_known)
        accuracy = np.full((n_workers, n_classes), 1.0 / n_classes if self.q is None else self.q)
        accuracy[np.arange(n_workers)[:, None], circle[seats % n_classes]] = self.p
        wrong = (1.0 - accuracy) / (n_classes - 1)
        confusion = np.repeat(wrong[:, :, None], n_classes, axis=2)
        diagonal = np.arange(n_classes)
        confusion[:, diagonal, diagonal] = accuracy
        return confusion
