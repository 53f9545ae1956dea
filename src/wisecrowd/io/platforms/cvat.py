"""CVAT: "CVAT for images 1.1" of one job, as its zip or its annotations.xml; one job per worker.

CVAT does not record who drew a shape, but a job has an assignee. In a task with consensus every
replica is a job of its own: export each, and read the files together. Images with tags are read as
labels, images with boxes and no tags as boxes; the type of the labels can be declared. A job holds
all its images, also those in which the assignee drew nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import IO, Any

from wisecrowd.core.exceptions import DataError
from wisecrowd.io.formats import Request
from wisecrowd.io.inventory import HUMAN, MODEL
from wisecrowd.io.platforms import CHOSEN, Platform
from wisecrowd.io.platforms.label_records import (
    BoxRow,
    Dropped,
    Event,
    LabelRecord,
    batches,
    box_columns,
    model_worker,
    refuse_without_workers,
)
from wisecrowd.io.platforms.values import number_of
from wisecrowd.io.sources import Source, opened
from wisecrowd.io.untrusted import opened_zip, xml_events
from wisecrowd.kinds import BOXES

_NAME = ("annotations", "meta", "job", "assignee", "username")
_BOX = "box"
_SHAPES = ("polygon", "polyline", "points", "ellipse", "cuboid", "mask", "skeleton", "track")
_LIMITS = ("xtl", "ytl", "xbr", "ybr")


@dataclass
class _Image:
    """An image of a job: its tags and boxes by the kind of worker, and counts of other shapes."""

    name: str | None
    worker: str
    size: tuple[Any, Any]
    tags: dict[str, list[str]] = field(default_factory=dict)
    boxes: dict[str, list[tuple[tuple[Any, ...], str | None]]] = field(default_factory=dict)
    rotated: int = 0
    others: int = 0

    def who(self, kind: str) -> str:
        """Return the worker of a kind: the assignee, or CVAT's own model."""
        return model_worker("auto") if kind == MODEL else self.worker


def read(source: Source, request: Request) -> Iterator[dict[str, Any]]:
    """Yield the tags of images as labels by the job's assignee, or the boxes."""
    images = list(_images(source))
    has_tags = any(image.tags for image in images)
    if request.undeclared and not has_tags and any(image.boxes for image in images):
        request.follow(BOXES, f"{source.name} has boxes and no tags, and is read as boxes")
    if request.kind.name != BOXES:
        yield from batches(_labels(images), source, request)
        return
    rows = list(_boxes(images, request))
    if rows:
        yield box_columns(rows, source)


PLATFORM = Platform(read, "image name", "assignee", "tag", (), (*CHOSEN, BOXES))


def _labels(images: list[_Image]) -> Iterator[Event]:
    for image in images:
        shapes = image.others + image.rotated + sum(map(len, image.boxes.values()))
        if shapes:
            yield Dropped("shapes, not labels of a whole image", shapes)
        for kind, labels in image.tags.items():
            yield LabelRecord(image.name, image.who(kind), labels, kind=kind)


def _boxes(images: list[_Image], request: Request) -> Iterator[BoxRow]:
    for image in images:
        request.inventory.drop("shapes other than boxes", image.others)
        request.inventory.drop("rotated boxes", image.rotated)
        request.inventory.drop("tags of whole images", sum(map(len, image.tags.values())))
        if not image.name:
            request.inventory.drop("without a task id")
            continue
        for kind in (HUMAN, MODEL):
            for box, label in image.boxes.get(kind, []):
                yield BoxRow(image.name, image.who(kind), box, label, image.size, kind)
        if HUMAN not in image.boxes:
            yield BoxRow(image.name, image.worker, size=image.size)


def _images(source: Source) -> Iterator[_Image]:
    """Yield the images of a job, in order."""
    worker: str | None = None
    image: _Image | None = None
    with _document(source) as stream:
        for what, path, attributes, text in xml_events(stream, source):
            name = path[-1]
            if what == "end":
                if path == _NAME:
                    worker = text.strip() or None
                elif name == "image" and image is not None:
                    yield image
                    image = None
                continue
            if name == "image":
                if worker is None:
                    raise refuse_without_workers(
                        source, "export every job by itself, with an assignee, as 'CVAT for images'"
                    )
                size = attributes.get("width"), attributes.get("height")
                image = _Image(attributes.get("name"), worker, size)
            elif name in _SHAPES and image is None:
                image = _Image(None, "", (None, None), others=1)
            elif image is not None:
                _add(image, name, attributes, source)
            if name == "track" and image is not None and image.name is None:
                yield image
                image = None


def _add(image: _Image, name: str, attributes: dict[str, str], source: Source) -> None:
    """Add a tag or a shape to an image."""
    kind = MODEL if attributes.get("source", "manual") == "auto" else HUMAN
    if name == "tag" and "label" in attributes:
        image.tags.setdefault(kind, []).append(attributes["label"])
    elif name == _BOX and float(number_of(attributes.get("rotation")) or 0.0) != 0:
        image.rotated += 1
    elif name == _BOX:
        limits = [number_of(attributes.get(side)) for side in _LIMITS]
        left, top, right, bottom = limits
        if left is None or top is None or right is None or bottom is None:
            raise DataError(
                f"{source.name} has a box in image {image.name!r} without {', '.join(_LIMITS)}; "
                "export it again as 'CVAT for images'."
            )
        box = (left, top, right - left, bottom - top)
        image.boxes.setdefault(kind, []).append((box, attributes.get("label")))
    elif name in _SHAPES:
        image.others += 1


@contextmanager
def _document(source: Source) -> Iterator[IO[bytes]]:
    """Open the XML, by itself or inside the archive that CVAT makes."""
    if source.suffix != ".zip":
        with opened(source) as stream:
            yield stream
        return
    with opened_zip(source) as members:
        if "annotations.xml" not in members:
            raise DataError(f"{source.name} holds no annotations.xml; export as CVAT for images.")
        with members["annotations.xml"]() as stream:
            yield stream
