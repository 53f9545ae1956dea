"""MaskVote: the pixels that at least half of the workers cover."""

from __future__ import annotations

from dataclasses import dataclass

from wisecrowd.core.mask_answers import MaskAnswers
from wisecrowd.core.result import Fit
from wisecrowd.families.mask_method import MaskMethod, MaskProblem, WorkerMasks, answers_of
from wisecrowd.inference.mask_patterns import MaskPatterns


@dataclass(eq=False, repr=False, kw_only=True)
class MaskVote(MaskMethod):
    r"""Majority vote of the pixels.

    .. math::
        p_x = \frac{\sum_e w_e y_{ex}}{\sum_e w_e}, \qquad x \text{ inside if } p_x \ge 1/2

    over the annotations :math:`e` of the image, with :math:`y_{ex} = 1` if mask :math:`e` covers
    pixel :math:`x`. A tie counts as inside, as in other tools.

    Use it when workers are equally good, or as the baseline. Cost: O(runs log runs); images are
    never expanded.

    Attributes
    ----------
    mask_runs_, n_runs_ : (n_runs,), (n_tasks,)
        Run lengths of the masks, one after the other, and their number per task.
    area_, confidence_ : (n_tasks,)
        Pixels inside, and the expected intersection over union with the truth.
    soft_start_, soft_length_, soft_value_, n_soft_ : (n_soft,), ..., (n_tasks,)
        Probabilities of pixels as runs; :meth:`pixel_probabilities` expands those of one task.
    worker_accuracy_, sensitivity_, specificity_, worker_iou_, area_ratio_ : (n_workers,)
        Share of right pixels in the region; share of the pixels inside that are covered, and of
        those outside that are not; mean overlap with the answers; area relative to them.

    Notes
    -----
    Probabilities are shares of votes, which say little about how probable a pixel is.

    References
    ----------
    D. Jung-Lin Lee, A. Das Sarma and A. Parameswaran (2018). Aggregating crowdsourced image
    segmentations. CEUR Workshop Proceedings 2173.

    Examples
    --------
    >>> import numpy as np
    >>> masks = [np.eye(3), np.eye(3), np.ones((3, 3))]
    >>> MaskVote().fit((["image"] * 3, ["ann", "bob", "cem"], masks)).area_
    array([3])
    """

    def _fit(self, problem: MaskProblem) -> Fit:
        patterns = MaskPatterns.of(problem.data)
        worth = WorkerMasks.of(patterns, patterns.share)
        answers = answers_of(patterns, patterns.share)
        return Fit(answers, worth.accuracy, worth.error, extra=worth.published)

    def _predict(self, problem: MaskProblem) -> MaskAnswers:
        patterns = MaskPatterns.of(problem.data)
        return answers_of(patterns, patterns.share)
