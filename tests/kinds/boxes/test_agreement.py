"""Agreement of boxes against the optimal matching of all pairs of workers."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from wisecrowd import CrowdRegions, simulate
from wisecrowd.kinds.boxes.agreement import agreement_evidence
from wisecrowd.kinds.boxes.metrics import BoxTable, match_boxes


def f1_of_pairs(data, at_least):
    top = bottom = 0
    for a, b in combinations(range(data.n_annotations), 2):
        if data.task[a] != data.task[b]:
            continue
        tables = []
        for e in (a, b):
            rows = slice(data.pointer[e], data.pointer[e + 1])
            zeros = np.zeros(data.pointer[e + 1] - data.pointer[e], dtype=np.int64)
            tables.append(BoxTable(zeros, data.boxes[rows], data.label[rows].astype(np.int64)))
        top += 2 * len(match_boxes(*tables, at_least).iou)
        bottom += len(tables[0].boxes) + len(tables[1].boxes)
    return top / bottom


def test_f1_is_that_of_all_pairs():
    data = simulate.boxes(5, 4, random_state=0).data
    found = agreement_evidence(data).coefficients
    assert found["box_f1"].value == pytest.approx(f1_of_pairs(data, 0.5))
    assert found["box_f1_75"].value == pytest.approx(f1_of_pairs(data, 0.75))


def test_two_boxes_on_one_count_once_and_classes_must_be_equal():
    rows = ["i"] * 3, ["ann", "bob", "bob"], [0, 0, 1], [0] * 3, [10] * 3, [10] * 3
    data = CrowdRegions.from_arrays(*rows)
    assert agreement_evidence(data).coefficients["box_f1"].value == pytest.approx(2 / 3)
    named = CrowdRegions.from_arrays(*rows, ["cat", "dog", "cat"])
    assert agreement_evidence(named).coefficients["box_f1"].value == pytest.approx(2 / 3)
    apart = CrowdRegions.from_arrays(*rows, ["cat", "dog", "dog"])
    assert agreement_evidence(apart).coefficients["box_f1"].value == 0
