"""Held-out masks: the other workers' masks predict hidden ones."""

from __future__ import annotations

import numpy as np
import pytest

from wisecrowd import simulate
from wisecrowd.aggregation import MaskEM, MaskVote
from wisecrowd.core.exceptions import DataError
from wisecrowd.inference.held_out import paired_difference, scoring_plan
from wisecrowd.kinds.masks.methods.patterns import MaskPatterns
from wisecrowd.kinds.masks.scorer import (
    MaskScorer,
    held_out_mask_score,
    pattern_labels,
    pattern_means,
)


def crowd():
    return simulate.masks(12, 5, simulate.PerTask(4), height=30, width=24, random_state=2).data


class Ignorant:
    """A fit that gives every pixel the same probability."""

    def __init__(self, data):
        self.n_soft_ = np.ones(data.n_tasks, dtype=np.int64)
        self.soft_start_ = np.zeros(data.n_tasks, dtype=np.int64)
        self.soft_length_ = data.height * data.width
        self.soft_value_ = np.full(data.n_tasks, 0.5)


def test_masks_of_others_help():
    plan = scoring_plan(crowd())
    model = held_out_mask_score(lambda visible: MaskEM().fit(visible), plan)
    ignorant = held_out_mask_score(Ignorant, plan)
    gain, error = paired_difference(model, ignorant)
    assert gain > 3 * error


def test_labels_of_patterns_are_the_pixels_of_the_masks():
    data = crowd()
    labels, annotation = pattern_labels(MaskPatterns.of(data))
    inside = labels.label == 1
    found = np.bincount(annotation[inside], labels.weight[inside], data.n_annotations)
    assert found.tolist() == data.area.tolist()


def test_means_of_patterns_are_those_of_the_pixels():
    data = crowd()
    part = data.select_annotations(data.worker != 0)
    model, patterns = MaskEM().fit(part), MaskPatterns.of(data)
    found = pattern_means(patterns, model)
    for i, task in enumerate(data.tasks.tolist()):
        pixels = model.pixel_probabilities(task).ravel(order="F")
        for p in np.flatnonzero(patterns.task == i):
            runs = zip(patterns.runs.start[patterns.pattern == p],
                       patterns.runs.end[patterns.pattern == p], strict=True)  # fmt: skip
            own = np.concatenate([pixels[a:b] for a, b in runs])
            assert found[p] == pytest.approx(own.mean())


def test_one_mask_per_task_hides_nothing():
    plan = scoring_plan(simulate.masks(6, 3, simulate.PerTask(1)).data)
    with pytest.raises(DataError, match="two masks or more"):
        held_out_mask_score(Ignorant, plan)


def test_agreement_of_a_fit_with_itself():
    data = simulate.masks(8, 5, height=30, width=24, miss=0.4, random_state=4).data
    one, other = MaskEM().fit(data), MaskVote().fit(data)
    assert MaskScorer().agreement(one, one) == 1
    assert 0.3 < MaskScorer().agreement(one, other) < 1
