"""The row of masks in the table of kinds."""

from __future__ import annotations

from wisecrowd.core.kinds import Kind, Words
from wisecrowd.kinds.masks.answers import MaskAnswers
from wisecrowd.kinds.masks.container import CrowdMasks

KIND = Kind(
    name="masks",
    package="wisecrowd.kinds.masks",
    also_called=("mask", "segmentation", "brush", "rle"),
    container=CrowdMasks,
    answers=MaskAnswers,
    default_method="mask-em",
    recognises=lambda columns: columns >= {"task", "mask"},
    words=Words(output="masks.csv"),
)
