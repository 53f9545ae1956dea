"""Differences of two shares on the same questions: tests, intervals, several tests at once."""

from __future__ import annotations

import numpy as np

from wisecrowd.core.types import Floats, Ints, Mask
from wisecrowd.truth.annotator_test import clustered_means


def mcnemar(first: Ints, second: Ints) -> Floats:
    """Return mid-p values of McNemar's test.

    Parameters
    ----------
    first, second : arrays of int
        Questions where only the one is right, and where only the other is.

    References
    ----------
    M. W. Fagerland, S. Lydersen, P. Laake (2013). The McNemar test for binary matched-pairs data:
    mid-p and asymptotic are better than exact conditional. BMC Medical Research Methodology 13, 91.

    Examples
    --------
    >>> mcnemar(np.array([1, 3]), np.array([8, 3])).round(4).tolist()
    [0.0215, 1.0]
    """
    from scipy.special import bdtr

    n = np.asarray(first) + second
    k = np.minimum(first, second)
    at_most = bdtr(k, n, 0.5)
    fewer = np.where(k > 0, bdtr(np.maximum(k - 1, 0), n, 0.5), 0.0)
    return np.where(first == second, 1.0, np.minimum(at_most + fewer, 1.0))


def agresti_min(first: Ints, second: Ints, n: Ints, level: float = 0.95) -> tuple[Floats, Floats]:
    """Return the interval of the difference of two shares on the same n questions.

    It is Wald's interval after half a question is added to each cell of the table.

    Parameters
    ----------
    first, second : arrays of int
        Questions where only the one is right, and where only the other is.
    n : array of int
    level : float

    References
    ----------
    A. Agresti, Y. Min (2005). Simple improved confidence intervals for comparing matched
    proportions. Statistics in Medicine 24(5), 729-740.

    Examples
    --------
    >>> low, high = agresti_min(np.array([12]), np.array([5]), np.array([100]))
    >>> low.round(4).tolist(), high.round(4).tolist()
    ([-0.0118], [0.1491])
    """
    from scipy.special import ndtri

    one, other, total = first + 0.5, second + 0.5, n + 2.0
    centre = (one - other) / total
    spread = np.sqrt(np.maximum(one + other - (one - other) ** 2 / total, 0.0)) / total
    reach = float(ndtri((1 + level) / 2)) * spread
    return np.clip(centre - reach, -1, 1), np.clip(centre + reach, -1, 1)


def holm(p: Floats) -> Floats:
    """Return p-values adjusted for several tests by Holm's procedure.

    Examples
    --------
    >>> holm(np.array([0.01, 0.04, 0.03])).tolist()
    [0.03, 0.06, 0.06]
    """
    order = np.argsort(p)
    steps = p[order] * np.arange(len(p), 0, -1)
    adjusted = np.empty(len(p))
    adjusted[order] = np.minimum(np.maximum.accumulate(steps), 1.0)
    return adjusted


def mean_interval(
    values: Floats, cluster: Ints | None = None, level: float = 0.95
) -> tuple[float, float, float, float]:
    """Return a mean, its t-interval and the two-sided p-value that it is 0, robust to clusters.

    Examples
    --------
    >>> [round(x, 3) for x in mean_interval(np.array([0.0, 1.0, 2.0]))]
    [1.0, -1.484, 3.484, 0.225]
    """
    from scipy.special import stdtr, stdtrit

    group = np.zeros(len(values), dtype=np.int64)
    means = clustered_means(values, group, 1, None if cluster is None else cluster.astype(np.int64))
    mean, error, df = float(means.mean[0]), float(means.error[0]), float(means.df[0])
    if not df > 0:
        return mean, np.nan, np.nan, np.nan
    if error == 0:
        return mean, mean, mean, float(mean == 0)
    reach = float(stdtrit(df, (1 + level) / 2)) * error
    return mean, mean - reach, mean + reach, float(2 * stdtr(df, -abs(mean) / error))


def paired_difference(
    first: Mask, second: Mask, cluster: Ints | None = None, level: float = 0.95
) -> tuple[float, float, float, float]:
    """Return the difference of two shares on the same questions, its interval and its p-value.

    Without clusters they are those of Agresti and Min and of McNemar; with clusters the questions
    of one depend on each other, and both come from Student's distribution.

    Examples
    --------
    >>> right = np.array([True, True, True, False]), np.array([True, False, True, False])
    >>> [round(x, 3) for x in paired_difference(*right)]
    [0.25, -0.276, 0.609, 0.5]
    """
    if not len(first):
        return np.nan, np.nan, np.nan, np.nan
    if cluster is not None:
        return mean_interval(first.astype(np.float64) - second, cluster, level)
    counts = ((first & ~second).sum(), (second & ~first).sum(), len(first))
    b, c, n = (np.array([count]) for count in counts)
    found = ((b - c) / n, *agresti_min(b, c, n, level), mcnemar(b, c))
    value, low, high, p = (float(one[0]) for one in found)
    return value, low, high, p
