"""Held-out tags: better models of spans predict hidden tags better."""

from __future__ import annotations

import pytest

from wisecrowd import simulate
from wisecrowd.aggregation import BSC, TokenWise
from wisecrowd.core.exceptions import DataError
from wisecrowd.inference.held_out_labels import paired_difference, scoring_plan
from wisecrowd.inference.held_out_tags import held_out_tag_score


def test_the_model_of_the_crowd_beats_votes():
    data = simulate.sequences(150, 8, simulate.PerTask(4), random_state=2).data
    plan = scoring_plan(data)
    model, votes = (
        held_out_tag_score(lambda visible: method.fit(visible).marginals_, plan)
        for method in (BSC(), TokenWise("majority-vote"))
    )
    assert len(model.per_label) == len(data.tags)
    gain, error = paired_difference(model, votes)
    assert gain > 2 * error


def test_one_label_per_task_hides_nothing():
    plan = scoring_plan(simulate.sequences(20, 5, simulate.PerTask(1)).data)
    with pytest.raises(DataError, match="tasks with two labels or more"):
        held_out_tag_score(lambda visible: None, plan)
