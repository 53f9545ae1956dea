"""Mean, variance and limits of the noise of all numbers, in memory or as sums over a pack."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.numbers import CrowdNumbers
from wisecrowd.engines.packed_numbers import NumberFacts, PackedNumbers

Floats = NDArray[np.float64]

CONSTANT_FROM = 5  # labels from which a worker can be constant, and their share of the variance
CONSTANT_SHARE = 1e-4
NORMAL_WIDTH = 1.3489795003921634  # distance between the quartiles of a standard normal
UNKNOWN_SHARE = 0.5  # share of the variance that is noise if no task has two labels
LEAST_VARIANCE = 1e-12  # smallest variance, as a share of that of all labels, or absolute


def overall_mean(data: CrowdNumbers | PackedNumbers) -> float:
    """Return the weighted mean of all labels, 0 without labels."""
    if isinstance(data, PackedNumbers):
        return known_facts(data).mean
    if data.n_annotations == 0 or (data.weight is not None and not data.weight.any()):
        return 0.0
    return float(np.average(data.value, weights=data.weight))


def overall_variance(data: CrowdNumbers | PackedNumbers) -> float:
    """Return the weighted variance of all labels, 0 without labels."""
    if isinstance(data, PackedNumbers):
        return known_facts(data).variance
    if data.n_annotations == 0 or (data.weight is not None and not data.weight.any()):
        return 0.0
    return float(np.average((data.value - overall_mean(data)) ** 2, weights=data.weight))


def known_facts(data: PackedNumbers) -> NumberFacts:
    """Return the sums over a pack, which a fit computes first."""
    if data.facts is None:
        raise TypeError("The numbers of the pack have not been surveyed.")
    return data.facts


def has_different_scales(data: CrowdNumbers | PackedNumbers) -> bool:
    """Return whether the survey of a pack found workers who use different scales."""
    return isinstance(data, PackedNumbers) and known_facts(data).scales is not None


def least_variance(data: CrowdNumbers | PackedNumbers) -> float:
    """Return the floor of all variances: a share of the variance of the labels, or absolute."""
    return floor_of(overall_variance(data))


def floor_of(variance: float) -> float:
    """Return the floor of all variances, of labels with this variance."""
    return LEAST_VARIANCE * (variance or 1.0)


def robust_spread(data: CrowdNumbers) -> float:
    """Return the variance of all labels by their quartiles, which single labels cannot change.

    It is the plain variance if half of the labels are equal.
    """
    order = np.argsort(data.value, kind="stable")
    value, total = data.value[order], np.cumsum(data.weights[order])
    if not len(total) or not total[-1] > 0:
        return overall_variance(data)

    def quantiles(targets: Floats) -> Floats:
        return np.asarray(value[np.minimum(np.searchsorted(total, targets), len(total) - 1)])

    return quartile_variance(float(total[-1]), quantiles, overall_variance(data))


def quartile_variance(
    total: float, quantiles: Callable[[Floats], Floats], variance: float
) -> float:
    """Return the variance of a normal with these quartiles; ``variance`` if they are equal.

    ``quantiles`` returns the labels up to which the weight is at least a target. Both neighbours
    of a quartile count, so that signs do not matter.
    """
    near = np.array([1 - 1e-12, 1 + 1e-12])
    found = quantiles(np.concatenate([total * 0.25 * near, total * 0.75 * near]))
    width = float(found[2:].mean() - found[:2].mean()) / NORMAL_WIDTH
    return width**2 if width > 0 else variance


def least_noise(data: CrowdNumbers | PackedNumbers) -> Floats:
    """Return the smallest noise (n_workers,): the variance of all labels for constant workers.

    A worker is constant who gave at least ``CONSTANT_FROM`` labels whose variance is below
    ``CONSTANT_SHARE`` of that of all labels. Others have the floor of variances.
    """
    if isinstance(data, PackedNumbers):
        return known_facts(data).least_noise
    count = data.labels_per_worker
    n = np.maximum(count, 1)
    away = data.value - overall_mean(data)
    mean = np.bincount(data.worker, away, data.n_workers) / n
    spread = np.bincount(data.worker, (away - mean[data.worker]) ** 2, data.n_workers) / n
    return noise_limits(count, spread, robust_spread(data), overall_variance(data))


def noise_limits(count: NDArray[Any], spread: Floats, usual: float, variance: float) -> Floats:
    """Return the smallest noise (n_workers,) from number and variance of each worker's labels.

    ``usual`` is the robust variance of all labels, ``variance`` the plain one.
    """
    floor = floor_of(variance)
    constant = (count >= CONSTANT_FROM) & (spread < CONSTANT_SHARE * usual)
    return np.where(constant, max(variance, floor), floor)
