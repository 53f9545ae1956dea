r"""Coefficients of agreement as one minus observed over expected disagreement.

.. math:: 1 - \frac{D_o}{D_e}, \qquad D_o = \sum_e a_e \bar d_e

with :math:`\bar d_e` the mean distance of label e to the other labels of its task, and :math:`a_e`
its share of all labels. The coefficients differ in the distance of two classes, in whether tasks or
labels count alike, and in the disagreement :math:`D_e` that chance would make. All distances are
sums of a nominal, a linear and a quadratic part, so time is proportional to the labels (times the
logarithm of their number), whatever the number of classes, and no matrix of classes is made.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, Protocol

import numpy as np

from wisecrowd.core.agreement_evidence import Measured, sums_of, undefined
from wisecrowd.core.types import Floats, Ints, Longs, Mask

NO_VARIATION = 1e-12  # an expected disagreement below it, with distances up to 1, is rounding


@dataclass(frozen=True, eq=False)
class UnitLabels:
    """Labels of units, such as tasks.

    Attributes
    ----------
    unit : (n_labels,)
        Codes, in ascending order.
    code : (n_labels,)
        Classes.
    n_units, n_classes : int
    """

    unit: Ints
    code: Ints
    n_units: int
    n_classes: int

    @cached_property
    def size(self) -> Longs:
        """(n_units,) number of labels."""
        return np.bincount(self.unit, minlength=self.n_units)

    @cached_property
    def others(self) -> Floats:
        """(n_labels,) number of other labels of the same unit."""
        return (self.size[self.unit] - 1).astype(np.float64)

    @cached_property
    def several(self) -> Mask:
        """(n_labels,) labels of units with two or more."""
        return self.others > 0

    def total(self, values: Floats) -> Floats:
        """Return the sum of values over the labels of each unit (n_units,)."""
        return sums_of(self.unit, values, self.n_units)

    def shares(self, weight: Floats) -> Floats:
        """Return the share of each class (n_classes,) for weights of labels that add up to one."""
        return sums_of(self.code, weight, self.n_classes)


class Distance(Protocol):
    """How far two classes are from each other, between 0 and 1."""

    def to_others(self, labels: UnitLabels) -> Floats:
        """Return the sum of the distances of each label to the others of its unit."""

    def to_shares(self, shares: Floats) -> Floats:
        """Return the mean distance of each class to a label of a crowd with these shares."""


class Steps(NamedTuple):
    r"""Distance :math:`u [k \\ne l] + v |x_k - x_l| + w (x_k - x_l)^2`.

    Attributes
    ----------
    position : (n_classes,)
        Places :math:`x_k` of the classes, from 0 to 1.
    unequal, linear, square : float
        The coefficients u, v and w.

    Examples
    --------
    >>> labels = UnitLabels(np.array([0, 0, 1, 1, 1]), np.array([0, 2, 1, 1, 0]), 2, 3)
    >>> Steps(np.array([0.0, 0.5, 1.0]), linear=1.0).to_others(labels).tolist()
    [1.0, 1.0, 0.5, 0.5, 1.0]
    """

    position: Floats
    unequal: float = 0.0
    linear: float = 0.0
    square: float = 0.0

    def to_others(self, labels: UnitLabels) -> Floats:
        """Return the sum of the distances of each label to the others of its unit."""
        found = np.zeros(len(labels.unit))
        if self.unequal:
            found += self.unequal * (labels.others - _twins(labels))
        if not (self.linear or self.square):
            return found
        x = self.position[labels.code]
        mean = labels.total(x) / np.maximum(labels.size, 1)
        x = x - mean[labels.unit]  # small numbers cancel less
        if self.square:
            squares = labels.total(x**2)[labels.unit]
            found += self.square * np.where(
                labels.several, (labels.others + 1) * x**2 + squares, 0.0
            )
        if self.linear:
            found += self.linear * _absolute(labels, x)
        return found

    def to_shares(self, shares: Floats) -> Floats:
        """Return the mean distance of each class to a label of a crowd with these shares."""
        x, total = self.position, shares.sum()
        found = self.unequal * (total - shares)
        if self.square:
            centre = shares @ x / total
            spread = shares @ (x - centre) ** 2
            found = found + self.square * (total * (x - centre) ** 2 + spread)
        if self.linear:
            order = np.argsort(x, kind="stable")
            p, y = shares[order], x[order]
            below, sums = np.cumsum(p), np.cumsum(p * y)
            far = np.empty(len(x))
            far[order] = y * (2 * below - total) + sums[-1] - 2 * sums
            found = found + self.linear * far
        return np.asarray(found)


def _twins(labels: UnitLabels) -> Floats:
    """Return how many other labels of the unit are of the same class."""
    key = labels.unit.astype(np.int64) * labels.n_classes + labels.code
    if labels.n_units * labels.n_classes <= 4 * len(key):
        return np.asarray(np.bincount(key)[key] - 1, dtype=np.float64)
    _, place, count = np.unique(key, return_inverse=True, return_counts=True)
    return np.asarray(count[place.ravel()] - 1, dtype=np.float64)


def _absolute(labels: UnitLabels, x: Floats) -> Floats:
    """Return the sum of the absolute differences of each label to the others of its unit."""
    order = np.lexsort((x, labels.unit))
    start = np.cumsum(labels.size) - labels.size
    y = x[order]
    before = np.append(0.0, np.cumsum(y))
    first = start[labels.unit]  # sorted by unit, as the labels are
    size = labels.size[labels.unit]
    rank = np.arange(len(y)) - first
    below = before[np.arange(len(y))] - before[first]
    above = before[first + size] - before[1:]
    found = np.empty(len(x))
    found[order] = y * rank - below + above - y * (size - 1 - rank)
    return np.asarray(np.maximum(found, 0.0))


def nominal(n_classes: int) -> Steps:
    """Return the distance 1 between any two classes."""
    return Steps(np.zeros(n_classes), unequal=1.0)


def linear(position: Floats) -> Steps:
    """Return the absolute difference of positions, relative to the largest one."""
    return Steps(_unit_range(position), linear=1.0)


def quadratic(position: Floats) -> Steps:
    """Return the squared difference of positions, relative to the largest one."""
    return Steps(_unit_range(position), square=1.0)


def ordinal(n_classes: int) -> Steps:
    r"""Return Gwet's ordinal distance of ranks: the pairs of classes between two, relatively.

    Between ranks k and l are :math:`t (t + 1) / 2` pairs with :math:`t = |k - l|`.
    """
    widest = max(n_classes - 1, 1)
    place = np.arange(n_classes) / widest
    return Steps(place, linear=1 / (widest + 1), square=widest / (widest + 1))


def _unit_range(position: Floats) -> Floats:
    if not len(position):
        return position
    low, width = float(position.min()), float(np.ptp(position))
    return (position - low) / width if width > 0 else np.zeros(len(position))


class _Part(NamedTuple):
    """A disagreement, and the effects of each label on it, by task and by worker."""

    value: float
    of_task: Floats
    of_worker: Floats


def _observed(far: Floats, weight: Floats) -> _Part:
    """Return the mean of the distances ``far`` to the other labels, for shares of the labels."""
    value = float(weight @ far)
    effect = weight * (far - value)
    return _Part(value, effect, 2 * effect)


def _by_shares(labels: UnitLabels, weight: Floats, distance: Distance) -> _Part:
    """Return the disagreement of two labels that are drawn by the shares of the classes."""
    shares = labels.shares(weight)
    far = distance.to_shares(shares)
    value = float(shares @ far)
    effect = 2 * weight * (far[labels.code] - value)
    return _Part(value, effect, effect)


def _ratio(observed: _Part, expected: _Part, factor: float = 1.0) -> Measured:
    if not expected.value > NO_VARIATION:
        return undefined(len(observed.of_task))
    share = observed.value / expected.value
    scale = -factor / expected.value
    of_task = scale * (observed.of_task - share * expected.of_task)
    of_worker = scale * (observed.of_worker - share * expected.of_worker)
    return Measured(1 - factor * share, of_task, of_worker)


def mean_distances(labels: UnitLabels, distance: Distance) -> Floats:
    """Return the mean distance of each label to the others of its unit; 0 where there is none."""
    return distance.to_others(labels) / np.maximum(labels.others, 1)


def alpha(labels: UnitLabels, distance: Distance) -> Measured:
    r"""Krippendorff's alpha, with :math:`D_e = \frac{n}{n-1} \sum_{kl} p_k p_l d_{kl}`.

    Every label of a unit with two or more counts alike.

    Examples
    --------
    >>> labels = UnitLabels(np.repeat([0, 1, 2], 2), np.array([0, 0, 1, 1, 0, 1]), 3, 2)
    >>> round(alpha(labels, nominal(2)).value, 4)
    0.4444
    """
    n = int(labels.several.sum())
    if not n:
        return undefined(len(labels.unit))
    weight = labels.several / n
    observed = _observed(mean_distances(labels, distance), weight)
    return _ratio(observed, _by_shares(labels, weight, distance), (n - 1) / n)


def ordinal_alpha(labels: UnitLabels) -> Measured:
    r"""Krippendorff's alpha for ordered classes, whose codes are ranks.

    The distance is the squared difference of mid-ranks :math:`G_k = \sum_{l < k} p_l + p_k / 2`.
    The labels set these too, which adds
    :math:`\frac1n \sum_k \frac{\partial \alpha}{\partial G_k} ([y_e < k] + [y_e = k]/2 - G_k)` to
    the effect of label e.
    """
    n = int(labels.several.sum())
    if not n:
        return alpha(labels, nominal(labels.n_classes))
    shares = labels.shares(labels.several / n)
    place = np.cumsum(shares) - shares / 2
    found = alpha(labels, Steps(place, square=1.0))
    if np.isnan(found.value):
        return found
    expected = 2 * float(shares @ (place - 0.5) ** 2)
    x = place[labels.code]
    mean = np.where(labels.several, labels.total(x)[labels.unit] - x, 0.0)
    apart = np.where(labels.several, x - mean / np.maximum(labels.others, 1), 0.0)
    slope = 4 / n * np.bincount(labels.code, apart, labels.n_classes)
    slope -= (1 - found.value) * n / (n - 1) * 4 * shares * (place - 0.5)
    slope *= -(n - 1) / n / expected
    # By the class of the label: those above gain all of it, its own class half.
    gain = np.cumsum(slope[::-1])[::-1] - slope / 2 - slope @ place
    more = labels.several * gain[labels.code] / n
    return found._replace(of_task=found.of_task + more, of_worker=found.of_worker + more)


class Chance(NamedTuple):
    """What the coefficients that count tasks alike share.

    Attributes
    ----------
    labels : UnitLabels
    distance : Steps
    observed : _Part
    weight : (n_labels,)
        Share of each label if all tasks count alike, also those with one label.
    """

    labels: UnitLabels
    distance: Distance
    observed: _Part
    weight: Floats


def chance_of(labels: UnitLabels, distance: Distance) -> Chance:
    """Return the observed disagreement of two labels of a task, where tasks count alike."""
    size = np.maximum(labels.size, 1)[labels.unit]
    several = labels.several / size
    several = several / max(float(several.sum()), 1.0)
    observed = _observed(mean_distances(labels, distance), several)
    weight = (1 / size) / max(int((labels.size > 0).sum()), 1)
    return Chance(labels, distance, observed, weight)


def percent_agreement(chance: Chance) -> Measured:
    """Return the probability that two labels of a task agree."""
    observed = chance.observed
    return Measured(1 - observed.value, -observed.of_task, -observed.of_worker, 0.0)


def fleiss(chance: Chance) -> Measured:
    r"""Fleiss' kappa: chance draws two labels by :math:`\pi_k`, mean over tasks of the shares."""
    return _ratio(chance.observed, _by_shares(chance.labels, chance.weight, chance.distance))


