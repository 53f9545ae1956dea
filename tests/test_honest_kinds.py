"""Benchmarks of honest kinds on little, and comparisons of these kinds without a truth."""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks.honest import boxes, masks, same, sets

import wisecrowd as wc
from wisecrowd import simulate
from wisecrowd.kinds.boxes.metrics import known_boxes

CROWDS = {
    "sets": lambda: simulate.sets(20, 5, simulate.PerTask(3), classes=["a", "b"]),
    "same": lambda: simulate.same_votes(10, 4, 80, 2, random_state=0),
    "boxes": lambda: simulate.boxes(10, 4, simulate.PerTask(3), random_state=0),
    "masks": lambda: simulate.masks(8, 4, simulate.PerTask(3), height=16, width=16),
}
METHODS = {
    "sets": ["set-vote", "shared-two-coin"], "same": ["signed-spectral"],
    "boxes": ["box-consensus", "box-em"], "masks": ["mask-vote", "mask-em"],
}  # fmt: skip


@pytest.mark.parametrize("kind", CROWDS)
def test_a_comparison_without_truth_has_held_out_scores_with_errors(kind):
    table = wc.compare(CROWDS[kind]().data, methods=METHODS[kind])
    assert sorted(table["method"]) == sorted(METHODS[kind])
    assert np.isfinite(table["held_out_score"]).all()
    assert (table["standard_error"] > 0).all()


def test_caution_about_sets_of_a_tiny_crowd():
    rows = [*sets.caution((20,), (0,)), *sets.prototypes(20, (0,))]
    assert all(row.met is None and "→" in row.measured for row in rows)
    crowd = simulate.sets(30, 5, simulate.PerTask(3), random_state=1)
    truth = sets.KnownSets(np.ones(30, dtype=bool), crowd.members)
    old, new = sets.losses(sets.SharedTwoCoin, crowd.data, truth)
    assert old["exact_sets"] == new["exact_sets"]
    assert old["log_loss"] != new["log_loss"]


def test_caution_about_pairs_of_a_tiny_crowd():
    (row,) = same.caution((12,), 20, (0,))
    assert "→" in row.measured


def test_claims_of_boxes_of_a_tiny_crowd():
    made = simulate.boxes(15, 5, simulate.PerTask(4), random_state=0)
    rows = boxes.real(made.data, known_boxes(made.truth, made.data))
    assert [row.met is None for row in rows] == [False, False, False, True]


def test_claims_of_masks_of_a_tiny_crowd():
    inside = masks.raster(np.array([[8.0, 16.0, 16.0, 8.0]]), 4, 5)
    assert np.argwhere(inside).tolist() == [[2, 1], [2, 2]]
    assert all("→" in row.measured for row in masks.simulated(3, 16))
