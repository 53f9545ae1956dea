"""Workers, or single classes of a worker, that are expert or random."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from wisecrowd.core.exceptions import ParameterError
from wisecrowd.core.parameter_checks import check_integer, check_number
from wisecrowd.simulate._checks import Floats
from wisecrowd.simulate.worker_population import Population


@dataclass(frozen=True)
class HammerSpammers(Population):
    r"""A worker is a hammer (always right) with probability gamma, else a uniform spammer.

    .. math:: \theta_j = I \;\text{with probability } \gamma, \qquad \theta_j = 1/K \;\text{else}

    Parameters
    ----------
    gamma : float, default 0.5
        Probability that a worker is a hammer.

    Notes
    -----
    A worker who is right with probability p *per label* and else guesses is the mean of this
    law, ``FixedConfusion(p * I + (1 - p) / K)``.

    References
    ----------
    D. Karger, S. Oh, D. Shah (2011). Iterative learning for reliable crowdsourcing systems.
    NeurIPS.

    Examples
    --------
    >>> import numpy as np
    >>> confusion = HammerSpammers(0.3).sample(1000, 2, np.random.default_rng(0))
    >>> sorted(set(confusion[:, 0, 0].tolist()))
    [0.5, 1.0]
    """

    kind: ClassVar[str] = "hammer-spammer"
    gamma: float = 0.5

    def __post_init__(self) -> None:
        check_number("gamma", self.gamma, 0.0, 1.0)

    def sample(self, n_workers: int, n_classes: int, rng: np.random.Generator) -> Floats:
        """Draw who is a hammer; shape (n_workers, n_classes, n_classes)."""
        hammer = rng.random(n_workers) < self.gamma
        return np.where(hammer[:, None, None], np.eye(n_classes), 1.0 / n_classes)


@dataclass(frozen=True)
class ClassWiseHammerSpammers(Population):
    r"""A worker knows each class with probability gamma, and guesses on the others.

    .. math:: \theta_j[k, \cdot] = e_k \;\text{with probability } \gamma, \quad 1/K \;\text{else},
              \;\text{independently for every } (j, k)

    Parameters
    ----------
    gamma : float, default 0.5
        Probability that a worker knows a class.

    References
    ----------
    A. Khetan, Z. Lipton, A. Anandkumar (2018). Learning from noisy singly-labeled data. ICLR.

    Examples
    --------
    >>> import numpy as np
    >>> ClassWiseHammerSpammers(0.5).sample(1, 4, np.random.default_rng(1))[0, 3].tolist()
    [0.25, 0.25, 0.25, 0.25]
    """

    kind: ClassVar[str] = "class-wise-hammer-spammer"
    gamma: float = 0.5

    def __post_init__(self) -> None:
        check_number("gamma", self.gamma, 0.0, 1.0)

    def sample(self, n_workers: int, n_classes: int, rng: np.random.Generator) -> Floats:
        """Draw which classes each worker knows; shape (n_workers, n_classes, n_classes)."""
        known = rng.random((n_workers, n_classes)) < self.gamma
        return np.where(known[:, :, None], np.eye(n_classes), 1.0 / n_classes)


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
