"""A small crowd for the common checks, and the symmetries that they verify."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from wisecrowd.core.graphs import PerTask
from wisecrowd.core.kinds import Symmetry
from wisecrowd.kinds.boxes.container import CrowdRegions
from wisecrowd.kinds.boxes.simulate import boxes
from wisecrowd.testing.foundation import Make, text_ids


def example(make: Make, seed: int = 0) -> CrowdRegions:
    """Return 40 images with boxes of two classes by 4 of 7 workers each, with text ids."""
    made = boxes(
        40, 7, PerTask(4), miss=0.25, phantoms=0.3, classes=("car", "person"), mistype=0.25,
        random_state=seed,
    )  # fmt: skip
    table = made.data.to_dict()
    sides = (table[name] for name in ("x", "y", "width", "height", "label"))
    return CrowdRegions.from_arrays(*text_ids(table["task"], table["worker"]), *sides)


def _move_images(data: CrowdRegions) -> CrowdRegions:
    boxes = 2.0 * data.boxes
    boxes[:, :2] += 30.0
    return replace(data, boxes=boxes)


def _moved_boxes(learned: Mapping[str, Any]) -> dict[str, Any]:
    boxes = 2.0 * learned["boxes_"]
    boxes[:, :2] += 30.0
    return {"boxes_": boxes, **_same_boxes(learned)}


def _same_boxes(learned: Mapping[str, Any]) -> dict[str, Any]:
    kept = ("box_confidence_", "n_boxes_", "detection_rate_", "phantoms_per_image_", "worker_iou_",
            "side_bias_")  # fmt: skip
    return {name: learned[name] for name in kept}


def _reverse_box_classes(data: CrowdRegions) -> CrowdRegions:
    return replace(data, label=(data.n_classes - 1 - data.label).astype(np.int32))


def _box_classes_reversed(learned: Mapping[str, Any]) -> dict[str, Any]:
    last = len(learned["classes_"]) - 1
    return {"box_label_": last - learned["box_label_"], "boxes_": learned["boxes_"],
            **_same_boxes(learned)}  # fmt: skip


SYMMETRIES = (
    Symmetry(name="shift and scale of images", change=_move_images, expected=_moved_boxes),
    Symmetry(
        name="reversing the classes", change=_reverse_box_classes, expected=_box_classes_reversed
    ),
)