def gwet(chance: Chance) -> Measured:
    r"""Gwet's AC1, or AC2 with a distance of ordered classes.

    .. math:: 1 - D_e = \frac{\sum_{kl} (1 - d_{kl})}{K (K - 1)} \sum_k \pi_k (1 - \pi_k)

    Examples
    --------
    >>> labels = UnitLabels(np.repeat([0, 1, 2], 2), np.array([0, 0, 1, 1, 0, 1]), 3, 2)
    >>> round(gwet(chance_of(labels, nominal(2))).value, 4)
    0.3333
    """
    labels, K = chance.labels, chance.labels.n_classes
    shares = labels.shares(chance.weight)
    if (shares > 0).sum() < 2:
        return undefined(len(labels.unit))
    scale = (1 - _uniform(chance.distance, K)) * K / (K - 1)
    slope = scale * (1 - 2 * shares)
    effect = -chance.weight * (slope[labels.code] - float(slope @ shares))
    expected = 1 - scale * float(shares @ (1 - shares))
    return _ratio(chance.observed, _Part(expected, effect, effect))


def brennan_prediger(chance: Chance) -> Measured:
    """Brennan and Prediger's coefficient: chance draws all classes alike."""
    if (chance.labels.shares(chance.weight) > 0).sum() < 2:
        return undefined(len(chance.weight))
    expected = _uniform(chance.distance, chance.labels.n_classes)
    nothing = np.zeros(len(chance.weight))
    return _ratio(chance.observed, _Part(expected, nothing, nothing))


