"""Binary workers with a sensitivity and a specificity."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from wisecrowd.core.exceptions import ParameterError
from wisecrowd.core.parameter_checks import SMALLEST_NUMBER, check_number
from wisecrowd.simulate._checks import Floats
from wisecrowd.simulate.worker_population import Population


@dataclass(frozen=True)
class TwoCoinWorkers(Population):
    r"""Two classes, and an own accuracy for each: two independent Beta draws per worker.

    .. math:: \theta_j[1, 1] \sim \text{Beta}(a_1, b_1) \;\text{(sensitivity)}, \qquad
              \theta_j[0, 0] \sim \text{Beta}(a_0, b_0) \;\text{(specificity)}

    Parameters
    ----------
    a1, b1 : float, default 4 and 2
        Sensitivity: right on the positive class, code 1.
    a0, b0 : float, default 6 and 2
        Specificity: right on the negative class, code 0.

    References
    ----------
    V. C. Raykar et al. (2010). Learning from crowds. JMLR 11.

    Examples
    --------
    >>> import numpy as np
    >>> confusion = TwoCoinWorkers(90, 10, 60, 40).sample(500, 2, np.random.default_rng(0))
    >>> confusion.mean(axis=0).round(1).tolist()
    [[0.6, 0.4], [0.1, 0.9]]
    """

    kind: ClassVar[str] = "two-coin"
    a1: float = 4.0
    b1: float = 2.0
    a0: float = 6.0
    b0: float = 2.0

    def __post_init__(self) -> None:
        for name in ("a1", "b1", "a0", "b0"):
            check_number(name, getattr(self, name), SMALLEST_NUMBER)

    def sample(self, n_workers: int, n_classes: int, rng: np.random.Generator) -> Floats:
        """Draw sensitivity and specificity of each worker; shape (n_workers, 2, 2)."""
        if n_classes != 2:
            raise ParameterError(f"Two-coin workers need 2 classes, but there are {n_classes}.")
        sensitivity = rng.beta(self.a1, self.b1, size=n_workers)
        specificity = rng.beta(self.a0, self.b0, size=n_workers)
        rows = [specificity, 1.0 - specificity, 1.0 - sensitivity, sensitivity]
        return np.stack(rows, axis=1).reshape(n_workers, 2, 2)
