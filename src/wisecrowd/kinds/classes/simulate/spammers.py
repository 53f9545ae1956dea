"""Workers who guess: always, or some of them, or each on some of the classes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from wisecrowd.core.exceptions import ParameterError
from wisecrowd.core.parameter_checks import SMALLEST_NUMBER, check_integer, check_number
from wisecrowd.core.types import Floats
from wisecrowd.kinds.classes.simulate.worker_population import Population


@dataclass(frozen=True)
class Spammers(Population):
    r"""The label is drawn from one distribution per worker, whatever the class.

    .. math:: \theta_j[k, \cdot] = s_j \;\text{for all } k

    Parameters
    ----------
    concentration : float, optional
        :math:`s_j \sim \text{Dir}(c, \dots, c)`: small values give spammers with a favourite.
        By default every spammer is uniform.

    References
    ----------
    V. C. Raykar, S. Yu (2012). Eliminating spammers and ranking annotators for crowdsourced
    labeling tasks. JMLR 13.

    Examples
    --------
    >>> import numpy as np
    >>> Spammers().sample(1, 2, np.random.default_rng(0)).tolist()
    [[[0.5, 0.5], [0.5, 0.5]]]
    """

    kind: ClassVar[str] = "spammers"
    concentration: float | None = None

    def __post_init__(self) -> None:
        if self.concentration is not None:
            check_number("concentration", self.concentration, SMALLEST_NUMBER)

    def sample(self, n_workers: int, n_classes: int, rng: np.random.Generator) -> Floats:
        """Draw one row per worker and repeat it; shape (n_workers, n_classes, n_classes)."""
        if self.concentration is None:
            rows = np.full((n_workers, n_classes), 1.0 / n_classes)
        else:
            rows = rng.dirichlet(np.full(n_classes, self.concentration), size=n_workers)
        return np.repeat(rows[:, None, :], n_classes, axis=1)


@dataclass(frozen=True)
class ExtremeSpammers(Spammers):
    """Spammers who label every task, whatever the assignment graph says.

    Real sets have a few of them. They see most tasks together with everybody else, so that one
    spoils a whole sparse crowd for methods that trust activity.

    Parameters
    ----------
    concentration : float, optional
        As for `Spammers`.

    Examples
    --------
    >>> from wisecrowd import simulate
    >>> crowd = simulate.crowd(
    ...     40, 30 * simulate.OneCoinWorkers() + simulate.ExtremeSpammers(), simulate.Regular(3, 4)
    ... )
    >>> int(crowd.labels.labels_per_worker[30])
    40
    """

    kind: ClassVar[str] = "extreme-spammers"
    labels_everything: ClassVar[bool] = True


@dataclass(frozen=True)
class AlwaysOneClass(Population):
    """Workers who give the same label to every task.

    Parameters
    ----------
    code : int, optional
        The class they say, counted from 0. By default each worker has one at random.

    Examples
    --------
    >>> import numpy as np
    >>> AlwaysOneClass(1).sample(1, 2, np.random.default_rng(0)).tolist()
    [[[0.0, 1.0], [0.0, 1.0]]]
    """

    kind: ClassVar[str] = "always-one-class"
    code: int | None = None

    def __post_init__(self) -> None:
        if self.code is not None:
            check_integer("code", self.code, 0)

    def sample(self, n_workers: int, n_classes: int, rng: np.random.Generator) -> Floats:
        """Put one column of ones in each matrix; shape (n_workers, n_classes, n_classes)."""
        if self.code is None:
            codes = rng.integers(n_classes, size=n_workers)
        elif self.code < n_classes:
            codes = np.full(n_workers, self.code)
        else:
            raise ParameterError(f"`code` is {self.code}, but there are {n_classes} classes.")
        confusion = np.zeros((n_workers, n_classes, n_classes))
        confusion[np.arange(n_workers), :, codes] = 1.0
        return confusion


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
