"""Held-out sets: the score of a hidden set, and better methods score higher."""

from __future__ import annotations

import numpy as np
import pytest

from wisecrowd import simulate
from wisecrowd.aggregation import LabelSetMixture, SetVote
from wisecrowd.core.exceptions import DataError
from wisecrowd.inference.held_out import scoring_plan
from wisecrowd.kinds.sets.container import CrowdSets
from wisecrowd.kinds.sets.methods.base import Ticks, pooled_rates, shrunk_rates
from wisecrowd.kinds.sets.scorer import held_out_set_score, score_hidden_sets


def test_the_score_is_the_log_probability_of_the_set():
    data = simulate.sets(20, 4, simulate.PerTask(3), classes=list("abc")).data
    hidden = np.arange(data.n_annotations) % 3 == 0
    visible, rest = data.select_annotations(~hidden), data.select_annotations(hidden)
    q = np.random.default_rng(0).uniform(0.05, 0.95, (20, 3))
    counts = Ticks(visible).counts(q)
    rates = shrunk_rates(counts, pooled_rates(counts, 30.0), 10.0)
    expected = []
    for e in range(rest.n_annotations):
        total, i, j = 0.0, rest.task[e], rest.worker[e]
        for k in range(3):
            ticked = k in rest.members[rest.pointer[e] : rest.pointer[e + 1]]
            s, f = rates[:, j, k] if ticked else 1 - rates[:, j, k]
            total += np.log(q[i, k] * s + (1 - q[i, k]) * f)
        expected.append(total)
    assert score_hidden_sets(visible, rest, q) == pytest.approx(expected, abs=1e-4)


def test_prototypes_predict_hidden_sets_better_than_votes():
    data = simulate.sets(150, 10, simulate.PerTask(4)).data
    plan = scoring_plan(data)
    votes, model = (
        held_out_set_score(lambda visible, make=make: make.fit(visible).probas_, plan).mean
        for make in (SetVote(), LabelSetMixture(n_prototypes=4))
    )
    assert model > votes + 0.1


def test_single_labels_cannot_be_hidden():
    data = CrowdSets.from_arrays(["s", "t"], ["a", "b"], ["x", "y"])
    with pytest.raises(DataError, match="two labels or more"):
        held_out_set_score(lambda visible: SetVote().fit(visible).probas_, scoring_plan(data))
