r"""Judges who err together: correlated errors, and how many independent judges they are worth.

With S the covariance of the errors of J judges, the mean of their errors has the variance of
:math:`J_{eff}` independent judges of the same mean variance:

.. math:: J_{eff} = J \frac{\operatorname{tr} S}{\mathbf{1}^T S \mathbf{1}}
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from wisecrowd.core.types import Floats, Longs

BLOCKS = 50  # of the jackknife
FEWEST = 30  # questions that all judges answered


class Effective(NamedTuple):
    """Effective number of judges with its 95% interval, and the questions behind it."""

    value: float
    low: float
    high: float
    n_questions: int


def effective_number(errors: Floats, cluster: Longs | None = None) -> Effective:
    """Return how many independent judges some judges are worth.

    The interval is that of a jackknife over 50 blocks of questions; a cluster is in one block.
    NaN with fewer than two judges, fewer than 30 questions that all of them answered, or without
    errors.

    Parameters
    ----------
    errors : (n_questions, n_judges)
        Whether each judge errs, or by how much; NaN where unknown.
    cluster : (n_questions,), optional

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> apart = rng.random((5000, 4)) < 0.3
    >>> together = np.repeat(apart[:, :2], 2, axis=1)
    >>> [round(effective_number(x.astype(float)).value, 1) for x in (apart, together)]
    [4.1, 2.0]
    """
    from scipy.special import stdtrit

    rows = np.flatnonzero(~np.isnan(errors).any(axis=1))
    some, J = errors[rows], errors.shape[1]
    nothing = Effective(np.nan, np.nan, np.nan, len(rows))
    if J < 2 or len(rows) < FEWEST:
        return nothing
    unit = np.arange(len(rows)) if cluster is None else cluster[rows]
    named, unit = np.unique(unit, return_inverse=True)
    n_blocks = min(BLOCKS, len(named))
    block = (np.random.default_rng(0).permutation(len(named)) % n_blocks)[unit.ravel()]
    some = some - some.mean(axis=0)  # for the sake of rounding
    sums = np.stack([np.bincount(block, column, n_blocks) for column in some.T], axis=1)
    products = np.zeros((n_blocks, J, J))
    for one in range(n_blocks):
        part = some[block == one]
        products[one] = part.T @ part
    size = np.bincount(block, minlength=n_blocks).astype(np.float64)
    value = _effective(products.sum(axis=0), sums.sum(axis=0), size.sum())
    if not np.isfinite(value):
        return nothing
    without = np.array([
        _effective(products.sum(axis=0) - products[b], sums.sum(axis=0) - sums[b],
                   size.sum() - size[b])
        for b in range(n_blocks)
    ])  # fmt: skip
    without = without[np.isfinite(without)]
    if len(without) < 2:
        return Effective(value, np.nan, np.nan, len(rows))
    B = len(without)
    error = float(np.sqrt((B - 1) / B * ((without - without.mean()) ** 2).sum()))
    reach = float(stdtrit(B - 1, 0.975)) * error
    return Effective(value, max(value - reach, min(1.0, value)), value + reach, len(rows))


def _effective(products: Floats, sums: Floats, n: float) -> float:
    """Return the effective number from sums of products and sums."""
    cross = products - np.outer(sums, sums) / max(n, 1.0)
    together = float(cross.sum())
    if together <= 1e-12 * max(n, 1.0):
        return float("nan")
    return len(sums) * float(np.trace(cross)) / together


def error_correlation(first: Floats, second: Floats) -> float:
    """Return the correlation of two columns of errors, phi for errors that are 0 or 1.

    NaN if either is constant.

    Examples
    --------
    >>> round(error_correlation(np.array([1.0, 0, 1, 0]), np.array([1.0, 0, 1, 1])), 3)
    0.577
    """
    if len(first) < 2:
        return float("nan")
    x, y = first - first.mean(), second - second.mean()
    below = float(np.sqrt((x @ x) * (y @ y)))
    return float(x @ y) / below if below > 1e-12 else float("nan")
