"""Workers with one accuracy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from wisecrowd.core.parameter_checks import SMALLEST_NUMBER, check_number
from wisecrowd.simulate._checks import Floats
from wisecrowd.simulate.worker_population import Population


@dataclass(frozen=True)
class OneCoinWorkers(Population):
    r"""Each worker has one accuracy; wrong labels are spread evenly.

    .. math:: p_j \sim \text{Beta}(a, b), \qquad \theta_j = p_j I + \frac{1 - p_j}{K - 1}(1 - I)

    The symmetric Dirichlet :math:`\text{Dir}(a_1, a_2)` of the belief propagation literature is
    ``OneCoinWorkers(a_1, a_2)``: with a, b below one most workers are nearly perfect or nearly
    always wrong.

    Parameters
    ----------
    a, b : float, default 4 and 2
        Parameters of the Beta distribution; the mean accuracy is a / (a + b).

    References
    ----------
    Q. Liu, J. Peng, A. Ihler (2012). Variational inference for crowdsourcing. NeurIPS.

    Examples
    --------
    >>> import numpy as np
    >>> OneCoinWorkers(8, 2).sample(5, 3, np.random.default_rng(0)).shape
    (5, 3, 3)
    """

    kind: ClassVar[str] = "one-coin"
    a: float = 4.0
    b: float = 2.0

    def __post_init__(self) -> None:
        check_number("a", self.a, SMALLEST_NUMBER)
        check_number("b", self.b, SMALLEST_NUMBER)

    def sample(self, n_workers: int, n_classes: int, rng: np.random.Generator) -> Floats:
        """Draw one accuracy per worker; shape (n_workers, n_classes, n_classes)."""
        return one_coin_confusion(rng.beta(self.a, self.b, size=n_workers), n_classes)


def one_coin_confusion(accuracy: Floats, n_classes: int) -> Floats:
    """Fill (J, K, K) matrices with the accuracy on the diagonal and the rest spread evenly.

    Examples
    --------
    >>> import numpy as np
    >>> one_coin_confusion(np.array([0.8]), 3)[0].round(2).tolist()
    [[0.8, 0.1, 0.1], [0.1, 0.8, 0.1], [0.1, 0.1, 0.8]]
    """
    wrong = (1.0 - accuracy) / max(n_classes - 1, 1)
    confusion = np.broadcast_to(wrong[:, None, None], (accuracy.size, n_classes, n_classes)).copy()
    diagonal = np.arange(n_classes)
    # With one class there is nothing else to say.
    confusion[:, diagonal, diagonal] = accuracy[:, None] if n_classes > 1 else 1.0
    return confusion