def _uniform(distance: Distance, n_classes: int) -> float:
    """Return the mean distance of two classes drawn alike, also twice the same."""
    shares = np.full(n_classes, 1 / n_classes)
    return float(shares @ distance.to_shares(shares))


class ByClass(NamedTuple):
    """Agreement on each class (n_classes,), as values alone."""

    agreement: Floats
    kappa: Floats


def class_values(labels: UnitLabels) -> ByClass:
    r"""Return the agreement on each class, and beyond chance.

    The agreement on c is the probability that another label of a task is c when one is,
    :math:`A_c = o_{cc} / n_c`; beyond chance it is :math:`(A_c - p_c) / (1 - p_c)`.

    Examples
    --------
    >>> labels = UnitLabels(np.repeat([0, 1, 2], 2), np.array([0, 0, 1, 1, 0, 1]), 3, 2)
    >>> class_values(labels).agreement.round(2).tolist()
    [0.67, 0.67]
    """
    same = np.where(labels.several, 1 - mean_distances(labels, nominal(labels.n_classes)), 0.0)
    n_c = np.bincount(labels.code, labels.several, labels.n_classes)
    with np.errstate(invalid="ignore", divide="ignore"):
        agreement = np.bincount(labels.code, same, labels.n_classes) / n_c
        share = n_c / n_c.sum()
        kappa = np.where(share < 1 - NO_VARIATION, (agreement - share) / (1 - share), np.nan)
    return ByClass(agreement, kappa)


def class_coefficients(labels: UnitLabels, which: int) -> tuple[Measured, Measured]:
    r"""Return the agreement on one class, and beyond chance, each with its effects.

    A label is compared as one of class c, and as the other label of one of class c.
    """
    own = (labels.code == which) & labels.several
    n_c, n = int(own.sum()), int(labels.several.sum())
    if not n_c:
        return undefined(len(own), 0.0), undefined(len(own))
    others = np.maximum(labels.others, 1)
    partners = labels.total(own.astype(np.float64))[labels.unit] - own
    same = np.where(own, partners / others, 0.0)
    agreement, share = float(same.sum()) / n_c, n_c / n
    of_task = (same - agreement * own) / n_c
    of_worker = of_task + (own - agreement) * partners / others / n_c
    first = Measured(agreement, of_task, of_worker, 0.0)
    if share >= 1 - NO_VARIATION:
        return first, undefined(len(own))
    by_share = (agreement - 1) / (1 - share) ** 2 * labels.several * (own - share) / n
    of_task, of_worker = (one / (1 - share) + by_share for one in (of_task, of_worker))
    return first, Measured((agreement - share) / (1 - share), of_task, of_worker)
