"""Boxes as COCO-style JSON: images, categories and annotations with a bbox and a score."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from wisecrowd.core.regions import NO_CLASS
from wisecrowd.io.sources import PathLike
from wisecrowd.storage.atomic import atomic_write

UNNAMED = "object"  # category of boxes without classes, because COCO needs one


def coco_document(fit: Any) -> dict[str, Any]:
    """Return the objects of a fit in the style of COCO.

    Images and categories are numbered from 1. ``file_name`` is the id of the task, and ``score``
    the confidence. Images without objects are listed too. Sizes are left out where unknown.

    Examples
    --------
    >>> from wisecrowd.aggregation import BoxConsensus
    >>> fit = BoxConsensus().fit((["a.jpg"], ["ann"], [1], [2], [30], [40], ["car"]))
    >>> document = coco_document(fit)
    >>> document["images"], document["categories"]
    ([{'id': 1, 'file_name': 'a.jpg'}], [{'id': 1, 'name': 'car'}])
    >>> document["annotations"][0]["bbox"]
    [1.0, 2.0, 30.0, 40.0]
    """
    images = []
    sizes = zip(fit.image_width_.tolist(), fit.image_height_.tolist(), strict=True)
    for number, (task, (width, height)) in enumerate(
        zip(fit.tasks_.tolist(), sizes, strict=True), 1
    ):
        image = {"id": number, "file_name": str(task)}
        if width > 0 and height > 0:
            image |= {"width": _whole(width), "height": _whole(height)}
        images.append(image)
    names = [UNNAMED if one == NO_CLASS else str(one) for one in fit.classes_.tolist()]
    task = np.repeat(np.arange(len(fit.tasks_)), fit.n_boxes_)
    columns = (task, fit.boxes_, fit.box_label_, fit.box_confidence_, fit.box_share_)
    rows = zip(*(column.tolist() for column in columns), strict=True)
    return {
        "images": images,
        "categories": [{"id": k, "name": name} for k, name in enumerate(names, 1)],
        "annotations": [
            {"id": number, "image_id": i + 1, "category_id": label + 1, "bbox": box,
             "area": box[2] * box[3], "iscrowd": 0, "score": score, "share": share}
            for number, (i, box, label, score, share) in enumerate(rows, 1)
        ],
    }  # fmt: skip


def _whole(number: float) -> float | int:
    return int(number) if number.is_integer() else number


def write_coco(path: PathLike, fit: Any) -> int:
    """Write the objects of a fit as COCO-style JSON, atomically, and return their number."""
    document = coco_document(fit)
    with atomic_write(path) as file:
        file.write(json.dumps(document, ensure_ascii=False) + "\n")
    return len(document["annotations"])
