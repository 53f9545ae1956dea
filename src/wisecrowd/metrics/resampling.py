"""Bootstrap intervals from sums: resampling tasks is one matrix product per block of replicates."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from wisecrowd.core.parameter_checks import as_generator, check_integer, check_number
from wisecrowd.metrics._inputs import FloatArray

_BLOCK = 2_000_000  # numbers in one block of replicates: some MB whatever the size of the crowd


class Interval(NamedTuple):
    """An estimate and its confidence interval: numbers, or arrays of equal shape."""

    value: FloatArray
    low: FloatArray
    high: FloatArray


@dataclass(frozen=True)
class Bootstrap:
    """How an interval is made.

    Attributes
    ----------
    n_replicates : int
        0 makes no interval: both ends are NaN.
    level : float
        Probability that the interval should cover.
    random_state : int, Generator or None
    """

    n_replicates: int = 1000
    level: float = 0.95
    random_state: Any = 0

    def __post_init__(self) -> None:
        check_integer("n_replicates", self.n_replicates, 0)
        check_number("level", self.level, 0.0, 1.0)


NO_BOOTSTRAP = Bootstrap(n_replicates=0)


def replicates(
    repeats: npt.NDArray[np.integer[Any]], n_replicates: int, width: int, rng: np.random.Generator
) -> Iterator[FloatArray]:
    r"""Yield blocks (B, P) of how often each of P patterns occurs in a bootstrap replicate.

    A pattern that stands for :math:`n_p` equal tasks occurs :math:`Poisson(n_p)` times: the sum of
    the Poisson(1) weights of its tasks. For ratios of sums, such as all measures here, this is the
    bootstrap over tasks; equal tasks cost no more than one.

    Parameters
    ----------
    repeats : (P,) int
        How many tasks have each pattern.
    n_replicates : int
    width : int
        Numbers per replicate that the caller will make; blocks are kept small accordingly.
    rng : numpy.random.Generator

    References
    ----------
    N. Chamandy, O. Muralidharan, A. Najmi, S. Naidu (2012). Estimating uncertainty for massive
    data streams. Google technical report.
    """
    size = max(1, _BLOCK // max(width, len(repeats), 1))
    for start in range(0, n_replicates, size):
        shape = (min(size, n_replicates - start), len(repeats))
        yield rng.poisson(repeats, size=shape).astype(np.float64)


def interval_of(
    statistic: Callable[[FloatArray], FloatArray],
    repeats: npt.NDArray[np.integer[Any]],
    bootstrap: Bootstrap,
    width: int = 1,
) -> Interval:
    """Return the percentile bootstrap interval of a statistic of weighted sums.

    Parameters
    ----------
    statistic : function from (B, P) weights of the patterns to (B, ...) values
    repeats, width
        See :func:`replicates`.
    bootstrap : Bootstrap

    Examples
    --------
    >>> x = np.array([1.0, 2.0, 3.0])
    >>> found = interval_of(
    ...     lambda times: times @ x / times.sum(axis=1), np.array([50, 100, 50]), Bootstrap()
    ... )
    >>> float(found.value), bool(1.85 < found.low < 1.95), bool(2.05 < found.high < 2.15)
    (2.0, True, True)
    """
    rng = as_generator(bootstrap.random_state)
    with np.errstate(divide="ignore", invalid="ignore"):
        value = statistic(np.asarray(repeats, dtype=np.float64)[None, :])[0]
        blocks = replicates(repeats, bootstrap.n_replicates, width, rng)
        drawn = [statistic(times) for times in blocks]
    if not drawn:
        return Interval(value, np.full_like(value, np.nan), np.full_like(value, np.nan))
    ends = np.array([1 - bootstrap.level, 1 + bootstrap.level]) / 2
    low, high = _quantiles(np.concatenate(drawn), ends)
    return Interval(value, low, high)


def _quantiles(drawn: FloatArray, at: FloatArray) -> FloatArray:
    """Quantiles (2, ...) over the replicates in which the statistic is defined; NaN if in none."""
    ordered = np.sort(drawn, axis=0)  # NaN goes to the end
    n_defined = np.count_nonzero(~np.isnan(ordered), axis=0)
    place = at.reshape(-1, *np.ones(drawn.ndim - 1, dtype=int)) * np.maximum(n_defined - 1, 0)
    below = np.floor(place).astype(np.intp)
    above = np.minimum(below + 1, np.maximum(n_defined - 1, 0))
    first = np.take_along_axis(ordered, below, axis=0)
    second = np.take_along_axis(ordered, above, axis=0)
    return np.asarray(first + (place - below) * (second - first))
