"""Exports of annotation platforms, one module each; a new platform is a line here and a module.

A reader takes a source and a request and yields batches of columns, as those of plain tables do.
The platform is detected by :mod:`wisecrowd.io.sniffing`, which imports none of these modules.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class Platform(NamedTuple):
    """Where a platform's reader is, what users may choose, and what its columns are called.

    ``kinds`` are the kinds of labels that its answers can be read as.
    """

    reader: str
    options: tuple[str, ...]
    columns: Mapping[str, str]
    kinds: tuple[str, ...]


_KINDS = ("labels", "ordered", "numbers", "sets", "texts")
_SPANS, _BOXES = "sequences", "boxes"


def _platform(
    module: str,
    task: str,
    worker: str,
    label: str,
    options: tuple[str, ...] = ("label",),
    *more: str,
) -> Platform:
    options = (*options, "question") if "label" in options else options
    columns = {"task": task, "worker": worker, "label": label}
    return Platform(f"wisecrowd.io.platforms.{module}:read", options, columns, (*_KINDS, *more))


_BOTH = ("task", "label")
_ALL = ("task", "worker", "label")
_SIDES = ("left", "right")
_MORE = ("weight", "timestamp", "duration", "cost", "worker_kind")

PLATFORMS: dict[str, Platform] = {
    "label-studio": _platform("label_studio", "id", "completed_by", "result",
                              (*_BOTH, *_SIDES), "pairs", _SPANS, _BOXES),
    "mturk": _platform("mturk", "HITId", "WorkerId", "Answer.*", _BOTH),
    "toloka": _platform("toloka", "INPUT:*", "ASSIGNMENT:worker_id", "OUTPUT:*", _BOTH),
    "appen": _platform("appen", "_unit_id", "_worker_id", "question", _BOTH),
    "prodigy": _platform("prodigy", "_input_hash", "_annotator_id", "accept", _BOTH, "pairs",
                         _SPANS, _BOXES),
    "argilla": _platform("argilla", "id", "responses.user_id", "responses.value", ("label",),
                         "pairs"),
    "doccano": _platform("doccano", "id", "file name", "label", (), _SPANS),
    "ground-truth": _platform("ground_truth", "manifest line", "workerId", "answerContent"),
    "zooniverse": _platform("zooniverse", "subject_ids", "user_name", "annotations", _ALL[1:]),
    "labelbox": _platform("labelbox", "data_row", "created_by", "classifications", _BOTH),
    "cvat": _platform("cvat", "image name", "assignee", "tag", ()),
    "lewidi": _platform("lewidi", "key", "annotators", "annotations", ()),
    "peerannot": _platform("peerannot", "key", "inner key", "value", ()),
    "crowd-kit": _platform("crowd_kit", "task", "worker", "label", (*_ALL, *_SIDES, *_MORE),
                           "pairs"),
    "cleanlab": _platform("wide", "row", "column name", "cell", ("task",)),
    "wide": _platform("wide", "row", "column name", "cell", ("task",)),
    "hugging-face": _platform("hugging_face", "id", "list of workers", "list of labels", _ALL),
    "scale": _platform("scale", "task_id", "-", "response", ()),
}  # fmt: skip
# Boxes: a format of their own, and those of images in CVAT.
PLATFORMS["coco"] = Platform(
    "wisecrowd.io.platforms.coco:read", (),
    {"task": "file_name", "worker": "annotator", "label": "category"}, ("boxes",),
)  # fmt: skip
PLATFORMS["cvat"] = PLATFORMS["cvat"]._replace(kinds=(*_KINDS, "boxes"))
