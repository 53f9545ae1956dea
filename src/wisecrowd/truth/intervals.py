"""Intervals of shares: Wilson's, and of a share of which some labels are known."""

from __future__ import annotations

import numpy as np

from wisecrowd.core.types import Floats

MOST_COUNTED = 500  # unseen labels whose number of right ones is counted exactly
WORKERS_AT_ONCE = 1000
LEAST_CONCENTRATION = 1e-3  # of a Beta distribution: nearly all of it at 0 and 1


def wilson_interval(share: Floats, n: Floats, quantile: Floats | float) -> tuple[Floats, Floats]:
    """Return the ends of Wilson's interval of shares; a share of infinitely many is its own end.

    Parameters
    ----------
    share, n : arrays
        Share of successes, and the number of trials or its equivalent.
    quantile : array or float
        Of the normal or Student distribution, 1.96 for 95%.

    Examples
    --------
    >>> low, high = wilson_interval(np.array([0.5]), np.array([100.0]), 1.96)
    >>> round(float(low[0]), 3), round(float(high[0]), 3)
    (0.404, 0.596)
    """
    part = np.square(quantile) / n
    centre = (share + part / 2) / (1 + part)
    reach = np.sqrt(part * share * (1 - share) + np.square(part) / 4) / (1 + part)
    return np.clip(centre - reach, 0, 1), np.clip(centre + reach, 0, 1)


def unseen_shares(mean: Floats, variance: Floats, n: Floats, level: float) -> tuple[Floats, Floats]:
    """Return the interval of the share of right labels among ``n`` that nobody has checked.

    Their number is beta-binomial: the chance of a right label has a Beta distribution with this
    mean and variance. Beyond 500 labels the share is a Beta variable with the same two moments.

    Parameters
    ----------
    mean, variance, n : (n_workers,)
        Mean strictly between 0 and 1; at least one label each.
    level : float

    Examples
    --------
    >>> one = np.array([1.0])
    >>> [float(end[0]) for end in unseen_shares(0.5 * one, 1e-9 * one, 4 * one, 0.95)]
    [0.0, 1.0]
    """
    low, high = np.empty(len(mean)), np.empty(len(mean))
    spread = mean * (1 - mean)
    few = n <= MOST_COUNTED
    total = np.where(few, variance, variance + (spread - variance) / n)
    concentration = np.maximum(spread / np.maximum(total, 1e-12) - 1, LEAST_CONCENTRATION)
    a, b = mean * concentration, (1 - mean) * concentration
    tail = (1 - level) / 2
    for start in range(0, len(mean), WORKERS_AT_ONCE):
        some = start + np.flatnonzero(few[start : start + WORKERS_AT_ONCE])
        if len(some):
            low[some], high[some] = _counted(a[some], b[some], n[some], tail)
    if not few.all():
        from scipy.special import betaincinv

        rest = ~few
        low[rest], high[rest] = (betaincinv(a[rest], b[rest], p) for p in (tail, 1 - tail))
    return low, high


def _counted(a: Floats, b: Floats, n: Floats, tail: float) -> tuple[Floats, Floats]:
    """Return the quantiles of beta-binomial shares, from all of their probabilities."""
    from scipy.special import betaln, gammaln

    k = np.arange(int(n.max()) + 1, dtype=np.float64)[None, :]
    a, b, n = a[:, None], b[:, None], n[:, None]
    rest = np.maximum(n - k, 0.0)
    log = gammaln(n + 1) - gammaln(k + 1) - gammaln(rest + 1)
    log = log + betaln(k + a, rest + b) - betaln(a, b)
    below = np.cumsum(np.where(k <= n, np.exp(log), 0.0), axis=1)
    ends = [np.argmax(below >= share * (1 - 1e-12), axis=1) for share in (tail, 1 - tail)]
    return ends[0] / n[:, 0], np.minimum(ends[1] / n[:, 0], 1.0)
