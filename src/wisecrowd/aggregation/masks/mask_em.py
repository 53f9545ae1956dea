"""MaskEM: pixels as tasks, with two error rates per worker that all images share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from wisecrowd.core.aggregator import Tags
from wisecrowd.core.mask_answers import MaskAnswers
from wisecrowd.core.parameter_checks import check_number
from wisecrowd.core.result import Fit
from wisecrowd.core.saved_attributes import Saved, SavedArray, number_between
from wisecrowd.families.mask_method import MaskMethod, MaskProblem, WorkerMasks, answers_of
from wisecrowd.families.mask_smoothing import smoothed_answers
from wisecrowd.families.pixel_coins import PixelCoins, PixelRates
from wisecrowd.inference.mask_patterns import MaskPatterns


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
        Pixels inside, and the expected intersection over union with the truth.
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

    def _axis_sizes(self, sizes: Mapping[str, int]) -> dict[str, int]:
        return {"workers": sizes["J"] + 1}  # the last is an unknown worker

    def _validate_parameters(self) -> None:
        super()._validate_parameters()
        check_number("dependence", self.dependence, 0.0, 1.0)
        check_number("smoothing", self.smoothing, 0.0, 100.0)

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
