"""Graded responses: parameters, and probabilities of ordered labels given a level."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from wisecrowd.core.types import Floats, Ints

LINKS = ("probit", "logit")
BIAS_SD, SPREAD_SD = 0.3, 0.2  # usual standard deviations of biases and log spreads
PSEUDO_WORKERS, LEAST_SD = 5.0, 0.05  # workers of usual deviation; smallest deviation
NOISE_SD = 1.0  # prior of the log spread of a typical worker, around 0
SPREADS, RATIOS = (0.15, 10.0), (0.2, 5.0)  # range of the typical spread, and relative to it
LOG_GAPS = (-12.0, 6.0)  # range of the logarithms of gaps between cuts
LEAST_LOG = -690.0  # logarithm of the smallest probability
_LOG_2PI = float(np.log(2 * np.pi))


@dataclass(frozen=True, eq=False)
class GradedParams:
    """Middle and logarithmic gaps of the cuts; worker parameters and their deviations.

    Attributes
    ----------
    middle : float
        Mean of the cuts.
    log_gaps : (max(K - 2, 0),)
    noise : float
        Log spread of a typical worker.
    bias, log_ratio : (J,)
        Bias of each worker, and log spread minus ``noise``.
    bias_sd, ratio_sd : float
        Standard deviations of their priors.
    """

    middle: float
    log_gaps: Floats
    noise: float
    bias: Floats
    log_ratio: Floats
    bias_sd: float
    ratio_sd: float

    @classmethod
    def from_totals(cls, class_totals: Floats, n_workers: int) -> GradedParams:
        """Return cuts that explain the total weight of each class (K,), and equal workers."""
        from scipy.special import ndtri

        K, nobody = len(class_totals), np.zeros(n_workers)
        share = (class_totals + 1 / K) / (class_totals.sum() + 1)
        cuts = np.sqrt(2.0) * ndtri(np.cumsum(share)[:-1])
        gaps = np.log(np.maximum(np.diff(cuts), 1e-3))
        middle = float(cuts.mean()) if K > 1 else 0.0
        return cls(middle, gaps, 0.0, nobody, nobody, BIAS_SD, SPREAD_SD)

    def cuts(self, n_classes: int) -> Floats:
        """Return the cuts (K - 1,), in increasing order."""
        places = np.concatenate([[0.0], np.cumsum(np.exp(self.log_gaps))])[: n_classes - 1]
        return np.asarray(self.middle + places - (places.mean() if len(places) else 0.0))

    @property
    def spread(self) -> Floats:
        """(J,) spread of each worker."""
        return np.asarray(np.exp(self.noise + self.log_ratio))

    def with_deviations(self, used: Ints) -> GradedParams:
        """Return standard deviations that maximise the log prior, given workers with labels."""
        sd = [
            float(np.sqrt((x @ x + PSEUDO_WORKERS * usual**2) / (len(x) + PSEUDO_WORKERS)))
            for x, usual in ((self.bias[used], BIAS_SD), (self.log_ratio[used], SPREAD_SD))
        ]
        return replace(self, bias_sd=max(sd[0], LEAST_SD), ratio_sd=max(sd[1], LEAST_SD))

    def log_prior(self, used: Ints) -> float:
        """Return the log prior density of the worker parameters, up to a constant."""
        value = -0.5 * (self.noise / NOISE_SD) ** 2
        for x, sd, usual in (
            (self.bias[used], self.bias_sd, BIAS_SD),
            (self.log_ratio[used], self.ratio_sd, SPREAD_SD),
        ):
            squares = float(x @ x) + PSEUDO_WORKERS * usual**2
            value -= 0.5 * squares / sd**2 + (len(x) + PSEUDO_WORKERS) * float(np.log(sd))
        return value

    def log_prior_slope(self) -> Floats:
        """Return the gradient of the log prior by the entries of ``path``, without deviations."""
        cuts = np.zeros(1 + len(self.log_gaps))
        workers = -self.bias / self.bias_sd**2, -self.log_ratio / self.ratio_sd**2
        return np.concatenate([cuts, [-self.noise / NOISE_SD**2], *workers])

    def limits(self) -> Floats:
        """Return the lowest and highest value of each entry of ``path``, (n, 2)."""
        n_gaps, n_workers = len(self.log_gaps), len(self.bias)
        limits = np.full((len(self.path()), 2), [-np.inf, np.inf])
        limits[1 : n_gaps + 1] = LOG_GAPS
        limits[n_gaps + 1] = np.log(SPREADS)
        limits[n_gaps + 2 + n_workers : -2] = np.log(RATIOS)
        limits[-2:, 0] = np.log(LEAST_SD)
        return limits

    def clipped(self) -> GradedParams:
        """Return the parameters inside their limits."""
        return self.at(np.clip(self.path(), *self.limits().T))

    def path(self) -> Floats:
        """Return all parameters as one vector, for extrapolation."""
        ends = np.log([self.bias_sd, self.ratio_sd])
        one = [self.middle], self.log_gaps, [self.noise], self.bias, self.log_ratio, ends
        return np.concatenate(one)

    def at(self, path: Floats) -> GradedParams:
        """Return the parameters that a vector holds."""
        sizes = np.cumsum([1, len(self.log_gaps), 1, len(self.bias), len(self.log_ratio)])
        middle, gaps, noise, bias, ratio, sd = np.split(path, sizes)
        return GradedParams(float(middle[0]), gaps, float(noise[0]), bias, ratio, *np.exp(sd))


class GradedTable(NamedTuple):
    """Log-probabilities (C, Q) of labels at levels, and derivatives by cuts, bias and log spread.

    ``d_upper`` and ``d_lower`` are those by the cut above and below the label; the former is 0 for
    the highest label, the latter for the lowest.
    """

    log_p: Floats
    d_upper: Floats
    d_lower: Floats
    d_log_spread: Floats

    @property
    def d_bias(self) -> Floats:
        """Derivative by the bias: a larger bias is like lower cuts."""
        return -(self.d_upper + self.d_lower)

    def by_cut(self, counts: Floats, label: Ints, n_classes: int) -> Floats:
        """Return the derivative of ``sum(counts * log_p)`` by each cut, (n_classes - 1,)."""
        upper = np.bincount(label, (counts * self.d_upper).sum(axis=1), n_classes)
        lower = np.bincount(label, (counts * self.d_lower).sum(axis=1), n_classes)
        return np.asarray(upper[:-1] + lower[1:])


def graded_table(
    cuts: Floats, label: Ints, bias: Floats, spread: Floats, levels: Floats, link: str
) -> GradedTable:
    r"""Return :math:`\log [F((c_l - x - b) / s) - F((c_{l-1} - x - b) / s)]` and its derivatives.

    Parameters
    ----------
    cuts : (n_classes - 1,)
    label, bias, spread : (C,)
        One label and one worker per row.
    levels : (Q,)
    link : {"probit", "logit"}

    Examples
    --------
    >>> one = np.ones(2)
    >>> table = graded_table(np.array([0.0]), np.arange(2), 0 * one, one, np.zeros(1), "probit")
    >>> np.exp(table.log_p).round(3).tolist()
    [[0.5], [0.5]]
    """
    edges = np.concatenate([[-np.inf], cuts, [np.inf]])
    centre = levels + bias[:, None]  # (C, Q)
    scale = spread[:, None]
    upper, lower = (edges[label + 1, None] - centre) / scale, (edges[label, None] - centre) / scale
    log_p = np.maximum(_log_difference(upper, lower, link), LEAST_LOG)
    at_upper = np.exp(_log_density(upper, link) - log_p)
    at_lower = np.exp(_log_density(lower, link) - log_p)
    moved = _times(upper, at_upper) - _times(lower, at_lower)
    return GradedTable(log_p, at_upper / scale, -at_lower / scale, -moved)


def _log_difference(upper: Floats, lower: Floats, link: str) -> Floats:
    """Return log(F(upper) - F(lower)), computed in the lower tail, where it is accurate."""
    flip = lower > -upper
    high, low = np.where(flip, -lower, upper), np.where(flip, -upper, lower)
    log_high, log_low = _log_cdf(high, link), _log_cdf(low, link)
    with np.errstate(divide="ignore"):
        return np.asarray(log_high + np.log(-np.expm1(np.minimum(log_low - log_high, 0.0))))


def _log_cdf(z: Floats, link: str) -> Floats:
    from scipy.special import log_expit, log_ndtr

    return np.asarray(log_ndtr(z) if link == "probit" else log_expit(z))


def _log_density(z: Floats, link: str) -> Floats:
    if link == "probit":
        return np.asarray(-0.5 * (z**2 + _LOG_2PI))
    from scipy.special import log_expit

    return np.asarray(log_expit(z) + log_expit(-z))


def _times(z: Floats, density: Floats) -> Floats:
    """Return z times a density that is 0 where z is infinite."""
    return np.multiply(z, density, out=np.zeros_like(density), where=np.isfinite(z))
