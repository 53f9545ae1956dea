"""CVAT: "CVAT for images 1.1" of one job, as its zip or its annotations.xml; one job per worker.

CVAT does not record who drew a shape, but a job has an assignee. In a task with consensus every
replica is a job of its own: export each, and read the files together.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO

from wisecrowd.core.exceptions import DataError
from wisecrowd.io.formats import Request
from wisecrowd.io.inventory import HUMAN, MODEL
from wisecrowd.io.platforms.label_records import (
    Dropped,
    Event,
    LabelRecord,
    model_worker,
    reader,
    refuse_without_workers,
)
from wisecrowd.io.sources import Source, opened
from wisecrowd.io.untrusted import opened_zip, xml_events

_NAME = ("annotations", "meta", "job", "assignee", "username")
_SHAPES = ("box", "polygon", "polyline", "points", "ellipse", "cuboid", "mask", "skeleton", "track")


@reader
def read(source: Source, request: Request) -> Iterator[Event]:
    """Yield the tags of images, as labels by the job's assignee."""
    worker: str | None = None
    image: str | None = None
    tags: dict[str, list[str]] = {}
    with _document(source) as stream:
        for what, path, attributes, text in xml_events(stream, source):
            name = path[-1]
            if what == "end" and path == _NAME:
                worker = text.strip() or None
            elif what == "start" and name == "image":
                if worker is None:
                    raise refuse_without_workers(
                        source, "export every job by itself, with an assignee, as 'CVAT for images'"
                    )
                image, tags = attributes.get("name"), {}
            elif what == "start" and name == "tag" and "label" in attributes:
                automatic = attributes.get("source", "manual") == "auto"
                kind = MODEL if automatic else HUMAN
                tags.setdefault(kind, []).append(attributes["label"])
            elif what == "start" and name in _SHAPES:
                yield Dropped("shapes, not labels of a whole image")
            elif what == "end" and name == "image":
                for kind, labels in tags.items():
                    who = model_worker("auto") if kind == MODEL else worker
                    yield LabelRecord(image, who, labels, kind=kind)


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
