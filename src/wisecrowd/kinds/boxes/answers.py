"""RegionAnswers: the objects of every image, and how well each worker finds and frames them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.answers import Answers, Columns, Learned
from wisecrowd.core.ids.packed_sort import ragged_places
from wisecrowd.core.saved_attributes import Saved, SavedArray
from wisecrowd.core.types import Codes, Floats, Longs
from wisecrowd.kinds.boxes.container import COORDINATES
from wisecrowd.kinds.boxes.metrics import BoxTable, box_scores, known_boxes

SIDES = ("left", "top", "right", "bottom")
PHANTOM = -1  # object of a box that is not in the consensus


@dataclass(frozen=True, eq=False)
class RegionAnswers(Answers):
    """Boxes of the objects of each task, their classes, and their confidence.

    Attributes
    ----------
    pointer : (n_tasks + 1,) int64
        Objects of task ``i`` are ``pointer[i]`` to ``pointer[i + 1]``, from left to right.
    boxes : (n_objects, 4) float64
        x, y, width and height.
    label : (n_objects,) int32
        Codes of classes.
    confidence : (n_objects,) float64
        Probability that the object exists and has this class.
    share : (n_objects,) float64
        Share of those who saw the task who drew the object.
    box_object : (n_boxes,) int64
        Object of each box of the data, -1 for a phantom; empty where the data are not at hand.
    """

    pointer: Longs
    boxes: Floats
    label: Codes
    confidence: Floats
    share: Floats
    box_object: Longs

    shown: ClassVar[tuple[str, ...]] = (*COORDINATES, "label", "confidence")
    saves: ClassVar[Mapping[str, Saved]] = {
        "boxes_": SavedArray("* 4"),
        "box_label_": SavedArray("*", "count"),
        "box_confidence_": SavedArray("*", "probability"),
        "box_share_": SavedArray("*", "probability"),
        "n_boxes_": SavedArray("N", "count"),
        "detection_rate_": SavedArray("J", "probability"),
        "detection_error_": SavedArray("J", "amount"),
        "phantoms_per_image_": SavedArray("J", "amount"),
        "worker_iou_": SavedArray("J", "probability"),
        "side_bias_": SavedArray("J 4"),
        "n_judged_": SavedArray("J", "amount"),
    }

    @classmethod
    def of_fit(cls, learned: Learned, rows: NDArray[np.integer[Any]]) -> Self:
        """Return the answers that a fit has published, for some of its tasks."""
        at, pointer = ragged_places(np.append(0, np.cumsum(learned["n_boxes_"])), rows)
        return cls(
            pointer, learned["boxes_"][at], learned["box_label_"][at],
            learned["box_confidence_"][at], learned["box_share_"][at], np.zeros(0, dtype=np.int64),
        )  # fmt: skip

    def capped(self, most: float) -> Self:
        """Return the answers without an object that is more probable than ``most``."""
        return replace(self, confidence=np.minimum(self.confidence, most))

    @property
    def task(self) -> Longs:
        """(n_objects,) the task of each object."""
        return np.repeat(np.arange(len(self.pointer) - 1), np.diff(self.pointer))

    def attributes(self, known: Learned) -> dict[str, Any]:
        """Return boxes, classes, confidence and shares of votes of objects."""
        return {
            "boxes_": self.boxes, "box_label_": self.label, "box_confidence_": self.confidence,
            "box_share_": self.share, "n_boxes_": np.diff(self.pointer),
        }  # fmt: skip

    def table(self, *, classes: bool) -> BoxTable:
        """Return the objects as a table; without classes, they match any."""
        return BoxTable(self.task, self.boxes, self.label.astype(np.int64) if classes else None)

    def score(self, truth: Any, data: Any, known: Learned) -> float:
        """Return F1 of boxes at IoU .5 on the tasks with a truth."""
        wanted = known_boxes(truth, data)
        found = wanted.part(self.table(classes=data.has_classes))
        return box_scores(wanted.table, found)["box_f1"]

    @classmethod
    def main_columns(cls, learned: Learned) -> Columns:
        """Return one row per object: task, box, class and confidence."""
        task = np.repeat(np.arange(len(learned["n_boxes_"])), learned["n_boxes_"])
        return {
            "task": learned["tasks_"][task],
            **{name: learned["boxes_"][:, k] for k, name in enumerate(COORDINATES)},
            "label": learned["classes_"][learned["box_label_"]],
            "confidence": learned["box_confidence_"],
        }

    @classmethod
    def task_columns(cls, learned: Learned) -> Columns:
        """Return the boxes of each task as lists of four numbers, their number, and confidence."""
        size = learned["n_boxes_"]
        ends = np.append(0, np.cumsum(size)).tolist()
        listed, boxes = np.empty(len(size), dtype=object), learned["boxes_"].tolist()
        for i in range(len(size)):
            listed[i] = boxes[ends[i] : ends[i + 1]]
        task = np.repeat(np.arange(len(size)), size)
        total = np.bincount(task, learned["box_confidence_"], len(size))
        mean = np.where(size > 0, total / np.maximum(size, 1), 1.0)
        return {"boxes": listed, "n_boxes": size, "confidence": np.clip(mean, 0.0, 1.0)}

    @classmethod
    def worker_columns(cls, learned: Learned) -> Columns:
        """Return detection rate, phantoms per image, IoU with the consensus and bias of sides."""
        rate, error = learned["detection_rate_"], learned["detection_error_"]
        sides = learned["side_bias_"]
        return {
            "detection_rate": rate,
            "detection_low": np.clip(rate - 1.96 * error, 0, 1),
            "detection_high": np.clip(rate + 1.96 * error, 0, 1),
            "miss_rate": 1 - rate,
            "n_judged": learned["n_judged_"],
            "phantoms_per_image": learned["phantoms_per_image_"],
            "mean_iou": learned["worker_iou_"],
            "too_loose": sides.mean(axis=1),
            **{f"too_loose_{name}": sides[:, k] for k, name in enumerate(SIDES)},
        }

    @classmethod
    def counts(cls, learned: Learned) -> dict[str, int]:
        """Return the number of objects."""
        return {"objects": int(learned["n_boxes_"].sum())}

    @classmethod
    def fault(cls, learned: Learned) -> str:
        """Describe an inconsistency between objects and their tasks, or return ""."""
        n_objects = int(learned["n_boxes_"].sum())
        for name in ("boxes_", "box_label_", "box_confidence_", "box_share_"):
            if len(learned[name]) != n_objects:
                return f"{name} does not have one entry per object"
        if n_objects and int(learned["box_label_"].max()) >= len(learned["classes_"]):
            return "box_label_ holds something else than codes of classes_"
        if (learned["boxes_"][:, 2:] < 0).any():
            return "boxes_ holds a box of negative size"
        return ""
