"""Boxes are grouped in parts that overlap, as if all boxes of an image were compared."""

from __future__ import annotations

import numpy as np
import pytest

from wisecrowd.core import memory_check
from wisecrowd.core.exceptions import DataError
from wisecrowd.kinds.boxes import kernels
from wisecrowd.kinds.boxes import metrics as box_metrics
from wisecrowd.kinds.boxes.container import CrowdRegions
from wisecrowd.kinds.boxes.methods.objects import BoxObjects
from wisecrowd.kinds.boxes.metrics import connected_boxes, overlap_table, touching_pairs


def crowd(seed, n=60, side=120.0, n_tasks=3):
    rng = np.random.default_rng(seed)
    boxes = np.hstack([rng.uniform(0, side, (n, 2)), rng.uniform(10, 40, (n, 2))]).round(seed % 3)
    task, worker = np.sort(rng.integers(n_tasks, size=n)), rng.integers(4, size=n)
    return CrowdRegions.from_arrays(task, worker, *boxes.T, rng.choice(["a", "b"], n).tolist())


@pytest.mark.parametrize("same_class", [False, True])
@pytest.mark.parametrize("seed", range(6))
def test_parts_are_grouped_like_whole_images(seed, same_class):
    data = crowd(seed)
    label = data.label.astype(np.int64) * same_class
    whole = kernels.group_boxes(
        data.boxes, label, data.box_annotation, np.ones(data.n_boxes),
        data.pointer[data.indptr], 0.2,
    )  # fmt: skip
    found = BoxObjects.of(data, 0.2, same_class=same_class)
    leaders, wanted = np.unique(whole, return_inverse=True)
    assert np.array_equal(found.object, wanted)
    assert np.array_equal(found.task, data.box_task[leaders])


@pytest.mark.parametrize("pairs", [7, 1 << 21])
def test_parts_are_connected_components(monkeypatch, pairs):
    monkeypatch.setattr(box_metrics, "PAIRS", pairs)  # many blocks, or one
    data = crowd(1)
    seen = [np.stack(block) for block in touching_pairs(data.boxes, data.box_task)]
    first, second = np.hstack(seen)
    assert (data.box_task[first] == data.box_task[second]).all()
    zeros = np.zeros(data.n_boxes, dtype=int)
    part = connected_boxes(data.boxes, data.box_task, data.box_annotation, zeros, 0.2)
    linked = overlap_table(data.boxes, data.boxes) >= 0.2
    linked &= data.box_task[:, None] == data.box_task
    linked &= data.box_annotation[:, None] != data.box_annotation
    linked |= np.eye(data.n_boxes, dtype=bool)
    for _ in range(data.n_boxes):
        linked = linked @ linked
    assert np.array_equal(part[:, None] == part, linked)
    assert (np.diff(np.unique(part, return_index=True)[1]) > 0).all()  # by their first boxes


def test_boxes_side_by_side_are_not_compared():
    column = np.arange(500.0)
    boxes = np.stack([np.zeros(500), 10 * column, np.full(500, 9.0), np.full(500, 9.0)], axis=1)
    assert sum(len(one) for one, _ in touching_pairs(boxes, np.zeros(500, dtype=int))) == 0


def test_a_heap_of_boxes_that_is_too_large_is_refused(monkeypatch):
    monkeypatch.setattr(memory_check, "available_memory", lambda: 1000)
    data = CrowdRegions.from_arrays(["i"] * 9, range(9), [0] * 9, [0] * 9, [5] * 9, [5] * 9)
    with pytest.raises(DataError, match="9 boxes of task 'i' that overlap one another need"):
        BoxObjects.of(data, 0.4, same_class=False)
