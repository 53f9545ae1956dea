"""Statistics that several kinds of labels share, from error rates of tests to the bootstrap.

SciPy is imported when it is first needed, which keeps start-up short.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numpy.typing import NDArray

from wisecrowd.core.annotations import Annotations
from wisecrowd.core.metric_inputs import FloatArray
from wisecrowd.core.parameter_checks import as_generator, check_integer, check_number
from wisecrowd.core.types import Floats, Longs, Mask

QUANTILE = 0.8  # up to a fifth of the workers may be outliers without effect on the estimate
NORMAL_SQUARE = 1.642374  # this quantile of the square of a standard normal variable
EFFICIENCY = 0.37  # efficiency of the robust scale relative to the standard deviation


def sigmoid(x: Floats) -> Floats:
    """Return 1 / (1 + exp(-x)).

    Examples
    --------
    >>> sigmoid(np.array([0.0])).tolist()
    [0.5]
    """
    from scipy.special import expit

    return np.asarray(expit(x), dtype=np.float64)


def log_sigmoid(x: Floats) -> Floats:
    """Return the logarithm of the sigmoid, without overflow."""
    from scipy.special import log_expit

    return np.asarray(log_expit(x), dtype=np.float64)


def log_softmax_rows(*columns: Floats) -> Floats:
    """Return the logarithms (n, len(columns)) of probabilities from columns of log weights."""
    table = np.stack(np.broadcast_arrays(*columns), axis=1)
    table = table - table.max(axis=1, keepdims=True)
    return np.asarray(table - np.log(np.exp(table).sum(axis=1, keepdims=True)))


def benjamini_hochberg(p: Floats) -> Floats:
    """Return p-values adjusted for the false discovery rate (Benjamini and Hochberg).

    Examples
    --------
    >>> benjamini_hochberg(np.array([0.01, 0.04, 0.03, 0.5]))
    array([0.04      , 0.05333333, 0.05333333, 0.5       ])
    """
    order = np.argsort(p)[::-1]
    adjusted = np.minimum.accumulate(p[order] * len(p) / np.arange(len(p), 0, -1))
    result = np.empty_like(p)
    result[order] = np.minimum(adjusted, 1.0)
    return result


def robust_variance(difference: Floats, variance: Floats) -> Floats:
    """Estimate the variance between workers in addition to the sampling variance, per column.

    With it, the 80% quantile of the squared standardised differences equals that of a normal
    variable. Outliers have little effect if they are at most a fifth of the workers.

    Parameters
    ----------
    difference, variance : (n_workers, ...)
        Difference of each worker from the expectation, and its sampling variance.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> x = np.append(rng.normal(0, 2.0, 2000), np.full(100, 50.0))
    >>> bool(abs(np.sqrt(robust_variance(x, np.zeros_like(x))) - 2.0) < 0.3)
    True
    """
    low = np.zeros(difference.shape[1:])
    high = (difference**2).max(axis=0) + 1e-300
    for _ in range(60):
        middle = (low + high) / 2
        size = np.quantile(difference**2 / (variance + middle + 1e-300), QUANTILE, axis=0)
        low = np.where(size > NORMAL_SQUARE, middle, low)
        high = np.where(size > NORMAL_SQUARE, high, middle)
    return np.asarray(high)


def student_tail(z: Any, n_workers: int) -> Floats:
    """Return the one-sided p-value of z if the scale was estimated from ``n_workers``.

    The degrees of freedom of Student's t distribution account for the efficiency of the robust
    scale.

    Examples
    --------
    >>> float(student_tail(3.0, 20).round(4)), float(student_tail(3.0, 2000).round(4))
    (0.0099, 0.0014)
    """
    from scipy.special import stdtr

    return np.asarray(stdtr(max(1.0, EFFICIENCY * (n_workers - 1)), -np.asarray(z)))


def pairs_within(indptr: NDArray[np.integer[Any]]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return positions (first, second), first < second, of all pairs of rows of the same group.

    Parameters
    ----------
    indptr : (n_groups + 1,) int
        Group g has the rows ``indptr[g]`` to ``indptr[g + 1]``.

    Examples
    --------
    >>> first, second = pairs_within(np.array([0, 2, 3, 6]))
    >>> list(zip(first.tolist(), second.tolist()))
    [(0, 1), (3, 4), (3, 5), (4, 5)]
    """
    start, size = np.asarray(indptr[:-1], dtype=np.intp), np.diff(indptr)
    first, second = [np.empty(0, np.intp)], [np.empty(0, np.intp)]
    for n in np.unique(size[size >= 2]).tolist():  # groups of equal size at once
        i, j = np.triu_indices(n, 1)
        begin = start[size == n][:, None]
        first.append((begin + i).ravel())
        second.append((begin + j).ravel())
    return np.concatenate(first), np.concatenate(second)


WIDTH = 1.959963984540054  # standard errors to the ends of a 95% interval


class Following(NamedTuple):
    """Whether workers follow the others.

    Attributes
    ----------
    typical : float
        Median correlation of the workers whose correlation is significant; 0 without any.
    testable : (n_workers,) bool
        Whether a worker with the typical correlation would be at twice the critical value.
    silent, against : (n_workers,) bool
        Testable workers whose correlation is not significant; those with a negative one.
    possible : bool
        Whether any correlation is significant, or a perfect one would be at twice the critical
        value.
    """

    typical: float
    testable: Mask
    silent: Mask
    against: Mask
    possible: bool


