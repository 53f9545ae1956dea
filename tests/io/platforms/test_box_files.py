"""Boxes in COCO-style files and in the jobs of CVAT: who drew what, and who saw what."""

from __future__ import annotations

import json

import numpy as np
import pytest

from wisecrowd.aggregation import BoxConsensus
from wisecrowd.core.exceptions import DataError, ParameterError
from wisecrowd.io.formats import format_of
from wisecrowd.io.platforms.coco import true_boxes, write_coco
from wisecrowd.io.sources import Source
from wisecrowd.io.tables import read
from wisecrowd.kinds.boxes.container import CrowdRegions

IMAGES = [
    {"id": 1, "file_name": "a.jpg", "width": 100, "height": 50},
    {"id": 2, "file_name": "b.jpg", "width": 100, "height": 50, "annotators": ["ann", "cem"]},
]
CATEGORIES = [{"id": 7, "name": "car"}, {"id": 8, "name": "bus"}]


def note(number, image, category, bbox, **more):
    return {"id": number, "image_id": image, "category_id": category, "bbox": bbox, **more}


def coco(path, annotations, images=None, categories=None):
    document = {
        "info": {"year": 2026}, "images": IMAGES if images is None else images,
        "annotations": annotations,
        "categories": CATEGORIES if categories is None else categories,
    }  # fmt: skip
    path.write_text(json.dumps(document), encoding="utf-8")
    return path


def looks(data):
    """Return task, worker and boxes with classes of every annotation."""
    boxes = [
        [(*box, data.classes[label]) for box, label in zip(
            data.boxes[a:b].tolist(), data.label[a:b], strict=True)]
        for a, b in zip(data.pointer[:-1], data.pointer[1:], strict=True)
    ]  # fmt: skip
    ids = data.tasks[data.task].tolist(), data.workers[data.worker].tolist()
    return list(zip(*ids, boxes, strict=True))


def test_workers_of_annotations(tmp_path):
    path = coco(tmp_path / "c.json", [
        note(1, 1, 7, [1, 2, 30, 40], annotator="ann"),
        note(2, 1, 8, [5, 2, 30, 40], annotator="bob"),
        note(3, 1, 8, None, annotator="dan"),
        note(4, 1, 8, [5, 2, 30, 40], annotator="bob", iscrowd=1),
        note(5, 2, 7, [9, 9, 9, 9], annotator="ann"),
    ])  # fmt: skip
    assert format_of(Source(path)) == "coco"
    data = read(path)
    assert isinstance(data, CrowdRegions)
    assert looks(data) == [
        ("a.jpg", "ann", [(1, 2, 30, 40, "car")]), ("a.jpg", "bob", [(5, 2, 30, 40, "bus")]),
        ("a.jpg", "dan", []), ("b.jpg", "ann", [(9, 9, 9, 9, "car")]), ("b.jpg", "cem", []),
    ]  # fmt: skip
    assert data.image_size().tolist() == [[100, 50], [100, 50]]
    assert any("iscrowd" in text for text in data.notes)


def test_one_file_per_worker(tmp_path):
    ann = coco(tmp_path / "ann.json", [note(1, 1, 7, [1, 2, 30, 40])])
    bob = coco(tmp_path / "bob.json", [])
    assert looks(read([ann, bob])) == [
        ("a.jpg", "ann", [(1, 2, 30, 40, "car")]), ("a.jpg", "bob", []),
        ("b.jpg", "ann", []), ("b.jpg", "bob", []),
    ]  # fmt: skip


def test_what_is_written_is_read(tmp_path):
    rows = [("a", w, 1, 2, 30, 40, "car") for w in "xyz"] + [("b", "x", *[None] * 5)]
    columns = [list(column) for column in zip(*rows, strict=True)]
    sizes = {"image_width": [90] * 4, "image_height": [80.5] * 4}
    fit = BoxConsensus().fit(CrowdRegions.from_arrays(*columns, **sizes))
    assert write_coco(tmp_path / "out.json", fit) == 1
    document = json.loads((tmp_path / "out.json").read_text())
    assert document["images"][0] == {"id": 1, "file_name": "a", "width": 90, "height": 80.5}
    assert document["annotations"][0]["score"] == pytest.approx(fit.box_confidence_[0])
    back = true_boxes(Source(tmp_path / "out.json"))
    assert looks(back) == [("a", "truth", [(1, 2, 30, 40, "car")]), ("b", "truth", [])]


