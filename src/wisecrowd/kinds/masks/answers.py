"""MaskAnswers: one mask per image, and the probability of every pixel as runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.answers import Answers, Columns, Learned
from wisecrowd.core.result import TIE
from wisecrowd.core.saved_attributes import Saved, SavedArray
from wisecrowd.core.types import Floats, Longs
from wisecrowd.kinds.classes.answers import agreement_columns
from wisecrowd.kinds.masks.metrics import known_masks, mean_iou
from wisecrowd.kinds.masks.run_lengths import Runs, counts_of_runs, joined_runs, rle_texts


@dataclass(frozen=True, eq=False)
class MaskAnswers(Answers):
    """One mask per image; pixels outside of the listed runs have the probability 0.

    Attributes
    ----------
    height, width : (n_tasks,) int64
    runs : Runs
        Intervals of pixels with the same probability, sorted by image and position.
    value : (n_runs,) float64
        Probability that the pixels of a run are inside. A tie counts as inside.
    empty : (n_tasks,) float64
        Confidence of the answer that nothing is inside.
    iou : (n_tasks,) float64
        Mean intersection over union of the workers' masks with the answer; one half without masks.
    """

    height: Longs
    width: Longs
    runs: Runs
    value: Floats
    empty: Floats
    iou: Floats

    shown: ClassVar[tuple[str, ...]] = ("mask", "area", "confidence")
    saves: ClassVar[Mapping[str, Saved]] = {
        "area_": SavedArray("N", "count"),
        "confidence_": SavedArray("N", "probability"),
        "mask_runs_": SavedArray("*", "count"),
        "n_runs_": SavedArray("N", "count"),
        "soft_start_": SavedArray("*", "count"),
        "soft_length_": SavedArray("*", "count"),
        "soft_value_": SavedArray("*", "probability"),
        "n_soft_": SavedArray("N", "count"),
        "empty_confidence_": SavedArray("N", "probability"),
        "mask_iou_": SavedArray("N", "probability"),
        "worker_accuracy_": SavedArray("J", "probability"),
        "worker_accuracy_error_": SavedArray("J", "amount"),
        "sensitivity_": SavedArray("J", "probability"),
        "specificity_": SavedArray("J", "probability"),
        "worker_iou_": SavedArray("J", "probability"),
        "area_ratio_": SavedArray("J", "amount"),
    }

    @classmethod
    def of_fit(cls, learned: Learned, rows: NDArray[np.integer[Any]]) -> Self:
        """Return the answers that a fit has published, for some of its tasks."""
        size = learned["n_soft_"]
        begin = np.cumsum(size) - size
        image = np.repeat(np.arange(len(rows)), size[rows])
        place = np.arange(len(image)) - np.repeat(np.cumsum(size[rows]) - size[rows], size[rows])
        place += begin[rows][image]
        start = learned["soft_start_"][place]
        runs = Runs(image, start, start + learned["soft_length_"][place])
        return cls(learned["height_"][rows], learned["width_"][rows], runs,
                   learned["soft_value_"][place], learned["empty_confidence_"][rows],
                   learned["mask_iou_"][rows])  # fmt: skip

    def capped(self, most: float) -> Self:
        """Return the answers without a pixel that is inside more probably than ``most``."""
        value, empty, iou = (np.minimum(part, most) for part in (self.value, self.empty, self.iou))
        return replace(self, value=value, empty=empty, iou=iou)

    def attributes(self, known: Learned) -> dict[str, Any]:
        """Return the masks as run lengths, their confidence, and the probabilities as runs."""
        n, (image, start, end) = len(self.height), self.runs
        inside, size = self.value >= 0.5 - TIE, end - start
        pixels = self.height * self.width
        chosen = joined_runs(Runs(image[inside], start[inside], end[inside]), pixels)[0]
        counts, pointer = counts_of_runs(chosen, pixels)
        area = np.bincount(image[inside], size[inside], n)
        expected = np.bincount(image, size * self.value, n)  # area of the truth
        shared = np.bincount(image[inside], (size * self.value)[inside], n)
        union = area + expected - shared
        share = shared / np.maximum(union, 1e-300)
        return {
            "area_": area.astype(np.int64),
            "confidence_": np.where(area > 0, np.clip((share + self.iou) / 2, 0, 1), self.empty),
            "mask_runs_": counts,
            "n_runs_": np.diff(pointer),
            "soft_start_": start,
            "soft_length_": size,
            "soft_value_": self.value,
            "n_soft_": np.bincount(image, minlength=n),
            "empty_confidence_": self.empty,
            "mask_iou_": self.iou,
            "height_": self.height,
            "width_": self.width,
        }

    def score(self, truth: Any, data: Any, known: Learned) -> float:
        """Return the mean intersection over union, on the tasks with a truth."""
        own = self.attributes({})
        pointer = np.append(0, np.cumsum(own["n_runs_"]))
        return mean_iou(known_masks(truth, data), own["mask_runs_"], pointer)

    @classmethod
    def task_columns(cls, learned: Learned) -> Columns:
        """Return the mask as COCO's run-length JSON, its size, area and confidence."""
        pointer = np.append(0, np.cumsum(learned["n_runs_"]))
        sizes = learned["height_"], learned["width_"]
        return {
            "mask": rle_texts(learned["mask_runs_"], pointer, *sizes),
            "height": sizes[0],
            "width": sizes[1],
            "area": learned["area_"],
            "confidence": learned["confidence_"],
        }

    @classmethod
    def main_columns(cls, learned: Learned) -> Columns:
        """Return one row per task: its mask, size, area and confidence."""
        return {"task": learned["tasks_"], **cls.task_columns(learned)}

    @classmethod
    def worker_columns(cls, learned: Learned) -> Columns:
        """Return agreement of pixels, rates inside and outside, and overlap with the answers."""
        return {
            **agreement_columns(learned),
            "sensitivity": learned["sensitivity_"],
            "specificity": learned["specificity_"],
            "iou": learned["worker_iou_"],
            "area_ratio": learned["area_ratio_"],
        }

    @classmethod
    def counts(cls, learned: Learned) -> dict[str, int]:
        """Return the number of empty masks."""
        return {"empty masks": int(np.count_nonzero(learned["area_"] == 0))}

    @classmethod
    def fault(cls, learned: Learned) -> str:
        """Describe an inconsistency between runs and sizes, or return ""."""
        pixels = learned["height_"] * learned["width_"]
        runs, starts = learned["mask_runs_"], learned["soft_start_"]
        if len(runs) != int(learned["n_runs_"].sum()):
            return "mask_runs_ does not have the runs that n_runs_ counts"
        owner = np.repeat(np.arange(len(pixels)), learned["n_runs_"])
        if not np.array_equal(np.bincount(owner, runs, len(pixels)), pixels):
            return "mask_runs_ does not add up to the sizes of the images"
        sizes = {len(learned[f"soft_{name}_"]) for name in ("start", "length", "value")}
        if sizes != {int(learned["n_soft_"].sum())}:
            return "soft_value_ does not have one entry per run"
        if (starts + learned["soft_length_"] > np.repeat(pixels, learned["n_soft_"])).any():
            return "soft_start_ and soft_length_ go beyond the image"
        return ""
