"""MaskEM: pixels as tasks, with two error rates per worker that all images share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.aggregator import Tags
from wisecrowd.core.memory_check import require_memory
from wisecrowd.core.messages.option_spelling import parameter
from wisecrowd.core.parameter_checks import Limits, Number
from wisecrowd.core.result import TIE, Fit
from wisecrowd.core.saved_attributes import Saved, SavedArray, number_between
from wisecrowd.core.types import Floats
from wisecrowd.kinds.masks.answers import MaskAnswers
from wisecrowd.kinds.masks.methods.base import (
    MaskMethod,
    MaskProblem,
    WorkerMasks,
    answers_of,
    mean_overlap,
)
from wisecrowd.kinds.masks.methods.patterns import MaskPatterns
from wisecrowd.kinds.masks.run_lengths import Runs

INSIDE, OUTSIDE = 0.9, 0.1  # prior means of the rates
PRIOR_IMAGES = 1.0  # number of typical images that a prior weighs as
_LEAST = 1e-12
SWEEPS, DAMPING = 20, 0.5
DIGITS = 3  # probabilities are rounded, so that runs stay long


@dataclass(eq=False, repr=False, kw_only=True)
class MaskEM(MaskMethod):
    r"""Two-coin model of pixels, with workers shared over all images.

    .. math::
        P(z_x = 1) = \pi, \quad P(y_{jx} = 1 \mid z_x = 1) = s_j, \quad
        P(y_{jx} = 1 \mid z_x = 0) = f_j

    for the pixels :math:`x` of the union of an image's masks and a rim around it: 15% of the radius
    of a disc of their mean area, at least 3 pixels. Worker :math:`j` covers a pixel inside with
    probability :math:`s_j` and one outside with :math:`f_j`, in all images. The rates have beta
    priors with means 0.9 and 0.1 that weigh as one typical image. EM maximises the posterior, with
    an exponent of the likelihood because masks of an image are dependent. Pixels that the same
    workers cover have the same probability, so they are one row with a weight.

    Use it when workers mark several images each; it is the default. With one image per worker it
    has little to learn workers from. Cost per iteration: O(patterns × workers of an image), which
    does not depend on the number of pixels. Memory: O(runs); images are never expanded.

    Parameters
    ----------
    dependence : float
        Correlation of an image's masks: n of them count as n / (1 + dependence (n - 1)), because
        workers draw the same border and draw it as a whole. With 0 this is plain EM, as if pixels
        were independent tasks. The default was chosen on simulated crowds.
    smoothing : float
        Strength of a Potts prior on the four neighbours of a pixel; 0 for none. Each neighbour
        adds up to this to the log-odds of a pixel. It acts on the answers, not on the rates, and
        images are expanded one at a time.
    max_iter : int
    tol : float
        The iterations stop when no rate changes by more.

    Attributes
    ----------
    mask_runs_, n_runs_ : (n_runs,), (n_tasks,)
        Run lengths of the masks, one after the other, and their number per task.
    area_, confidence_ : (n_tasks,)
        Pixels inside, and the expected intersection over union (IoU) with the truth: the mean of
        what the probabilities of pixels say and ``mask_iou_``.
    mask_iou_ : (n_tasks,)
        Mean IoU of the workers' masks with the answer.
    soft_start_, soft_length_, soft_value_, n_soft_ : (n_soft,), ..., (n_tasks,)
        Probabilities of pixels as runs; :meth:`pixel_probabilities` expands those of one task.
    inside_rate_, outside_rate_ : (n_workers + 1,)
        Rates at which workers cover pixels inside and outside; the last is an unknown worker.
    pixel_prior_ : float
        Share of the pixels of the regions that are inside.
    worker_accuracy_, sensitivity_, specificity_, worker_iou_, area_ratio_ : (n_workers,)
        Share of right pixels in the region; share of the pixels inside that are covered, and of
        those outside that are not; mean overlap with the answers; area relative to them.
    history_ : tuple of float
        Penalised log-likelihood, with its exponent, in every iteration.

    Notes
    -----
    Errors of neighbouring pixels are not independent, because a border is drawn as a whole. Rates
    are therefore shrunk by an image and not by a few pixels, and standard errors are over images.

    The confidence is a guess. On boxes of pedestrians as masks it is nearer to the IoU with the
    truth than the probabilities of pixels alone; where borders are independent, it is too low. No
    crowd of real masks was at hand.

    References
    ----------
    D. Jung-Lin Lee, A. Das Sarma and A. Parameswaran (2018). Aggregating crowdsourced image
    segmentations. CEUR Workshop Proceedings 2173.

    S. K. Warfield, K. H. Zou and W. M. Wells (2004). Simultaneous truth and performance level
    estimation (STAPLE). IEEE Transactions on Medical Imaging 23, 903-921, for the model.

    Examples
    --------
    >>> import numpy as np
    >>> masks = [np.eye(3), np.eye(3), np.ones((3, 3))]
    >>> fitted = MaskEM().fit((["image"] * 3, ["ann", "bob", "cem"], masks))
    >>> fitted.area_
    array([3])
    >>> fitted.pixel_probabilities("image").shape
    (3, 3)
    """

    dependence: float = 0.2
    smoothing: float = 0.0
    max_iter: int = 100
    tol: float = 1e-4

    promises: ClassVar[Tags] = Tags(monotone=True, likelihood=True)
    saves: ClassVar[dict[str, Saved]] = {
        "inside_rate_": SavedArray("workers", "probability"),
        "outside_rate_": SavedArray("workers", "probability"),
        "pixel_prior_": number_between(0.0, 1.0),
    }

    limits: ClassVar[Limits] = {"dependence": Number(0.0, 1.0), "smoothing": Number(0.0, 100.0)}

    def _axis_sizes(self, sizes: Mapping[str, int]) -> dict[str, int]:
        return {"workers": sizes["J"] + 1}  # the last is an unknown worker

    def _fit(self, problem: MaskProblem) -> Fit:
        patterns = MaskPatterns.of(problem.data)
        model = PixelCoins.of(patterns, self.dependence)
        run = model.run(self.max_iter, self.tol)
        worth = WorkerMasks.of(patterns, model.posterior(run.rates))
        rates = model.with_stranger(run.rates)
        return Fit(
            self._answers(patterns, rates),
            worth.accuracy,
            worth.error,
            n_iter=run.n_iter,
            converged=run.converged,
            history=run.history,
            extra={
                "inside_rate": rates.inside,
                "outside_rate": rates.outside,
                "pixel_prior": rates.prior,
                **worth.published,
            },
        )

    def _answers(self, patterns: MaskPatterns, rates: PixelRates) -> MaskAnswers:
        model = PixelCoins.of(patterns, self.dependence)
        if self.smoothing == 0:
            return answers_of(patterns, model.posterior(rates))
        return smoothed_answers(patterns, model.log_odds(rates), self.smoothing)

    def _fitted(self) -> PixelRates:
        return PixelRates(self.inside_rate_, self.outside_rate_, self.pixel_prior_)

    def _predict(self, problem: MaskProblem) -> MaskAnswers:
        return self._answers(MaskPatterns.of(problem.data), self._fitted())

    def _log_likelihood(self, problem: MaskProblem) -> float:
        return PixelCoins.of(MaskPatterns.of(problem.data)).log_likelihood(self._fitted())


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
        log_prior = np.log(rates.prior) + np.log1p(-rates.prior)
        for own, mean in ((rates.inside, INSIDE), (rates.outside, OUTSIDE)):
            log_density = mean * np.log(own) + (1 - mean) * np.log1p(-own)
            log_prior += self.strength * log_density.sum()
        return float(self.patterns.pixels @ soft + log_prior)

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


def smoothed_answers(patterns: MaskPatterns, log_odds: Floats, strength: float) -> MaskAnswers:
    """Return answers by mean field, one image at a time.

    Parameters
    ----------
    patterns : MaskPatterns
    log_odds : (n_patterns,)
        Log-odds of the pixels of each pattern, without their neighbours.
    strength : float
        Each neighbour adds ``strength * (2 p - 1)`` to the log-odds of a pixel.
    """
    data, runs = patterns.data, patterns.runs
    ends = np.searchsorted(runs.image, np.arange(data.n_tasks + 1))
    parts, values, chosen = [], [], np.zeros(len(patterns.task))
    for i in range(data.n_tasks):
        own = slice(int(ends[i]), int(ends[i + 1]))
        start, size = runs.start[own], (runs.end - runs.start)[own]
        if not len(start):
            continue
        _require_room(int(size.sum()))
        place = np.repeat(start - (np.cumsum(size) - size), size) + np.arange(int(size.sum()))
        pattern = np.repeat(patterns.pattern[own], size)
        given = log_odds[pattern]
        found = np.round(mean_field(place, given, int(data.height[i]), strength), DIGITS)
        np.add.at(chosen, pattern, found >= 0.5 - TIE)
        new = np.append(True, (np.diff(place) > 1) | (np.diff(found) != 0))
        first = np.flatnonzero(new)
        last = np.append(first[1:], len(place)) - 1
        parts.append(Runs(np.full(len(first), i), place[first], place[last] + 1))
        values.append(found[first])
    joined = Runs(*(np.concatenate([np.zeros(0, np.int64), *part])
                    for part in (zip(*parts, strict=True) if parts else ((), (), ()))))  # fmt: skip
    value = np.concatenate([np.zeros(0), *values])
    iou = mean_overlap(patterns, chosen)
    return MaskAnswers(data.height, data.width, joined, value, patterns.empty, iou)


def mean_field(place: NDArray[np.int64], log_odds: Floats, height: int, strength: float) -> Floats:
    """Return the probabilities of some pixels; all others are outside.

    All pixels move at once and half of the way, so that the result does not depend on their order.
    Mean field overstates what neighbours add to each other's evidence, so the log-odds that it
    ends with are divided by ``1 + 2 * strength``.
    """
    row, column = place % height, place // height
    row, column = row - row.min() + 1, column - column.min() + 1
    _require_room(int(row.max() + 2) * int(column.max() + 2))
    sign = np.full((int(row.max()) + 2, int(column.max()) + 2), -1.0)  # 2 p - 1, with a frame
    sign[row, column] = np.tanh(0.5 * log_odds)
    for _ in range(SWEEPS):
        moved = np.tanh(0.5 * (log_odds + strength * _around(sign)[row - 1, column - 1]))
        sign[row, column] += DAMPING * (moved - sign[row, column])
    total = log_odds + strength * _around(sign)[row - 1, column - 1]
    return sigmoid(total / (1 + 2 * strength))


def _require_room(pixels: int) -> None:
    require_memory(
        100 * pixels, f"Smoothing of {pixels} pixels would", f"use {parameter('smoothing', 0)}"
    )


def _around(sign: Floats) -> Floats:
    """Return the sums over the four neighbours of the pixels within the frame."""
    return sign[:-2, 1:-1] + sign[2:, 1:-1] + sign[1:-1, :-2] + sign[1:-1, 2:]
