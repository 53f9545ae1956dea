r"""The normal model of numbers given a regression, and its estimate for regressions without one.

.. math:: y_e = s_j z_i + b_j + \epsilon_e, \qquad \epsilon_e \sim N(0, \sigma_j^2), \qquad
          z_i \sim N(f(x_i), \tau^2)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.numbers import CrowdNumbers

Floats = NDArray[np.float64]
LEAST = 1e-12  # least variance, as a share of the variance of all numbers
PSEUDO_PAIRS = 1.0  # pairs of labels with the noise of the crowd that each worker starts with
MAX_ITER, TOL = 500, 1e-8


@dataclass(frozen=True, eq=False)
class NumberModel:
    r"""Workers, and the variance of the truth around a regression.

    Attributes
    ----------
    slope, bias, noise : (J,)
        :math:`s_j, b_j, \sigma_j`.
    variance : float
        :math:`\tau^2`.
    """

    slope: Floats
    bias: Floats
    noise: Floats
    variance: float

    def posterior(self, predicted: Floats, numbers: CrowdNumbers) -> tuple[Floats, Floats]:
        """Return (N,) means and variances of the truth, given f(x), (N,), and numbers.

        Examples
        --------
        >>> one = CrowdNumbers.from_arrays([0], [0], [3.0])
        >>> model = NumberModel(np.ones(1), np.ones(1), np.ones(1), 1.0)
        >>> model.posterior(np.zeros(1), one)
        (array([1.]), array([0.5]))
        """
        slope, noise = self.slope[numbers.worker], self.noise[numbers.worker]
        each = numbers.weights * slope / noise**2
        size = len(predicted)
        precision = 1 / self.variance + np.bincount(numbers.task, each * slope, size)
        total = predicted / self.variance + np.bincount(
            numbers.task, each * (numbers.value - self.bias[numbers.worker]), size
        )
        return total / precision, 1 / precision

    def log_density(self, predicted: Floats, numbers: CrowdNumbers) -> Floats:
        """Return (E,) log densities of numbers, each given f(x) alone."""
        slope = self.slope[numbers.worker]
        variance = slope**2 * self.variance + self.noise[numbers.worker] ** 2
        error = numbers.value - slope * predicted[numbers.task] - self.bias[numbers.worker]
        return np.asarray(-0.5 * (np.log(2 * np.pi * variance) + error**2 / variance))


def least_variance(numbers: CrowdNumbers) -> float:
    """Return the floor of variances, in the units of the numbers."""
    pooled = float(np.cov(numbers.value, aweights=numbers.weights, bias=True))
    return LEAST * pooled if pooled > 0 else LEAST


def fit_noise(predicted: Floats, numbers: CrowdNumbers, slope: Floats, bias: Floats) -> NumberModel:
    r"""Estimate :math:`\sigma_j` and :math:`\tau^2` by EM, for a regression with known workers.

    Parameters
    ----------
    predicted : (N,)
        :math:`f(x)`.
    numbers : CrowdNumbers
    slope, bias : (J,)
    """
    floor, weight, j = least_variance(numbers), numbers.weights, numbers.worker
    labelled = np.bincount(numbers.task, weight, len(predicted)) > 0
    count = np.bincount(j, weight, numbers.n_workers)
    error = numbers.value - slope[j] * predicted[numbers.task] - bias[j]
    start = max(float(np.average(error**2, weights=weight)) / 2, floor)
    square, variance = np.full(numbers.n_workers, start), start
    for _ in range(MAX_ITER):
        model = NumberModel(slope, bias, np.sqrt(square), variance)
        mean, spread = model.posterior(predicted, numbers)
        residual = (numbers.value - slope[j] * mean[numbers.task] - bias[j]) ** 2
        residual += slope[j] ** 2 * spread[numbers.task]
        total = np.bincount(j, weight * residual, numbers.n_workers)
        typical = 1 / np.mean(1 / square[count > 0])  # harmonic: good workers set the scale
        new = (total + 2 * PSEUDO_PAIRS * typical) / (count + 2 * PSEUDO_PAIRS)
        new, before = np.maximum(new, floor), (square, variance)
        gap = ((mean - predicted) ** 2 + spread)[labelled]
        square, variance = new, max(float(gap.mean()), floor)
        moved = np.abs(np.log(square / before[0])).max(), abs(np.log(variance / before[1]))
        if max(moved) < TOL:
            break
    return NumberModel(slope, bias, np.sqrt(square), variance)