WRONG = {
    "image": ([note(1, 9, 7, [1, 2, 3, 4])], "image 9, which is not among its images"),
    "category": ([note(1, 1, 9, [1, 2, 3, 4])], "category 9, which is not among"),
    "box": ([note(1, 1, 7, [1, 2, 3])], r"bbox \[1, 2, 3\]"),
    "workers": (
        [note(1, 1, 7, [1, 2, 3, 4], worker="ann"), note(2, 1, 7, [1, 2, 3, 4])],
        "with and without annotator",
    ),
    "outside": ([note(1, 1, 7, [90, 2, 30, 4])], "outside of its image 'a.jpg'"),
    "negative": ([note(1, 1, 7, [9, 2, -3, 4])], "is -3 wide and 4 high"),
    "infinite": ([note(1, 1, 7, [9, 2, 1e999, 4])], "infinite"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_files_are_refused(tmp_path, name):
    annotations, reason = WRONG[name]
    with pytest.raises(DataError, match=reason):
        read(coco(tmp_path / "c.json", annotations))


def test_ids_must_be_distinct_and_the_kind_boxes(tmp_path):
    with pytest.raises(DataError, match="without an id of their own"):
        read(coco(tmp_path / "c.json", [], images=[{"id": 1}, {"id": 1}]), "coco")
    path = coco(tmp_path / "d.json", [note(1, 1, 7, [1, 2, 3, 4])])
    with pytest.raises(ParameterError, match="has boxes and not labels"):
        read(path, type="labels")


JOB = """<?xml version="1.0" encoding="utf-8"?>
<annotations><meta><job><assignee><username>{worker}</username></assignee></job></meta>
<image id="0" name="a.jpg" width="100" height="50">{first}</image>
<image id="1" name="b.jpg" width="100" height="50">{second}</image>
</annotations>"""
BOX = '<box label="car" source="{by}" xtl="{x}" ytl="2" xbr="40" ybr="42.5"{more}></box>'


def job(path, worker, first="", second=""):
    path.write_text(JOB.format(worker=worker, first=first, second=second), encoding="utf-8")
    return path


def box(x, by="manual", more=""):
    return BOX.format(x=x, by=by, more=more)


def test_jobs_of_cvat(tmp_path):
    files = [
        job(tmp_path / "1.xml", "ann", box(10) + '<points label="car"></points>', box(30)),
        job(tmp_path / "2.xml", "bob", box(12) + box(20, more=' rotation="30.0"')),
    ]
    data = read(files)
    assert looks(data) == [
        ("a.jpg", "ann", [(10, 2, 30, 40.5, "car")]), ("a.jpg", "bob", [(12, 2, 28, 40.5, "car")]),
        ("b.jpg", "ann", [(30, 2, 10, 40.5, "car")]), ("b.jpg", "bob", []),
    ]  # fmt: skip
    notes = " ".join(data.notes)
    assert "rotated boxes" in notes
    assert "shapes other than boxes" in notes


def test_boxes_of_cvats_own_model_are_a_model(tmp_path):
    path = job(tmp_path / "1.xml", "ann", box(10) + box(11, by="auto"))
    both = read(path, kinds="all")
    assert both.workers.tolist() == ["ann", "model:auto"]
    assert read(path).workers.tolist() == ["ann"]


def test_tags_are_labels_unless_boxes_are_declared(tmp_path):
    path = job(tmp_path / "1.xml", "ann", '<tag label="street"></tag>' + box(10))
    assert read(path).classes.tolist() == ["street"]
    assert np.diff(read(path, type="boxes").pointer).tolist() == [1, 0]


def test_a_box_of_cvat_without_limits_is_refused(tmp_path):
    path = job(tmp_path / "1.xml", "ann", '<box label="car" xtl="1" ytl="1" xbr="2"></box>')
    with pytest.raises(DataError, match=r"in image 'a\.jpg' without xtl"):
        read(path)
