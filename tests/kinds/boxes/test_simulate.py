"""Simulated boxes: rates, bias and noise are those that were asked for."""

from __future__ import annotations

import numpy as np
import pytest

from wisecrowd import simulate
from wisecrowd.core.exceptions import ParameterError
from wisecrowd.kinds.boxes.metrics import sides_of


def test_misses_and_phantoms():
    made = simulate.boxes(400, 5, simulate.Dense(), miss=0.3, phantoms=0.0, bias=0.0)
    rate = np.bincount(made.data.box_worker, minlength=5) / made.truth.n_boxes
    error = np.sqrt(made.miss * (1 - made.miss) / made.truth.n_boxes)
    assert (np.abs(rate - (1 - made.miss)) < 4.5 * error).all()
    empty = simulate.boxes(400, 5, simulate.Dense(), mean_objects=0.0, phantoms=0.5)
    per_image = np.bincount(empty.data.box_worker, minlength=5) / 400
    assert per_image == pytest.approx(empty.phantoms, abs=0.15)
    assert (np.diff(empty.data.pointer) == 0).any()


def test_bias_and_noise_of_sides():
    made = simulate.boxes(
        300, 3, simulate.Dense(), miss=0.0, phantoms=0.0, noise=0.02, looseness=0.1, bias=0.03
    )
    data, true = made.data, made.truth
    assert np.array_equal(np.diff(true.pointer)[data.task], np.diff(data.pointer))
    inside = np.arange(data.n_boxes) - data.pointer[data.box_annotation]
    order = np.lexsort((inside, data.box_annotation))
    # Without misses, boxes of an image keep their order from left to right, up to noise.
    place = true.pointer[data.box_task] + inside
    unit = np.tile(true.boxes[place, 2:], 2)
    away = (sides_of(data.boxes[order]) - sides_of(true.boxes[place])) / unit * [-1, -1, 1, 1]
    near = np.abs(away).max(axis=1) < 0.5
    for j in range(3):
        own = near & (data.box_worker == j)
        assert np.median(away[own], axis=0) == pytest.approx(made.bias[j], abs=0.03)


def test_hard_objects_are_missed_by_all():
    easy = simulate.boxes(200, 5, miss=0.1, phantoms=0.0).data.n_boxes
    assert simulate.boxes(200, 5, miss=0.1, phantoms=0.0, hard=1.0).data.n_boxes < 0.4 * easy


def test_seeds_classes_and_wrong_parameters():
    one, two = (simulate.boxes(20, 4, classes=("a", "b"), random_state=3).data for _ in range(2))
    assert np.array_equal(one.boxes, two.boxes)
    assert one.classes.tolist() == ["a", "b"]
    for params in ({"miss": 2.0}, {"noise": -1.0}, {"classes": ("a", "a")}, {"looseness": -0.5}):
        with pytest.raises(ParameterError):
            simulate.boxes(20, 4, **params)
