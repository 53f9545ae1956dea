"""PixelCoins: two-coin model of the pixels of masks, on patterns of pixels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from wisecrowd.inference.mask_patterns import MaskPatterns

Floats = NDArray[np.float64]

INSIDE, OUTSIDE = 0.9, 0.1  # prior means of the rates
PRIOR_IMAGES = 1.0  # number of typical images that a prior weighs as
_LEAST = 1e-12


class PixelRates(NamedTuple):
    """Rates at which workers cover pixels inside and outside, and the share of those inside."""

    inside: Floats
    outside: Floats
    prior: float


class PixelRun(NamedTuple):
    """Result of the iterations."""

    rates: PixelRates
    n_iter: int
    converged: bool
    history: tuple[float, ...]


@dataclass(frozen=True, eq=False)
class PixelCoins:
    """The model of some masks.

    Attributes
    ----------
    patterns : MaskPatterns
    strength : float
        Pseudo-counts of each rate: half of the pixels of a typical region.
    power : (n_patterns,)
        Exponent of the likelihood, at most 1: n dependent masks count as fewer.
    """

    patterns: MaskPatterns
    strength: float
    power: Floats

    @classmethod
    def of(cls, patterns: MaskPatterns, dependence: float = 0.0) -> PixelCoins:
        """Return the model, with priors in units of a typical image.

        Parameters
        ----------
        patterns : MaskPatterns
        dependence : float
            n masks of an image count as n / (1 + dependence (n - 1)).
        """
        seen = patterns.of_images(patterns.pixels) @ patterns.votes
        typical = float(seen) / max(float(patterns.votes.sum()), _LEAST)
        n = np.maximum(patterns.votes[patterns.task], 1.0)
        power = 1 / (1 + dependence * (n - 1))
        return cls(patterns, PRIOR_IMAGES * max(0.5 * typical, 1.0), power)

    def run(self, max_iter: int, tol: float) -> PixelRun:
        """Alternate posteriors and rates, from the votes."""
        rates = self._rates(self.patterns.share)
        history: list[float] = []
        converged = False
        while len(history) < max_iter and not converged:
            history.append(self._objective(rates))
            moved = self._rates(self.posterior(rates))
            change = max(float(np.abs(a - b).max(initial=0.0)) for a, b in
                         zip(moved[:2], rates[:2], strict=True))  # fmt: skip
            converged = max(change, abs(moved.prior - rates.prior)) <= tol
            rates = moved
        return PixelRun(rates, len(history), converged, tuple(history))

    def _rates(self, posterior: Floats) -> PixelRates:
        """Return the rates that maximise the expected penalised log-likelihood (M-step)."""
        size = self.patterns.pixels
        hit, missed = self.patterns.by_worker(size * posterior)
        false, right = self.patterns.by_worker(size * (1 - posterior))
        prior = (float(size @ posterior) + 1) / (float(size.sum()) + 2)
        return PixelRates(
            (hit + self.strength * INSIDE) / (hit + missed + self.strength),
            (false + self.strength * OUTSIDE) / (false + right + self.strength),
            prior,
        )

    def _log_prior(self, rates: PixelRates) -> float:
        inside = INSIDE * np.log(rates.inside) + (1 - INSIDE) * np.log1p(-rates.inside)
        outside = OUTSIDE * np.log(rates.outside) + (1 - OUTSIDE) * np.log1p(-rates.outside)
        share = np.log(rates.prior) + np.log1p(-rates.prior)
        return float(self.strength * (inside.sum() + outside.sum()) + share)

    def _log_joint(self, rates: PixelRates) -> tuple[Floats, Floats]:
        """Return the log-probability of each pattern with pixels inside, and outside."""
        n = self.patterns.data.n_workers
        inside, outside = rates.inside[:n], rates.outside[:n]
        return (
            np.log(rates.prior) + self.patterns.sums(np.log(inside), np.log1p(-inside)),
            np.log1p(-rates.prior) + self.patterns.sums(np.log(outside), np.log1p(-outside)),
        )

    def log_odds(self, rates: PixelRates) -> Floats:
        """Return the log-odds of each pattern to be inside; dependent masks count for less."""
        inside, outside = self._log_joint(rates)
        return self.power * (inside - outside)

    def posterior(self, rates: PixelRates) -> Floats:
        """Return the probability of each pattern to be inside (E-step)."""
        return sigmoid(self.log_odds(rates))

    def log_likelihood(self, rates: PixelRates) -> float:
        """Return the log-likelihood of all pixels of the regions, as if masks were independent."""
        return float(self.patterns.pixels @ np.logaddexp(*self._log_joint(rates)))

    def _objective(self, rates: PixelRates) -> float:
        """Return the penalised log-likelihood with its exponent, which the iterations climb."""
        inside, outside = self._log_joint(rates)
        soft = np.logaddexp(self.power * inside, self.power * outside) / self.power
        return float(self.patterns.pixels @ soft) + self._log_prior(rates)

    def with_stranger(self, rates: PixelRates) -> PixelRates:
        """Return the rates with those of an unknown worker at the end: the mean of all."""
        known = self.patterns.data.labels_per_worker > 0
        inside, outside = (float(one[known].mean()) for one in rates[:2])
        return PixelRates(
            np.append(rates.inside, inside), np.append(rates.outside, outside), rates.prior
        )


def sigmoid(log_odds: Floats) -> Floats:
    """Return probabilities of log-odds, without overflow."""
    return np.asarray(0.5 * (1 + np.tanh(0.5 * log_odds)))
