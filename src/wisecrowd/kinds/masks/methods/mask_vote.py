"""MaskVote: the pixels that at least half of the workers cover."""

from __future__ import annotations

from dataclasses import dataclass

from wisecrowd.core.result import Fit
from wisecrowd.kinds.masks.answers import MaskAnswers
from wisecrowd.kinds.masks.methods.base import (
    MaskMethod,
    MaskProblem,
    WorkerMasks,
    answers_of,
    smoothed_share,
)
from wisecrowd.kinds.masks.methods.patterns import MaskPatterns


@dataclass(eq=False, repr=False, kw_only=True)
class MaskVote(MaskMethod):
    r"""Majority vote of the pixels.

    .. math::
        p_x = \frac{1 + \sum_e w_e y_{ex}}{2 + \sum_e w_e}, \qquad x \text{ inside if } p_x \ge 1/2

    over the annotations :math:`e` of the image, with :math:`y_{ex} = 1` if mask :math:`e` covers
    pixel :math:`x`. A tie counts as inside, as in other tools.

    Use it when workers are equally good, or as the baseline. Cost: O(runs log runs); images are
    never expanded.

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
    worker_accuracy_, sensitivity_, specificity_, worker_iou_, area_ratio_ : (n_workers,)
        Share of right pixels in the region; share of the pixels inside that are covered, and of
        those outside that are not; mean overlap with the answers; area relative to them.

    Notes
    -----
    Probabilities are shares of votes, with a vote more each way, so that one worker gives no
    certainty. They say little about how probable a pixel is.

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
        return Fit(_answers(patterns), worth.accuracy, worth.error, extra=worth.published)

    def _predict(self, problem: MaskProblem) -> MaskAnswers:
        return _answers(MaskPatterns.of(problem.data))


def _answers(patterns: MaskPatterns) -> MaskAnswers:
    total = patterns.votes[patterns.task]
    return answers_of(patterns, smoothed_share(patterns.share * total, total))
