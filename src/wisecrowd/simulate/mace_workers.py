"""Workers who know the class or guess from a habit of their own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from wisecrowd.core.exceptions import ParameterError
from wisecrowd.core.parameter_checks import SMALLEST_NUMBER, check_number
from wisecrowd.simulate._checks import Floats
from wisecrowd.simulate.worker_population import Population


@dataclass(frozen=True)
class MACEWorkers(Population):
    r"""A worker knows the class with probability :math:`\theta_j`, else draws from :math:`\xi_j`.

    .. math:: p(y_{ij} = l \mid z_i = k) = \theta_j 1\{l = k\} + (1 - \theta_j) \xi_{jl}, \qquad
              \theta_j \sim \text{Beta}(a, b), \; \xi_j \sim \text{Dir}(c, \dots, c)

    Parameters
    ----------
    a, b : float, default 2 and 1
        Beta parameters of knowing.
    concentration : float, default 1
        Dirichlet parameter of the habit.

    References
    ----------
    D. Hovy, T. Berg-Kirkpatrick, A. Vaswani, E. Hovy (2013). Learning whom to trust with MACE.
    NAACL.

    Examples
    --------
    >>> import numpy as np
    >>> confusion = MACEWorkers().sample(5, 3, np.random.default_rng(0))
    >>> knowing, habit = MACEWorkers.parameters(confusion)
    >>> knowing.shape, habit.shape
    ((5,), (5, 3))
    """

    kind: ClassVar[str] = "mace"
    a: float = 2.0
    b: float = 1.0
    concentration: float = 1.0

    def __post_init__(self) -> None:
        for name in ("a", "b", "concentration"):
            check_number(name, getattr(self, name), SMALLEST_NUMBER)

    def sample(self, n_workers: int, n_classes: int, rng: np.random.Generator) -> Floats:
        """Draw knowing and habit of each worker; shape (n_workers, n_classes, n_classes)."""
        knowing = rng.beta(self.a, self.b, size=n_workers)[:, None, None]
        habit = rng.dirichlet(np.full(n_classes, self.concentration), size=n_workers)
        confusion: Floats = knowing * np.eye(n_classes) + (1.0 - knowing) * habit[:, None, :]
        return confusion

    @staticmethod
    def parameters(confusion: Floats) -> tuple[Floats, Floats]:
        r"""Read :math:`\theta` (J,) and :math:`\xi` (J, K) back from the matrices.

        Away from the diagonal a column holds :math:`(1 - \theta_j) \xi_{jl}` in every row. A
        worker who always knows shows no habit; it is returned as uniform.
        """
        n_workers, n_classes, _ = confusion.shape
        if n_classes < 2:
            raise ParameterError("With one class, knowing and guessing look the same.")
        off_diagonal = confusion * (1.0 - np.eye(n_classes))
        guessed = off_diagonal.sum(axis=1) / (n_classes - 1)  # (J, K): (1 - theta) xi
        guessing = guessed.sum(axis=1)
        habit = np.full((n_workers, n_classes), 1.0 / n_classes)
        np.divide(guessed, guessing[:, None], out=habit, where=guessing[:, None] > 0)
        return 1.0 - guessing, habit
