"""Workers, or single classes of a worker, that are perfect or random."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from wisecrowd.core.parameters import check_number
from wisecrowd.simulate._checks import Floats
from wisecrowd.simulate.base import Population


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