def following(correlation: Floats, information: Floats, enough: Mask, level: float) -> Following:
    """Test whether workers follow the others, or contradict them.

    Parameters
    ----------
    correlation : (n_workers,)
        With what the others say.
    information : (n_workers,)
        Standard scores that a correlation of 1 would have.
    enough : (n_workers,) bool
        Workers who are tested.
    level : float
        Significance level, or false discovery rate of positive and of negative correlations.

    Examples
    --------
    >>> found = following(np.array([0.8, 0.7, -0.9, 0.0]), np.full(4, 20.0), np.full(4, True), 0.01)
    >>> found.silent, found.against
    (array([False, False, False,  True]), array([False, False,  True, False]))
    """
    from scipy.special import ndtr, ndtri

    critical = float(-ndtri(level / 2))
    z = correlation * information
    clear, against = (
        enough & (benjamini_hochberg(np.where(enough, ndtr(score), 1.0)) <= level)
        for score in (-z, z)
    )
    typical = float(np.median(correlation[clear])) if clear.any() else 0.0
    testable = enough & (typical * information >= 2 * critical)
    possible = bool(clear.any() or (information > 2 * critical).any())
    return Following(typical, testable, testable & (np.abs(z) <= critical), against, possible)


def one_answer(data: Annotations, code: Longs, n: Longs, fewest: int, level: float) -> Mask:
    """Return whether a worker gave one answer to all tasks where others would not have done so.

    Parameters
    ----------
    code : (n_annotations,)
        Equal for equal answers.
    n : (n_workers,)
        Answers to tasks that others answered too; those with fewer than ``fewest`` are left out.
    level : float
        Probability that anybody is named by chance.
    """
    low, high = np.full(data.n_workers, np.iinfo(np.int64).max), np.full(data.n_workers, -1)
    np.minimum.at(low, data.worker, code)
    np.maximum.at(high, data.worker, code)
    key = data.task.astype(np.int64) * (int(code.max(initial=0)) + 1) + code
    _, place, count = np.unique(key, return_inverse=True, return_counts=True)
    same = np.bincount(data.worker, count[place] - 1, data.n_workers)
    others = np.bincount(data.worker, data.labels_per_task[data.task] - 1, data.n_workers)
    chance = ((same + 0.5) / (others + 1)) ** n
    return np.asarray((high == low) & (n >= fewest) & (chance < level / max(data.n_workers, 1)))


def equal_pairs(
    first: Any, second: Any, equal: Mask, n_workers: int
) -> tuple[Longs, Longs, Longs, Longs]:
    """Count equal answers by pair of workers.

    Parameters
    ----------
    first, second : (n,)
        Workers of pairs of answers to the same task.
    equal : (n,) bool
    n_workers : int

    Returns
    -------
    low, high, n_shared, n_equal : (n_pairs,)
        Workers, and their numbers of pairs of answers and of equal ones.

    Examples
    --------
    >>> same = np.array([True, False, True])
    >>> low, high, n_shared, n_equal = equal_pairs([0, 2, 1], [2, 0, 2], same, 3)
    >>> n_shared.tolist(), n_equal.tolist()
    ([2, 1], [1, 1])
    """
    low, high = np.sort(np.stack([first, second]), axis=0).astype(np.int64)
    pair, place = np.unique(low * n_workers + high, return_inverse=True)
    n_shared = np.bincount(place, minlength=len(pair))
    n_equal = np.bincount(place, equal, len(pair)).astype(np.int64)
    return pair // n_workers, pair % n_workers, n_shared, n_equal


def as_many_by_chance(count: Any, n: Any, rate: float) -> Floats:
    """Return the probability of ``count`` events or more in n independent cases."""
    from scipy.special import bdtrc

    return np.where(count > 0, bdtrc(np.maximum(count - 1, 0), n, rate), 1.0)


FEWEST_WORKERS = 3  # of two workers, neither is a majority
NEARLY_EQUAL = 0.3  # deviation of the majority, in standard deviations of all biases
TO_DEVIATION = 1.4826  # standard deviation of a normal, in medians of the absolute deviation


def majority_level(bias: Floats) -> float | None:
    r"""Return the median bias if most biases nearly equal it and others stand apart, else None.

    Labels tell how the biases of workers differ, not where their zero is. The mean bias is 0 by
    default, so that a few lenient workers move everybody. With :math:`m` the median of the biases,

    .. math::
        1.4826 \operatorname{median}_j |b_j - m| < .3 \operatorname{sd}(b)

    says that more than half of the workers nearly agree and that others stand apart: then :math:`m`
    is the zero.

    Examples
    --------
    >>> majority_level(np.array([-0.2, -0.2, 0.4]))
    -0.2
    >>> majority_level(np.array([-0.2, 0.0, 0.3])) is None
    True
    """
    if len(bias) < FEWEST_WORKERS:
        return None
    level = float(np.median(bias))
    deviation = TO_DEVIATION * float(np.median(np.abs(bias - level)))
    return level if deviation < NEARLY_EQUAL * _deviation(bias) else None


def stands_apart(bias: Floats, level: float) -> NDArray[np.bool_]:
    """Return who is farther from a level than the standard deviation of all biases.

    Examples
    --------
    >>> stands_apart(np.array([-0.2, -0.2, 0.4]), -0.2)
    array([False, False,  True])
    """
    return np.asarray(np.abs(bias - level) > _deviation(bias))


def _deviation(bias: Floats) -> float:
    """Return the standard deviation of the biases of a population, of which these are a sample."""
    return float(np.std(bias, ddof=1))


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
