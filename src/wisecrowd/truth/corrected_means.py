r"""Means of what a person would say, from few known answers and predictions for all tasks.

With :math:`y` the known answers, :math:`f` the predictions of a fit that has not seen them, and
:math:`W_h` the share of stratum h among all tasks, the prediction-powered mean is

.. math:: \sum_h W_h (\bar y_h - \lambda \bar f_h) + \lambda \bar f

The slope :math:`\lambda` minimises its variance. It is 0 where predictions say nothing, and then
the mean is that of the known answers alone, so that wrong predictions cannot bias it.

References
----------
A. N. Angelopoulos, J. C. Duchi, T. Zrnic (2023). PPI++: Efficient prediction-powered inference.
arXiv 2311.01453.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from wisecrowd.core.types import Floats, Longs, Mask
from wisecrowd.truth.intervals import wilson_interval

TINY = 1e-12  # a variance below is 0


@dataclass(frozen=True, eq=False)
class KnownSample:
    """Known answers, and how their tasks were drawn.

    Attributes
    ----------
    y, f : (n, M)
        Answers and predictions, one column per quantity.
    stratum, group : (n,)
        Codes. A row is in one group; means are estimated for each.
    drawn, sizes : (H,)
        Tasks of each stratum with an answer, in whatever group, and all tasks.
    n_groups : int
    cluster : (n,), optional
        Rows that may err together, such as the tasks of one text.
    """

    y: Floats
    f: Floats
    stratum: Longs
    group: Longs
    drawn: Longs
    sizes: Longs
    n_groups: int = 1
    cluster: Longs | None = None

    @cached_property
    def weight(self) -> Floats:
        """(n,) tasks that each row stands for."""
        return (self.sizes / np.maximum(self.drawn, 1))[self.stratum]

    @cached_property
    def mass(self) -> Floats:
        """(n_groups,) tasks that the rows of each group stand for."""
        return np.bincount(self.group, self.weight, self.n_groups).astype(np.float64)

    @cached_property
    def count(self) -> Floats:
        """(n_groups,) rows of each group."""
        return np.bincount(self.group, minlength=self.n_groups).astype(np.float64)

    @cached_property
    def cells(self) -> tuple[Longs, Longs, Longs]:
        """Cell of each row, and group and stratum of the cells, which have rows each."""
        key, cell = np.unique(self.group * len(self.sizes) + self.stratum, return_inverse=True)
        group, stratum = np.divmod(key, len(self.sizes))
        return cell.ravel().astype(np.int64), group, stratum

    def means(self, values: Floats) -> Floats:
        """Return the weighted means (n_groups, M) of values (n, M)."""
        total = _sums(self.group, self.weight[:, None] * values, self.n_groups)
        return total / np.where(self.mass > 0, self.mass, 1.0)[:, None]

    def centred(self, values: Floats) -> Floats:
        """Return values (n, M) minus the means of their groups."""
        return np.asarray(values - self.means(values)[self.group])

    def unseen(self) -> Floats:
        """Return the share of tasks without an answer (H,)."""
        return 1 - self.drawn / np.maximum(self.sizes, 1)

    def covariance(self, a: Floats, b: Floats, *, clustered: bool = True) -> Floats:
        """Return the covariances (n_groups, M) of the means of centred values (n, M)."""
        if clustered and self.cluster is not None:
            return self._clustered(a, b)
        cell, group, stratum = self.cells
        n = self.drawn[stratum].astype(np.float64)
        first, second = (_sums(cell, one, len(group)) for one in (a, b))
        both = _sums(cell, a * b, len(group))
        within = (both - first * second / n[:, None]) / np.maximum(n - 1, 1)[:, None]
        size = self.sizes[stratum] ** 2 * self.unseen()[stratum] / n
        total = _sums(group, size[:, None] * within, self.n_groups)
        found = total / np.where(self.mass > 0, self.mass, 1.0)[:, None] ** 2
        return np.asarray(found * self._small()[:, None])

    def _small(self) -> Floats:
        """Return the correction (n_groups,) of variances of groups with few rows; 1 for one group.

        A group has lost a degree of freedom to its own mean, not to those of the strata.
        """
        _, group, stratum = self.cells
        pool = np.bincount(group, self.drawn[stratum], self.n_groups)
        own, all_drawn = np.maximum(self.count, 2), np.maximum(pool, 2)
        return np.asarray((own / (own - 1)) / (all_drawn / (all_drawn - 1)))

    def _clustered(self, a: Floats, b: Floats) -> Floats:
        place, of = self.clusters
        weight = self.weight[:, None]
        both = _sums(place, weight * a, len(of)) * _sums(place, weight * b, len(of))
        mass = np.where(self.mass > 0, self.mass, 1.0)
        n = np.bincount(of, minlength=self.n_groups)
        factor = (1 - self.count / mass) * n / np.maximum(n - 1, 1) / mass**2
        return np.asarray(_sums(of, both, self.n_groups) * factor[:, None])

    @cached_property
    def clusters(self) -> tuple[Longs, Longs]:
        """Cluster of each row, each in one group, and the group of every cluster."""
        assert self.cluster is not None
        width = int(self.cluster.max(initial=0)) + 1
        key, place = np.unique(self.group * width + self.cluster, return_inverse=True)
        return place.ravel().astype(np.int64), key // width

    def freedom(self) -> Floats:
        """Return the degrees of freedom (n_groups,) of a variance without a slope."""
        if self.cluster is not None:
            n = np.bincount(self.clusters[1], minlength=self.n_groups)
            return np.asarray(n - 1.0)
        return np.asarray(self.count - np.bincount(self.cells[1], minlength=self.n_groups))

    def design_size(self) -> Floats:
        r"""Return how many tasks of a simple random sample would say as much (n_groups, M).

        With :math:`p_h` the share of stratum h, smoothed by two observations,

        .. math:: \frac{B (1 - B)}{\sum_h W_h^2 (1 - n_h / N_h) p_h (1 - p_h) / (n_h - 1)},
                  \qquad B = \sum_h W_h p_h

        Groups that share a stratum have Kish's size.
        """
        cell, group, stratum = self.cells
        n = np.bincount(cell).astype(np.float64)
        unseen = self.unseen()[stratum]
        share = np.bincount(cell, self.weight) / np.where(self.mass > 0, self.mass, 1.0)[group]
        p = (_sums(cell, self.y, len(n)) + 1) / (n + 2)[:, None]
        spread = (share**2 * unseen / np.maximum(n - 1, 1))[:, None] * p * (1 - p)
        mean = _sums(group, share[:, None] * p, self.n_groups)
        variance = _sums(group, spread, self.n_groups)
        with np.errstate(divide="ignore"):
            own = mean * (1 - mean) / variance
            kish = 1 / np.bincount(group, share**2 * unseen / n, self.n_groups)
        shared = np.bincount(group, n < self.drawn[stratum], self.n_groups) > 0
        return np.asarray(np.where(shared[:, None], kish[:, None], own))


def _sums(code: Longs, values: Floats, size: int) -> Floats:
    """Return the sums (size, M) of values (n, M) by code."""
    found = np.empty((size, values.shape[1]))
    for m in range(values.shape[1]):
        found[:, m] = np.bincount(code, values[:, m], size)
    return found


def slope_of(sample: KnownSample, variance_f: Floats | None = None) -> float:
    """Return the slope that minimises the sum of all variances, between 0 and 1.

    Parameters
    ----------
    sample : KnownSample
    variance_f : (n_groups, M), optional
        Variances of the predictions of all tasks, for groups that are strata of their own; by
        default those of the known tasks.

    Examples
    --------
    >>> f = np.array([[0.0], [1.0], [2.0], [3.0]])
    >>> nothing = np.zeros(4, dtype=np.int64)
    >>> one = np.array([4]), np.array([100])
    >>> slope_of(KnownSample(0.5 * f + 7, f, nothing, nothing, *one))
    0.5
    """
    y, f = sample.centred(sample.y), sample.centred(sample.f)
    above, below = sample.covariance(y, f), sample.covariance(f, f)
    if variance_f is not None and sample.cluster is None:
        n = np.maximum(sample.count, 1)
        above = above * ((n - 1) / n)[:, None]  # as in the authors' program, for a smaller slope
        below = variance_f * ((1 - n / np.maximum(sample.mass, 1)) / n)[:, None]
    total = float(below.sum())
    if total <= TINY:
        return 0.0
    return float(np.clip(above.sum() / total, 0.0, 1.0))


class CorrectedMeans(NamedTuple):
    """Means (n_groups, M), their intervals, and the number of answers that would say as much."""

    value: Floats
    low: Floats
    high: Floats
    n_eff: Floats


def corrected_means(
    sample: KnownSample,
    mean_f: Floats,
    n_tasks: Floats,
    slope: float,
    *,
    share: bool,
    level: float = 0.95,
) -> CorrectedMeans:
    """Return means with a slope on predictions; with slope 0, of the known answers alone.

    Parameters
    ----------
    sample : KnownSample
    mean_f : (n_groups, M)
        Mean prediction over all tasks.
    n_tasks : (n_groups,)
        All tasks, known or not.
    slope : float
    share : bool
        Shares have Wilson's interval, others Student's.
    level : float

    Examples
    --------
    >>> y = np.array([[0.0], [1.0], [1.0], [1.0]])
    >>> nothing = np.zeros(4, dtype=np.int64)
    >>> sample = KnownSample(y, y, nothing, nothing, np.array([4]), np.array([1000]))
    >>> found = corrected_means(sample, np.array([[0.6]]), np.array([1000]), 1.0, share=False)
    >>> round(found.value.item(), 12), round(found.high.item(), 12)
    (0.6, 0.6)
    """
    from scipy.special import stdtrit

    y = sample.centred(sample.y)
    rest = y - slope * sample.centred(sample.f)
    value = sample.means(sample.y) + slope * (mean_f - sample.means(sample.f))
    variance = np.maximum(sample.covariance(rest, rest), 0.0)
    alone = np.maximum(sample.covariance(y, y), 0.0)
    freedom = sample.freedom() - (slope > 0)
    t = stdtrit(np.maximum(freedom, 1.0), (1 + level) / 2)[:, None]
    if share:
        return _share_means(sample, value, variance, alone, n_tasks, t)
    n_eff = sample.count[:, None] * np.where(variance > 0, alone / np.maximum(variance, TINY), 1.0)
    reach = t * np.sqrt(variance)
    return CorrectedMeans(value, value - reach, value + reach, n_eff)


def _share_means(
    sample: KnownSample, value: Floats, variance: Floats, alone: Floats, n_tasks: Floats, t: Floats
) -> CorrectedMeans:
    """Return shares with Wilson's interval, cut at what the known answers prove."""
    n = sample.count[:, None]
    unseen_error = 1 / n**2  # no zero where a rare answer has not been seen yet
    ratio = (variance + unseen_error) / (alone + unseen_error)
    ratio = np.where(constant(sample), 1.0, ratio)
    if sample.cluster is not None:
        y = sample.centred(sample.y)
        single = np.maximum(sample.covariance(y, y, clustered=False), 0.0)
        ratio = ratio * np.maximum((alone + unseen_error) / (single + unseen_error), 1.0)
    n_eff = sample.design_size() / ratio
    total = np.asarray(n_tasks, dtype=np.float64)[:, None]
    seen = _sums(sample.group, sample.y, sample.n_groups)
    least, most = seen / total, 1 - (n - seen) / total
    value = np.clip(value, least, most)
    low, high = wilson_interval(value, n_eff, t)
    low, high = np.clip(low, least, value), np.clip(high, value, most)
    return CorrectedMeans(value, low, high, n_eff)


def constant(sample: KnownSample) -> Mask:
    """Return whether all answers of a group are equal (n_groups, M)."""
    low = np.full((sample.n_groups, sample.y.shape[1]), np.inf)
    high = -low
    np.minimum.at(low, sample.group, sample.y)
    np.maximum.at(high, sample.group, sample.y)
    return np.asarray(low >= high)
