"""COCO-style JSON: images, categories, and annotations with a bbox and the worker who drew it.

COCO has no field for workers. An annotation may have one of the keys in ``WORKERS``. Without any,
every file holds the boxes of one worker, whose name is that of the file, and this worker saw all
images of the file. An image may list all who saw it under ``annotators``; an annotation with a
worker and without a bbox says the same.

Results are written in the same style, with a score.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import numpy as np

from wisecrowd.core.columns import listed
from wisecrowd.core.exceptions import DataError
from wisecrowd.io.formats import Request
from wisecrowd.io.misreadings import worker_like
from wisecrowd.io.platforms import Platform
from wisecrowd.io.platforms.label_records import BoxRow, box_columns
from wisecrowd.io.platforms.values import as_text
from wisecrowd.io.sources import PathLike, Source, opened
from wisecrowd.io.untrusted import json_lists
from wisecrowd.kinds import BOXES
from wisecrowd.kinds.boxes.container import NO_CLASS, CrowdRegions
from wisecrowd.storage.atomic import atomic_write

WORKERS = ("annotator", "worker", "annotator_id", "worker_id", "user", "user_id", "rater")
SEEN_BY = ("annotators", "workers")  # keys of images
_KEYS = ("id", "image_id", "category_id", "bbox", "area", "iscrowd", "segmentation", "keypoints",
         "num_keypoints")  # fmt: skip
_LOOKED_AT = 10_000  # annotations whose other keys may name workers
EXPERT = "truth"  # who drew true boxes


class _Document:
    """The parts of a file, by their ids."""

    def __init__(self, source: Source, encoding: str) -> None:
        self.source = source
        self.images: dict[Any, dict[str, Any]] = {}
        self.categories: dict[Any, str] = {}
        self.annotations: list[dict[str, Any]] = []
        with opened(source) as stream:
            for part, value in json_lists(stream, source, encoding):
                if part in ("images", "categories", "annotations"):
                    if not isinstance(value, dict):
                        raise self.wrong(f"has something else than an object in {part}")
                    self._add(part, value)
        if not self.images:
            raise self.wrong("has no images")

    def wrong(self, what: str) -> DataError:
        """Return the error for a file that is not in the style of COCO."""
        return DataError(
            f"{self.source.name} {what}; COCO files have images, categories and annotations."
        )

    def _add(self, part: str, value: dict[str, Any]) -> None:
        if part == "annotations":
            self.annotations.append(value)
            return
        key = as_text(value.get("id"))
        if key is None or key in (self.images if part == "images" else self.categories):
            raise self.wrong(f"has {part} without an id of their own ({value.get('id')!r})")
        if part == "images":
            self.images[key] = value
        else:
            self.categories[key] = as_text(value.get("name")) or key

    def tasks(self) -> dict[Any, str]:
        """Return the task of each image: its file name or, if these are not distinct, its id."""
        names = {key: as_text(image.get("file_name")) for key, image in self.images.items()}
        if None in names.values() or len(set(names.values())) < len(names):
            return {key: str(key) for key in self.images}
        return {key: str(name) for key, name in names.items()}

    def size(self, image: Any) -> tuple[Any, Any]:
        """Return width and height of an image, None where unknown."""
        found = self.images[image]
        return found.get("width"), found.get("height")

    def image_of(self, annotation: dict[str, Any]) -> Any:
        """Return the id of the image of an annotation."""
        key = as_text(annotation.get("image_id"))
        if key not in self.images:
            raise self.wrong(f"has an annotation of image {annotation.get('image_id')!r}, which "
                             "is not among its images")  # fmt: skip
        return key

    def box_of(self, annotation: dict[str, Any]) -> tuple[Any, ...] | None:
        """Return the box of an annotation, None without one."""
        box = annotation.get("bbox")
        if not box:
            return None
        if not isinstance(box, list) or len(box) != 4:
            raise self.wrong(f"has the bbox {box!r}, and x, y, width and height are needed")
        return tuple(box)

    def label_of(self, annotation: dict[str, Any]) -> str | None:
        """Return the name of the category of an annotation; None if there are no categories."""
        key = as_text(annotation.get("category_id"))
        if key is None:
            return None
        if self.categories and key not in self.categories:
            raise self.wrong(f"has an annotation of category {key}, which is not among its "
                             "categories")  # fmt: skip
        return self.categories.get(key, key)


def read(source: Source, request: Request) -> Iterator[dict[str, Any]]:
    """Yield the boxes of a file, with the workers who drew them."""
    document = _Document(source, request.encoding)
    rows = list(_rows(document, request))
    if rows:
        yield box_columns(rows, source)


PLATFORM = Platform(read, "file_name", "annotator", "category", (), (BOXES,))


def _rows(document: _Document, request: Request) -> Iterator[BoxRow]:
    tasks, source = document.tasks(), document.source
    named = [_worker(one) for one in document.annotations]
    alone = all(worker is None for worker in named)
    if not alone and None in named:
        raise document.wrong(
            f"has annotations with and without {WORKERS[0]}, who drew them, such as "
            f"{document.annotations[named.index(None)].get('id')!r}"
        )
    if alone:
        _assume_one_worker(document, request)
    only = source.path.stem if source.path is not None else "standard input"
    seen: dict[tuple[Any, str], bool] = {}
    for annotation, name in zip(document.annotations, named, strict=True):
        image, worker = document.image_of(annotation), only if name is None else name
        if annotation.get("iscrowd"):
            request.inventory.drop("regions with several objects (iscrowd)")
            continue
        box = document.box_of(annotation)
        has_shape = bool(annotation.get("segmentation") or annotation.get("keypoints"))
        if box is None and (alone or has_shape):
            request.inventory.drop("annotations without a bbox")
            continue
        seen[image, worker] = seen.get((image, worker), False) or box is not None
        if box is not None:
            label = document.label_of(annotation)
            yield BoxRow(tasks[image], worker, box, label, document.size(image))
    for image, found in document.images.items():
        for worker in [only] if alone else _seen_by(found):
            seen.setdefault((image, worker), False)
    for (image, worker), drew in seen.items():
        if not drew:
            yield BoxRow(tasks[image], worker, size=document.size(image))


def _worker(annotation: dict[str, Any]) -> str | None:
    return next((name for key in WORKERS if (name := as_text(annotation.get(key)))), None)


def _assume_one_worker(document: _Document, request: Request) -> None:
    """Keep why all boxes count as those of one worker, and the keys that may name workers."""
    first = [_flat(one) for one in document.annotations[:_LOOKED_AT]]
    keys = dict.fromkeys(key for one in first for key in one if key not in _KEYS)
    images = [as_text(one.get("image_id")) for one in first]
    found = worker_like({key: [one.get(key) for one in first] for key in keys}, images)
    inventory = request.inventory
    inventory.assumed_worker = f"named after the file, as no annotation has {WORKERS[0]}"
    inventory.name_workers = f"give every annotation the key {WORKERS[0]}, who drew it"
    if found:
        inventory.name_workers = (
            f"if {listed(found)} names who drew a box, call it {WORKERS[0]} in the file"
        )


def _flat(annotation: dict[str, Any]) -> dict[str, Any]:
    """Return the keys of an annotation, with those of its objects as ``attributes.reader``."""
    flat: dict[str, Any] = {}
    for key, value in annotation.items():
        if isinstance(value, dict):
            flat |= {f"{key}.{inner}": one for inner, one in value.items()}
        else:
            flat[key] = value
    return flat


def _seen_by(image: dict[str, Any]) -> list[str]:
    listed = [image[key] for key in SEEN_BY if isinstance(image.get(key), list)]
    return [name for one in (listed or [[]])[0] if (name := as_text(one)) is not None]


def true_boxes(source: Source, encoding: str = "utf-8") -> CrowdRegions:
    """Return all boxes of a file as those of one expert, who saw all its images."""
    document = _Document(source, encoding)
    tasks, drawn, rows = document.tasks(), set(), []
    for annotation in document.annotations:
        box, image = document.box_of(annotation), document.image_of(annotation)
        if box is not None and not annotation.get("iscrowd"):
            rows.append((tasks[image], *box, document.label_of(annotation)))
            drawn.add(image)
    rows += [(tasks[image], *[None] * 5) for image in document.images if image not in drawn]
    task, x, y, width, height, label = (list(column) for column in zip(*rows, strict=True))
    return CrowdRegions.from_arrays(task, [EXPERT] * len(rows), x, y, width, height, label)


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
