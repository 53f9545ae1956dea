"""MaskMethod: base of the methods for masks, and how workers compare with the answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from wisecrowd.core.aggregator import Aggregator
from wisecrowd.core.exceptions import DataError
from wisecrowd.core.ids.encoding import lookup
from wisecrowd.core.memory_check import require_memory
from wisecrowd.core.messages.descriptions import suggestion
from wisecrowd.core.problem import Problem
from wisecrowd.core.result import TIE
from wisecrowd.core.types import Floats
from wisecrowd.kinds.masks.answers import MaskAnswers
from wisecrowd.kinds.masks.container import CrowdMasks
from wisecrowd.kinds.masks.methods.patterns import MaskPatterns, sums_by

MaskProblem = Problem[CrowdMasks, None]


@dataclass(eq=False, repr=False, kw_only=True)
class MaskMethod(Aggregator):
    """Base of the methods for masks."""

    takes: ClassVar[str] = "masks"

    def pixel_probabilities(self, task: Any) -> Floats:
        """Return the probability of every pixel of one task to be inside, (height, width)."""
        self._require_fitted()
        row = int(lookup([task], self.tasks_)[0])
        if row < 0:
            raise DataError(
                f"Task {task!r}{suggestion(task, self.tasks_)} was not in the fit; give one of "
                "tasks_."
            )
        end = int(self.n_soft_[: row + 1].sum())
        own = slice(end - int(self.n_soft_[row]), end)
        height, width = int(self.height_[row]), int(self.width_[row])
        require_memory(
            24 * height * width, f"The probabilities of {height} × {width} pixels would",
            "use soft_value_, which has one number per run",
        )  # fmt: skip
        size, probas = self.soft_length_[own], np.zeros(height * width)
        place = np.repeat(self.soft_start_[own] - (np.cumsum(size) - size), size)
        probas[place + np.arange(len(place))] = np.repeat(self.soft_value_[own], size)
        return probas.reshape((height, width), order="F")


def answers_of(patterns: MaskPatterns, values: Floats) -> MaskAnswers:
    """Return the answers whose probabilities are those of the patterns."""
    data, inside = patterns.data, values >= 0.5 - TIE
    iou = mean_overlap(patterns, patterns.pixels * inside)
    return MaskAnswers(
        data.height, data.width, patterns.runs, values[patterns.pattern], patterns.empty, iou
    )


def smoothed_share(votes: Floats, total: Floats) -> Floats:
    """Return (v + 1) / (n + 2): a few workers who agree are not certain."""
    return np.asarray((votes + 1.0) / (total + 2.0))


def mean_overlap(patterns: MaskPatterns, chosen: Floats) -> Floats:
    """Return the mean intersection over union of an image's masks with the answer, (n_tasks,).

    Parameters
    ----------
    patterns : MaskPatterns
    chosen : (n_patterns,)
        Pixels of each pattern that the answer has.
    """
    iou, _ = _overlaps(patterns, chosen)
    total = sums_by(patterns.data.task, patterns.data.weights * iou, patterns.data.n_tasks)
    mean = np.where(patterns.votes > 0, total / np.maximum(patterns.votes, 1e-300), 0.5)
    return np.clip(mean, 0.0, 1.0)


def overlaps(patterns: MaskPatterns, values: Floats) -> tuple[Floats, Floats]:
    """Return the intersection over union of each annotation with the answers, and their areas.

    Parameters
    ----------
    patterns : MaskPatterns
    values : (n_patterns,)
        Probabilities of the patterns.

    Returns
    -------
    iou, area : (n_annotations,), (n_tasks,)
    """
    return _overlaps(patterns, patterns.pixels * (values >= 0.5 - TIE))


def _overlaps(patterns: MaskPatterns, chosen: Floats) -> tuple[Floats, Floats]:
    """Return what :func:`overlaps` does, from the pixels of each pattern that are chosen."""
    data, area = patterns.data, patterns.of_images(chosen)
    both = patterns.of_annotations(chosen)
    union = data.area + area[data.task] - both
    return np.where(union > 0, both / np.maximum(union, 1), 1.0), area


@dataclass(frozen=True, eq=False)
class WorkerMasks:
    """How the masks of each worker compare with the answers.

    Attributes
    ----------
    accuracy, error : (n_workers,)
        Expected share of right pixels in the region, and its standard error over images.
    published : dict
        Sensitivity, specificity, overlap and ratio of areas, by name.
    """

    accuracy: Floats
    error: Floats
    published: dict[str, Floats]

    @classmethod
    def of(cls, patterns: MaskPatterns, values: Floats) -> WorkerMasks:
        """Return the comparison with the probabilities of the patterns."""
        data, n = patterns.data, patterns.data.n_workers
        size = patterns.pixels
        hit, missed = patterns.by_worker(size * values)
        false, right = patterns.by_worker(size * (1 - values))
        total = np.maximum(hit + missed + false + right, 1e-300)
        accuracy = np.where(hit + missed + false + right > 0, (hit + right) / total, 0.5)
        iou, area = overlaps(patterns, values)
        weight = patterns.data.weights
        labels, same, own, answered = (
            sums_by(data.worker, weight * value, n)
            for value in (np.ones(len(iou)), iou, data.area, area[data.task])
        )
        return cls(
            np.clip(accuracy, 0, 1),
            _error(patterns, values, accuracy, total),
            {
                "sensitivity": _ratio(hit, hit + missed),
                "specificity": _ratio(right, right + false),
                "worker_iou": _ratio(same, labels),
                "area_ratio": np.where(own + answered > 0, own / np.maximum(answered, 1.0), 1.0),
            },
        )


def _ratio(part: Floats, whole: Floats) -> Floats:
    """Return shares; one half where nothing is known."""
    return np.clip(np.where(whole > 0, part / np.maximum(whole, 1e-300), 0.5), 0, 1)


def _error(patterns: MaskPatterns, values: Floats, accuracy: Floats, total: Floats) -> Floats:
    """Return the standard error over images; pixels of one image are not independent."""
    data = patterns.data
    inside, outside = patterns.pixels * values, patterns.pixels * (1 - values)
    hit = patterns.of_annotations(inside)
    region = patterns.of_images(patterns.pixels)[data.task]
    absent = patterns.of_images(outside)[data.task]
    right = hit + absent - patterns.of_annotations(outside)
    excess = (right - accuracy[data.worker] * region) * patterns.data.weights
    images = np.bincount(data.worker, region > 0, data.n_workers)
    spread = np.sqrt(np.bincount(data.worker, excess**2, data.n_workers)) / total
    # One image shows no spread: the error is then as large as that of one coin toss.
    alone = np.sqrt(accuracy * (1 - accuracy))
    factor = np.sqrt(images / np.maximum(images - 1, 1))
    return np.where(images > 1, np.minimum(spread * factor, 0.5), alone)
