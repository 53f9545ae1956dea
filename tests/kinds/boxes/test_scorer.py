"""Held-out boxes: a better consensus predicts hidden workers better."""

from __future__ import annotations

import numpy as np
import pytest

from wisecrowd import simulate
from wisecrowd.aggregation import BoxConsensus
from wisecrowd.core.exceptions import DataError
from wisecrowd.kinds.boxes.container import CrowdRegions
from wisecrowd.kinds.boxes.scorer import BoxScorer, answers_of, look_quality


def test_quality_of_a_look_by_hand():
    rows = [("a", "x", 0, 0, 10, 10), ("a", "y", 0, 0, 10, 10), ("a", "z", 0, 0, 10, 8),
            ("a", "z", 50, 50, 10, 10), ("b", "x", *[None] * 4)]  # fmt: skip
    data = CrowdRegions.from_arrays(*(list(column) for column in zip(*rows, strict=True)))
    model = BoxConsensus(corners="median").fit(data)
    assert model.n_boxes_.tolist() == [1, 0]
    quality = look_quality(data, answers_of(model))
    assert quality.tolist() == pytest.approx([1, 1, 2 * 0.8 / 3, 1])


def test_a_better_consensus_has_a_better_score():
    data = simulate.boxes(40, 6, simulate.Dense(), miss=0.2, phantoms=0.3).data
    scorer = BoxScorer()
    plan = scorer.plan(data)
    assert plan.n_hidden == data.n_annotations

    def score(threshold):
        return scorer.score_held_out(lambda part: BoxConsensus(threshold=threshold).fit(part), plan)

    good, loose, strict = (score(threshold) for threshold in (0.5, 0.01, 1.0))
    assert good.mean > loose.mean + 0.02
    assert good.mean > strict.mean + 0.02
    assert 0 < good.standard_error < 0.1
    assert len(good.per_label) == data.n_annotations


def test_scores_against_the_truth_and_claims():
    made = simulate.boxes(40, 6, simulate.Dense(), miss=0.1, phantoms=0.1)
    scorer, model = BoxScorer(), BoxConsensus().fit(made.data)
    found = scorer.score(model, scorer.match(made.truth, made.data))
    assert tuple(found) == scorer.with_truth
    assert found["box_f1"] == model.score(made.data, made.truth) > 0.95
    assert scorer.agreement(model, model) == 1
    assert scorer.claim(model, made.data)["precision_expected"] == pytest.approx(
        np.mean(model.box_confidence_)
    )


def test_images_that_one_worker_saw_cannot_be_hidden():
    data = CrowdRegions.from_arrays(["a"], ["x"], [0], [0], [1], [1])
    scorer = BoxScorer()
    with pytest.raises(DataError, match="two workers saw"):
        scorer.score_held_out(lambda part: BoxConsensus().fit(part), scorer.plan(data))
