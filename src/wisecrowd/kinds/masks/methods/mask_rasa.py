"""MaskRasa: a weighted vote of pixels; weights go by the overlap with the consensus."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from wisecrowd.core.parameter_checks import Limits, Number
from wisecrowd.core.result import Fit
from wisecrowd.core.saved_attributes import Saved, SavedArray
from wisecrowd.core.types import Floats
from wisecrowd.kinds.masks.answers import MaskAnswers
from wisecrowd.kinds.masks.methods.base import (
    MaskMethod,
    MaskProblem,
    WorkerMasks,
    answers_of,
    overlaps,
    smoothed_share,
)
from wisecrowd.kinds.masks.methods.patterns import MaskPatterns

PSEUDO_DISTANCE = 0.1  # added to a worker's distances: nobody is known to be perfect


@dataclass(eq=False, repr=False, kw_only=True)
class MaskRasa(MaskMethod):
    r"""Weighted vote of pixels, with a weight per worker by the overlap with the consensus.

    .. math::
        w_j = \frac{\chi^2_{\alpha/2, n_j}}
        {\sum_{e \in j} (1 - \mathrm{IoU}(y_e, \hat z_{i_e})) + 0.1}

    The consensus is the weighted vote, and both alternate. The quantile of the chi-squared
    distribution with the worker's number of masks lowers the weight of workers with few masks.

    Use it when workers differ in skill and a weight per worker is wanted; it is a baseline for
    MaskEM. Cost per iteration: O(patterns × workers of an image).

    Parameters
    ----------
    alpha : float
        Significance level of the quantile.
    max_iter : int
    tol : float
        The iterations stop when no probability of a pixel changes by more.

    Attributes
    ----------
    worker_weight_ : (n_workers + 1,)
        Relative weight of each worker, with mean 1; the last is that of an unknown worker.
    mask_runs_, n_runs_, area_, confidence_
        See MaskVote.

    Notes
    -----
    The sum of distances has 0.1 added, so that a worker with few masks who agrees with the
    consensus does not overrule all others. Probabilities of pixels are weighted votes with a vote
    more each way, so that few workers give no certainty.

    References
    ----------
    J. Li (2019). A dataset of crowdsourced word sequences: collections and answer aggregation for
    ground truth creation. AnnoNLP, 24-28.

    Examples
    --------
    >>> import numpy as np
    >>> masks = [np.eye(3), np.eye(3), np.ones((3, 3))]
    >>> fitted = MaskRasa().fit((["image"] * 3, ["ann", "bob", "cem"], masks))
    >>> bool(fitted.worker_weight_[0] > fitted.worker_weight_[2])
    True
    """

    alpha: float = 0.05
    max_iter: int = 30
    tol: float = 1e-6

    saves: ClassVar[dict[str, Saved]] = {"worker_weight_": SavedArray("workers", "positive")}

    limits: ClassVar[Limits] = {"alpha": Number(1e-06, 1.0)}

    def _axis_sizes(self, sizes: Mapping[str, int]) -> dict[str, int]:
        return {"workers": sizes["J"] + 1}

    def _fit(self, problem: MaskProblem) -> Fit:
        patterns = MaskPatterns.of(problem.data)
        values, weight = patterns.share, np.ones(problem.data.n_workers)
        n_iter, converged = 0, False
        while n_iter < self.max_iter and not converged:
            weight = self._weights(patterns, values)
            moved = weighted_vote(patterns, weight)
            converged = bool(np.abs(moved - values).max(initial=0.0) <= self.tol)
            values, n_iter = moved, n_iter + 1
        worth = WorkerMasks.of(patterns, values)
        return Fit(
            _answers(patterns, weight),
            worth.accuracy,
            worth.error,
            n_iter=n_iter,
            converged=converged,
            extra={"worker_weight": np.append(weight, 1.0), **worth.published},
        )

    def _weights(self, patterns: MaskPatterns, values: Floats) -> Floats:
        """Return the weight of each worker, with mean 1 over the workers with labels."""
        from scipy.stats import chi2

        data, given = patterns.data, patterns.data.weights
        iou, _ = overlaps(patterns, values)
        labels = np.bincount(data.worker, given, data.n_workers)
        distance = np.bincount(data.worker, given * (1 - iou), data.n_workers)
        known = labels > 0
        weight = np.ones(data.n_workers)
        if np.count_nonzero(known) == 2:  # nobody can say which of two is nearer to the truth
            return weight
        quantile = chi2.ppf(self.alpha / 2, labels[known])
        weight[known] = quantile / (distance[known] + PSEUDO_DISTANCE)
        weight[known] = np.maximum(weight[known] / weight[known].mean(), 1e-12)
        return weight

    def _predict(self, problem: MaskProblem) -> MaskAnswers:
        return _answers(MaskPatterns.of(problem.data), self.worker_weight_)


def _answers(patterns: MaskPatterns, weight: Floats) -> MaskAnswers:
    return answers_of(patterns, smoothed_share(*_weighted_votes(patterns, weight)))


def weighted_vote(patterns: MaskPatterns, weight: Floats) -> Floats:
    """Return the share of the workers' weights that covers each pattern."""
    votes, total = _weighted_votes(patterns, weight)
    return np.asarray(votes / np.maximum(total, 1e-300))


def _weighted_votes(patterns: MaskPatterns, weight: Floats) -> tuple[Floats, Floats]:
    """Return the workers' weights that cover each pattern, and all of its image."""
    weight = weight[: patterns.data.n_workers]
    return patterns.sums(weight, np.zeros(len(weight))), patterns.sums(weight, weight)
