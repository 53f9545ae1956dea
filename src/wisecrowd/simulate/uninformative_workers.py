"""Workers whose labels do not depend on the true class."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from wisecrowd.core.exceptions import ParameterError
from wisecrowd.core.parameter_checks import SMALLEST_NUMBER, check_integer, check_number
from wisecrowd.simulate._checks import Floats
from wisecrowd.simulate.worker_population import Population


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
