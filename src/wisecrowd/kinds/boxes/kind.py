"""The row of boxes in the table of kinds."""

from __future__ import annotations

from wisecrowd.core.kinds import Kind, Words
from wisecrowd.kinds.boxes.answers import RegionAnswers
from wisecrowd.kinds.boxes.container import CrowdRegions

KIND = Kind(
    name="boxes",
    package="wisecrowd.kinds.boxes",
    also_called=("box", "bbox", "bboxes", "rectangles", "regions", "detection"),
    container=CrowdRegions,
    answers=RegionAnswers,
    default_method="box-consensus",
    recognises=lambda columns: columns >= {"task", "x", "y", "width", "height"},
    words=Words("annotations", "annotations", ", {n_marks} boxes, {n_classes} types", "boxes.csv"),
    exports=("coco",),
    gold_in_rows=False,
)
