"""Grouping of boxes: the compiled kernel is the reference, and both keep the rules."""

from __future__ import annotations

import numpy as np
import pytest

from wisecrowd.kinds.boxes import kernels, kernels_fast
from wisecrowd.kinds.boxes.metrics import overlap_table


def crowd(seed, n=14, n_annotations=5):
    rng = np.random.default_rng(seed)
    boxes = np.concatenate([rng.integers(0, 12, (n, 2)), rng.integers(6, 12, (n, 2))], axis=1)
    annotation = np.sort(rng.integers(0, n_annotations, n))
    weight = rng.integers(1, 3, n_annotations).astype(float)[annotation]
    pointer = np.array([0, n // 3, n // 3, n])
    return boxes.astype(float), rng.integers(0, 2, n), annotation, weight, pointer


def by_definition(boxes, apart, weight, at_least):
    """Merge the groups with the largest weighted mean IoU, computed anew each time."""
    iou, groups = overlap_table(boxes, boxes), [[k] for k in range(len(boxes))]
    while True:
        best = None
        for a in range(len(groups)):
            for b in range(a + 1, len(groups)):
                rows = np.ix_(groups[a], groups[b])
                if apart[rows].any():
                    continue
                by = np.outer(weight[groups[a]], weight[groups[b]])
                value = float((iou[rows] * by).sum() / by.sum())
                if value >= at_least - 1e-9 and (best is None or value > best[0] + 1e-9):
                    best = (value, a, b)
        if best is None:
            return sorted(sorted(group) for group in groups)
        groups[best[1]] += groups.pop(best[2])


@pytest.mark.parametrize("seed", range(6))
def test_average_linkage_by_definition(seed):
    boxes, label, annotation, weight, _ = crowd(seed, 9)
    pointer = np.array([0, 9])
    found = kernels.group_boxes(boxes, label, annotation, weight, pointer, 0.4)
    groups = sorted(np.flatnonzero(found == one).tolist() for one in np.unique(found))
    apart = (annotation[:, None] == annotation) | (label[:, None] != label)
    assert groups == by_definition(boxes, apart, weight, 0.4)


@pytest.mark.parametrize("seed", range(8))
def test_compiled_is_the_reference(seed):
    data = crowd(seed, 24)
    for at_least in (0.2, 0.5):
        first = kernels.group_boxes(*data, at_least)
        assert np.array_equal(first, kernels_fast.group_boxes(*data, at_least))


def test_never_two_boxes_of_one_annotation_nor_of_two_tasks():
    boxes = np.tile([0.0, 0, 9, 9], (6, 1))
    annotation, pointer = np.array([0, 0, 1, 1, 2, 2]), np.array([0, 4, 6])
    zeros, ones = np.zeros(6, dtype=int), np.ones(6)
    found = kernels.group_boxes(boxes, zeros, annotation, ones, pointer, 0.4)
    assert found.tolist() == [0, 1, 0, 1, 4, 5]
