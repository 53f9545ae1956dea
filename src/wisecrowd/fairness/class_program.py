"""Linear program of decisions between several classes with rates that groups share."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.exceptions import DataError

Floats = NDArray[np.float64]
FRACTION = 1e-6


def solve_classes(table: Floats, group: NDArray[Any], epsilon: float) -> tuple[NDArray[Any], int]:
    r"""Return the class of each task, and the number of tasks that were rounded.

    .. math::
        \max_x \sum_{ik} x_{ik} q_{ik}, \quad \sum_k x_{ik} = 1, \quad
        m_k \le \frac{1}{n_a} \sum_{i \in a} x_{ik} \le m_k + \varepsilon

    for all groups a and classes k. At most as many tasks are fractional as there are active
    conditions; each takes its largest part.

    Parameters
    ----------
    table : (n, K) probabilities
    group : (n,) codes from 0
    epsilon : float

    Examples
    --------
    >>> table = np.array([[0.9, 0.1], [0.8, 0.2], [0.4, 0.6], [0.1, 0.9]])
    >>> solve_classes(table, np.array([0, 0, 1, 1]), 0.0)[0].tolist()
    [0, 1, 0, 1]
    """
    from scipy.optimize import linprog
    from scipy.sparse import coo_array, hstack, kron, vstack

    n, K = table.shape
    size = np.bincount(group)
    member = coo_array((1 / size[group], (group, np.arange(n))), shape=(len(size), n))
    rates = kron(member, np.eye(K))  # row a·K + k, column i·K + k
    lower = kron(np.ones((len(size), 1)), np.eye(K))
    below = hstack([-rates, lower])
    above = hstack([rates, -lower])
    one_each = hstack([kron(np.eye(1), kron(_identity(n), np.ones((1, K)))), coo_array((n, K))])
    found = linprog(
        -np.concatenate([table.ravel(), np.zeros(K)]),
        A_ub=vstack([below, above]).tocsr(),
        b_ub=np.concatenate([np.zeros(len(size) * K), np.full(len(size) * K, epsilon)]),
        A_eq=one_each.tocsr(),
        b_eq=np.ones(n),
        bounds=(0, 1),
        method="highs",
    )
    if found.x is None:
        raise DataError("The linear program of the decisions has no solution; raise epsilon.")
    share = found.x[: n * K].reshape(n, K)
    return share.argmax(axis=1), int((share.max(axis=1) < 1 - FRACTION).sum())


def _identity(n: int) -> Any:
    from scipy.sparse import eye_array

    return eye_array(n)
