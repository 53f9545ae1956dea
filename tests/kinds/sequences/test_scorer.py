"""Held-out tags: who knows the other workers' tags predicts hidden ones."""

from __future__ import annotations

import numpy as np
import pytest

from wisecrowd import simulate
from wisecrowd.aggregation import BSC
from wisecrowd.core.exceptions import DataError
from wisecrowd.inference.held_out import paired_difference, scoring_plan
from wisecrowd.kinds.sequences.scorer import held_out_tag_score


def test_tags_of_others_help():
    data = simulate.sequences(60, 6, simulate.PerTask(4), random_state=2).data
    plan = scoring_plan(data)
    n_tokens = int(data.token_pointer[-1])
    nothing = np.full((n_tokens, data.n_classes), 1 / data.n_classes)
    model = held_out_tag_score(lambda visible: BSC().fit(visible).marginals_, plan)
    ignorant = held_out_tag_score(lambda visible: nothing, plan)
    assert len(model.per_label) == len(data.tags)
    gain, error = paired_difference(model, ignorant)
    assert gain > 3 * error


def test_one_label_per_task_hides_nothing():
    plan = scoring_plan(simulate.sequences(20, 5, simulate.PerTask(1)).data)
    with pytest.raises(DataError, match="tasks with two labels or more"):
        held_out_tag_score(lambda visible: None, plan)
