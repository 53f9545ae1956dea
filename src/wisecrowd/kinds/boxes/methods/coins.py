"""Two-coin model of who drew which candidate: objects by one probability, phantoms by another."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.types import Floats
from wisecrowd.kinds.boxes.methods.objects import ENOUGH, BoxObjects

DRAWN = (4.0, 1.0)  # pseudo-counts of objects that a worker draws and misses
INVENTED = (0.5, 2.0)  # pseudo-counts of phantoms that a worker draws and does not draw
DEPENDENCE = 0.3  # of votes about one object; n votes count as n / (1 + DEPENDENCE (n - 1))
LEAST = 1e-12  # probability that somebody draws a candidate of an image with annotations
REAL = 1.0  # pseudo-count of objects, and of phantoms, among the candidates
MOST_PASSES, TOLERANCE = 500, 1e-7  # passes of EM at most, and relative gain that counts as none


class Coins(NamedTuple):
    """Parameters: probability of drawing an object and a phantom (J,), and share of objects."""

    object: Floats
    phantom: Floats
    share: float


class Expected(NamedTuple):
    """Log-odds that candidates are objects (n_candidates,), and their log-likelihood."""

    log_odds: Floats
    log_likelihood: float


@dataclass(frozen=True, eq=False)
class TwoCoinExistence:
    """The two-coin model of who drew which candidate, given that somebody drew it.

    Costs per pass are those of the annotations and boxes: all who saw a task count as if they had
    not drawn any of its candidates, and every box corrects that for its own candidate.
    """

    objects: BoxObjects

    @cached_property
    def known(self) -> NDArray[np.bool_]:
        """(n_candidates,): whether somebody with a weight drew the candidate."""
        return self.objects.votes > 0

    @cached_property
    def weights(self) -> Floats:
        """(n_annotations,) weight of each annotation."""
        return self.objects.data.weights

    def expect(self, coins: Coins) -> Expected:
        """Return the posterior log-odds of candidates: the E-step."""
        prior = np.log(coins.share) - np.log1p(-coins.share)
        as_object, as_phantom = self._log_density(coins.object), self._log_density(coins.phantom)
        log_odds = prior + as_object - as_phantom
        total = np.log1p(-coins.share) + as_phantom + np.logaddexp(0.0, log_odds)
        return Expected(log_odds, float(np.sum(total[self.known])))

    def _log_density(self, rate: Floats) -> Floats:
        """Return the log-probability of who drew each candidate, given that somebody did."""
        objects, data = self.objects, self.objects.data
        change = objects.weight * (np.log(rate) - np.log1p(-rate))[data.box_worker]
        votes = np.bincount(objects.object, change, objects.n_candidates)
        nobody = self._log_nobody(rate)
        log_seen = np.log(_somebody(nobody))
        return np.asarray(nobody[objects.task] + votes - log_seen[objects.task])

    def _log_nobody(self, rate: Floats) -> Floats:
        """Return the log-probability that nobody draws a candidate of each task (n_tasks,)."""
        data = self.objects.data
        missed = self.weights * np.log1p(-rate)[data.worker]
        return np.bincount(data.task, missed, data.n_tasks).astype(np.float64)

    def update(self, probability: Floats, coins: Coins | None = None) -> Coins:
        """Return the parameters that maximise the expected objective: the M-step.

        For every candidate that was drawn with probability p there are expected to be (1 - p) / p
        that nobody drew; ``coins`` are the parameters that expect them.
        """
        rates = []
        for which, (yes, no) in enumerate((DRAWN, INVENTED)):
            count = (probability if which == 0 else 1 - probability) * self.known
            seen = np.ones(self.objects.data.n_tasks)
            if coins is not None:
                seen = _somebody(self._log_nobody(coins.object if which == 0 else coins.phantom))
            drew, saw = self._counts(count, count / seen[self.objects.task])
            rates.append((drew + yes) / (saw + yes + no))
        real, total = probability[self.known].sum(), self.known.sum()
        return Coins(rates[0], rates[1], float((real + REAL) / (total + 2 * REAL)))

    def _counts(self, count: Floats, with_unseen: Floats) -> tuple[Floats, Floats]:
        """Return how many of the expected candidates each worker drew, and how many he saw."""
        objects, data = self.objects, self.objects.data
        J = data.n_workers
        drew = np.bincount(data.box_worker, objects.weight * count[objects.object], J)
        per_task = np.bincount(objects.task, with_unseen, data.n_tasks)
        saw = np.bincount(data.worker, self.weights * per_task[data.task], J)
        return drew.astype(np.float64), saw.astype(np.float64)

    def objective(self, coins: Coins, log_likelihood: float) -> float:
        """Return the log-likelihood with the log prior densities of the parameters."""
        value = log_likelihood + REAL * (np.log(coins.share) + np.log1p(-coins.share))
        for rate, (yes, no) in ((coins.object, DRAWN), (coins.phantom, INVENTED)):
            value += float((yes * np.log(rate) + no * np.log1p(-rate)).sum())
        return float(value)


class CoinRun(NamedTuple):
    """Result of EM: parameters, objectives of all passes, and whether it converged."""

    coins: Coins
    history: tuple[float, ...]
    converged: bool


def fit_coins(objects: BoxObjects, max_iter: int = MOST_PASSES, tol: float = TOLERANCE) -> CoinRun:
    """Estimate the parameters by EM, from the shares of those who drew the candidates."""
    model = TwoCoinExistence(objects)
    probability = objects.votes / np.maximum(objects.seen, ENOUGH)
    history: list[float] = []
    coins, converged = model.update(probability), False
    while len(history) < max_iter and not converged:
        coins = model.update(probability, coins)
        found = model.expect(coins)
        probability = _logistic(found.log_odds)
        history.append(model.objective(coins, found.log_likelihood))
        gain = history[-1] - history[-2] if len(history) > 1 else np.inf
        converged = gain <= tol * max(abs(history[-1]), 1.0)
    return CoinRun(coins, tuple(history), converged)


def existence_probability(objects: BoxObjects, coins: Coins) -> Floats:
    """Return the probabilities of candidates, with votes that depend on each other."""
    effect = 1 + DEPENDENCE * (np.maximum(objects.seen, 1.0) - 1)
    return _logistic(TwoCoinExistence(objects).expect(coins).log_odds / effect)


def _somebody(log_nobody: Floats) -> Floats:
    """Return the probability that somebody draws a candidate of each task."""
    return np.maximum(-np.expm1(log_nobody), LEAST)


def _logistic(log_odds: Floats) -> Floats:
    return np.asarray(np.exp(-np.logaddexp(0.0, -log_odds)))
