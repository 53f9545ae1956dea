"""Held-out texts: who knows the others' texts agrees with hidden ones."""

from __future__ import annotations

import numpy as np
import pytest

from wisecrowd import simulate
from wisecrowd.aggregation import Rover
from wisecrowd.core.exceptions import DataError
from wisecrowd.inference.held_out import paired_difference, scoring_plan
from wisecrowd.kinds.texts.container import CrowdTexts
from wisecrowd.kinds.texts.scorer import TextScorer, held_out_text_score


def test_texts_of_others_help():
    data = simulate.texts(40, 6, simulate.PerTask(4), random_state=2).data
    plan = scoring_plan(data)
    model = held_out_text_score(lambda visible: Rover().fit(visible).texts_, plan)
    nothing = held_out_text_score(lambda visible: np.full(40, "", dtype=object), plan)
    assert len(model.per_label) == data.n_annotations
    assert nothing.mean == pytest.approx(0, abs=1e-12)
    gain, error = paired_difference(model, nothing)
    assert gain > 3 * error


def test_the_score_of_one_hidden_text_is_its_share_of_equal_words():
    data = CrowdTexts.from_arrays([1, 1], ["a", "b"], ["x y z", "X y, w v"])
    score = held_out_text_score(lambda visible: visible.text, scoring_plan(data))
    assert score.per_label == pytest.approx([0.5, 0.5])


def test_one_text_per_task_hides_nothing():
    plan = scoring_plan(simulate.texts(20, 5, simulate.PerTask(1)).data)
    with pytest.raises(DataError, match="tasks with two answers or more"):
        held_out_text_score(lambda visible: None, plan)


def test_scores_against_a_truth_leave_out_unknown_tasks():
    data = CrowdTexts.from_arrays([1, 2], ["a", "b"], ["x y", "z"])
    scorer, model = TextScorer(), Rover().fit(data)
    scores = scorer.score(model, scorer.match({1: "x w"}, data))
    assert (scores["word_accuracy"], scores["exact_texts"]) == (0.5, 0.0)
    assert scorer.agreement(model, model) == 1
