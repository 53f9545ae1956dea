"""The audit and the report of boxes: what is wrong is found, honest crowds are left alone."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

import wisecrowd as wc
from wisecrowd import simulate
from wisecrowd.audit import audit_crowd
from wisecrowd.kinds.boxes.audit import find_copied_boxes, measure_box_evidence
from wisecrowd.kinds.boxes.container import CrowdRegions


def crowd(seed=0, **params):
    return simulate.boxes(50, 8, simulate.PerTask(5), random_state=seed, **params).data


def with_boxes(data, keep):
    size = np.bincount(data.box_annotation[keep], minlength=data.n_annotations)
    return replace(
        data, boxes=data.boxes[keep], label=data.label[keep], pointer=np.append(0, np.cumsum(size))
    )


def scaled(data, worker, factor):
    boxes, own = data.boxes.copy(), data.box_worker == worker
    boxes[own, :2] -= (factor - 1) / 2 * boxes[own, 2:]
    boxes[own, 2:] *= factor
    return replace(data, boxes=boxes)


def moved(data, worker):
    boxes, own = data.boxes.copy(), data.box_worker == worker
    boxes[own, 0] += 0.25 * boxes[own, 2]
    return replace(data, boxes=boxes)


def lost(data, worker):
    boxes, own = data.boxes.copy(), data.box_worker == worker
    rng = np.random.default_rng(0)
    boxes[own, :2] = rng.uniform(0, 400, (int(own.sum()), 2))
    return replace(data, boxes=boxes)


CHANGES = {
    "draws-nothing": lambda data: with_boxes(data, data.box_worker != 3),
    "misses-objects": lambda data: with_boxes(
        data, (data.box_worker != 3) | (np.arange(data.n_boxes) % 5 == 0)
    ),
    "draws-phantoms": lambda data: lost(data, 3),
    "tight-boxes": lambda data: scaled(data, 3, 0.8),
    "loose-boxes": lambda data: scaled(data, 3, 1.25),
    "shifted-boxes": lambda data: moved(data, 3),
}


@pytest.mark.parametrize("name", CHANGES)
def test_bad_workers_are_found(name):
    found = {one.id: one for one in audit_crowd(CHANGES[name](crowd())).findings}
    assert found[name].affected == (3,)


def test_honest_crowds_get_no_finding():
    for seed in range(5):
        for params in ({}, {"hard": 0.2, "miss": 0.25, "phantoms": 0.4}, {"mean_objects": 0.7}):
            assert list(audit_crowd(crowd(seed, **params)).findings) == []


def test_copied_boxes_are_found():
    rows = crowd().to_dict()
    names = ("task", "x", "y", "width", "height")
    own = rows["worker"] == 3
    columns = {name: np.concatenate([rows[name], rows[name][own]]) for name in names}
    worker = np.concatenate([rows["worker"], np.full(int(own.sum()), 99)])
    data = CrowdRegions.from_arrays(columns.pop("task"), worker, *columns.values())
    report = find_copied_boxes(data)
    assert [(a, b) for a, b, bad in zip(report.first, report.second, report.copied, strict=True)
            if bad] == [(3, 99)]  # fmt: skip
    assert report.findings()[0].id == "copied-boxes"


def test_boxes_of_one_model_are_no_copies():
    boxes = crowd(miss=0.0, phantoms=0.0, noise=0.0, bias=0.0)
    found = find_copied_boxes(boxes).findings()
    assert [one.id for one in found] == ["equal-boxes"]


def test_lost_empty_annotations_are_noticed():
    data = crowd(mean_objects=1.5, miss=0.3, phantoms=0.3)
    assert measure_box_evidence(data).findings() == []
    sure = crowd(miss=0.0, phantoms=0.0, mean_objects=5.0)
    assert measure_box_evidence(sure[np.bincount(sure.box_task, minlength=50) > 0]).findings() == []
    full = data.select_annotations(np.diff(data.pointer) > 0)
    assert [one.id for one in measure_box_evidence(full).findings()] == ["no-empty-annotations"]


def test_the_report_has_its_sections(tmp_path):
    made = simulate.boxes(40, 6, simulate.PerTask(4))
    data = CHANGES["draws-nothing"](made.data)
    page = wc.report(data, tmp_path / "page.html", truth=made.truth)
    summary = json.loads(json.dumps(page.summary))
    assert summary["verdict"]["n_objects"] > 0
    assert summary["verdict"]["measured"]["scores"]["box_f1"] > 0.9
    by_name = {row["worker"]: row for row in summary["workers"]["rows"]}
    assert by_name["3"]["flags"] == ["draws-nothing"]
    text = (tmp_path / "page.html").read_text(encoding="utf-8")
    for heading in ("missed and phantom boxes", "Images people disagree about", "Equal boxes"):
        assert heading in text
