"""Workers with a full confusion matrix, drawn or given."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from wisecrowd.core.exceptions import ParameterError
from wisecrowd.core.parameter_checks import SMALLEST_NUMBER, check_number
from wisecrowd.simulate._checks import Floats
from wisecrowd.simulate.worker_population import Population


@dataclass(frozen=True)
class DirichletWorkers(Population):
    r"""Every row of every confusion matrix is a Dirichlet draw.

    .. math:: \theta_j[k, \cdot] \sim \text{Dir}(\text{off}, \dots, \text{diag}, \dots, \text{off})
              \quad \text{with diag in place } k

    Parameters
    ----------
    diag, off : float, default 4 and 1
        Parameters of the right label and of each wrong one; the mean accuracy is
        diag / (diag + (K - 1) off).

    References
    ----------
    H.-C. Kim, Z. Ghahramani (2012). Bayesian classifier combination. AISTATS.

    Examples
    --------
    >>> import numpy as np
    >>> confusion = DirichletWorkers(8, 1).sample(4, 3, np.random.default_rng(0))
    >>> bool(np.allclose(confusion.sum(axis=2), 1))
    True
    """

    kind: ClassVar[str] = "dirichlet"
    diag: float = 4.0
    off: float = 1.0

    def __post_init__(self) -> None:
        check_number("diag", self.diag, SMALLEST_NUMBER)
        check_number("off", self.off, SMALLEST_NUMBER)

    def sample(self, n_workers: int, n_classes: int, rng: np.random.Generator) -> Floats:
        """Draw n_workers x n_classes rows; shape (n_workers, n_classes, n_classes)."""
        confusion = np.empty((n_workers, n_classes, n_classes))
        for k in range(n_classes):
            alpha = np.full(n_classes, self.off)
            alpha[k] = self.diag
            # NumPy's Dirichlet stays on the simplex for tiny parameters, unlike gamma ratios.
            confusion[:, k, :] = rng.dirichlet(alpha, size=n_workers)
        return confusion


@dataclass(frozen=True, init=False, eq=False, repr=False)
class FixedConfusion(Population):
    """Workers whose confusion matrices are given.

    Parameters
    ----------
    matrices : array-like of shape (n_classes, n_classes) or (m, n_classes, n_classes)
        Rows sum to one. One matrix serves any number of workers; m matrices serve a multiple
        of m, in turn.

    Examples
    --------
    >>> import numpy as np
    >>> population = FixedConfusion([[0.9, 0.1], [0.4, 0.6]])
    >>> population.sample(2, 2, np.random.default_rng(0))[1].tolist()
    [[0.9, 0.1], [0.4, 0.6]]
    """

    kind: ClassVar[str] = "fixed"
    matrices: Floats

    def __init__(self, matrices: npt.ArrayLike) -> None:
        given = np.array(matrices, dtype=np.float64)
        if given.ndim == 2:
            given = given[None]
        if given.ndim != 3 or given.shape[1] != given.shape[2] or given.size == 0:
            raise ParameterError(
                "`matrices` must have shape (n_classes, n_classes) or (m, n_classes, n_classes), "
                f"but its shape is {np.shape(matrices)}."
            )
        bad = ~(np.abs(given.sum(axis=2) - 1.0) <= 1e-9) | ~(given >= 0).all(axis=2)
        if bad.any():
            worker, row = (int(index) for index in np.argwhere(bad)[0])
            raise ParameterError(f"Row {row} of matrix {worker} is not a probability vector.")
        given.flags.writeable = False
        object.__setattr__(self, "matrices", given)

    def __repr__(self) -> str:
        count, size, _ = self.matrices.shape
        return f"FixedConfusion({count} given, {size} classes)"

    def sample(self, n_workers: int, n_classes: int, rng: np.random.Generator) -> Floats:
        """Repeat the given matrices; shape (n_workers, n_classes, n_classes)."""
        given, size, _ = self.matrices.shape
        if size != n_classes:
            raise ParameterError(f"`matrices` have {size} classes, but there are {n_classes}.")
        if n_workers % given:
            raise ParameterError(f"{given} matrices cannot be shared out to {n_workers} workers.")
        return np.tile(self.matrices, (n_workers // given, 1, 1))
