r"""Davidson's model of ties, shared by the methods with it.

.. math:: p(\text{left}, \text{right}, \text{tie}) \propto (e^{x/2}, e^{-x/2}, e^\theta)
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from wisecrowd.families.logistic import log_softmax_rows

Floats = NDArray[np.float64]

LEVEL_PRECISION = 1 / 25  # of the normal prior of θ: only data without ties feel it
SIDE_PRECISION = 1.0  # of the normal prior of a side bias that all workers share


class TieTerms(NamedTuple):
    """Log-likelihood of each row and its derivatives in x and θ, (n_rows,) each."""

    value: Floats
    to_x: Floats
    to_level: Floats


def davidson_terms(x: Floats, level: Floats, counts: Floats) -> TieTerms:
    """Return the log-likelihood of votes and its derivatives.

    Parameters
    ----------
    x : (n_rows,) log-odds of left against right
    level : (n_rows,) or a number, θ
    counts : (n_rows, 3) weight of the votes for left, right and tie

    Examples
    --------
    >>> davidson_terms(np.zeros(1), np.zeros(1), np.array([[1.0, 0, 0]])).to_x.tolist()
    [0.5]
    """
    logs = log_softmax_rows(x / 2, -x / 2, level)
    p, total = np.exp(logs), counts.sum(axis=1)
    return TieTerms(
        (counts * logs).sum(axis=1),
        0.5 * (counts[:, 0] - counts[:, 1]) - 0.5 * total * (p[:, 0] - p[:, 1]),
        counts[:, 2] - total * p[:, 2],
    )


def shared_prior(shared: Floats) -> tuple[float, Floats]:
    """Return the log prior of (θ, side bias) and its gradient; normal with mean 0."""
    precision = np.array([LEVEL_PRECISION, SIDE_PRECISION])[: len(shared)]
    return -0.5 * float(precision @ shared**2), -precision * shared


def first_level(counts: Floats) -> float:
    """Return θ for equal items, to start from."""
    ties, decided = float(counts[:, 2].sum()), float(counts[:, :2].sum())
    return float(np.log(2 * (ties + 0.5) / (decided + 0.5)))
