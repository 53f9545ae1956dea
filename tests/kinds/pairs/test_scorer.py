"""Held-out votes: folds, comparable scores, and the better model wins."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from wisecrowd.aggregation import BradleyTerry, CrowdBT, Davidson
from wisecrowd.core.exceptions import DataError
from wisecrowd.inference.held_out import paired_difference
from wisecrowd.kinds.pairs.container import CrowdPairs
from wisecrowd.kinds.pairs.scorer import (
    _nameless_order,
    by_worker,
    held_out_votes,
    vote_folds,
)
from wisecrowd.metrics import vote_log_loss
from wisecrowd.simulate import VoteWorkers, votes


def test_folds_have_equal_sizes_and_leave_out_votes_without_weight():
    pairs = votes(5, 4, 53, random_state=0).pairs
    assert sorted(np.bincount(vote_folds(pairs)).tolist()) == [10, 10, 11, 11, 11]
    weight = np.ones(53)
    weight[:3] = 0
    assert (vote_folds(replace(pairs, weight=weight))[:3] == -1).all()


def test_score_is_the_log_loss_of_hidden_votes():
    pairs = votes(5, 4, 60, VoteWorkers(tie_level=0.0), random_state=1).pairs
    folds = vote_folds(pairs, place=_nameless_order(pairs))
    found, logs = held_out_votes(BradleyTerry().fit, pairs), []
    for fold in range(5):
        fit = BradleyTerry().fit(pairs.select_annotations(folds != fold))
        hidden = pairs.select_annotations(folds == fold)
        logs.append(-vote_log_loss(hidden.outcome, fit.predict_proba(hidden)))
    assert found.mean == pytest.approx(np.mean(logs), abs=1e-12)
    assert 0 < found.standard_error < 0.2
    assert 0 < found.accuracy < 1


def test_the_tie_layer_makes_models_without_ties_comparable():
    """Half-won ties with the layer predict as well as Davidson's model of ties."""
    pairs = votes(8, 20, 3000, VoteWorkers(tie_level=0.3), random_state=2).pairs
    both = (by_worker(held_out_votes(one().fit, pairs)) for one in (Davidson, BradleyTerry))
    gain, _ = paired_difference(*both)
    assert abs(gain) < 0.003


def test_workers_who_flip_votes_are_predicted_by_their_model():
    pairs = votes(12, 20, 3000, VoteWorkers(adversaries=0.3), random_state=3).pairs
    crowd, plain = (by_worker(held_out_votes(one().fit, pairs)) for one in (CrowdBT, BradleyTerry))
    gain, error = paired_difference(crowd, plain)
    assert gain > 5 * error > 0
    with pytest.raises(ValueError, match="different labels"):
        paired_difference(crowd, by_worker(held_out_votes(BradleyTerry().fit, pairs[:30])))


def test_few_votes_are_refused():
    pairs = CrowdPairs.from_arrays(None, None, ["x"] * 3, ["y"] * 3, ["left"] * 3)
    with pytest.raises(DataError, match="at least 5 votes"):
        held_out_votes(BradleyTerry().fit, pairs)


def test_one_worker_has_a_standard_error_over_votes():
    pairs = votes(5, 1, 100, random_state=4).pairs
    assert 0 < held_out_votes(BradleyTerry().fit, pairs).standard_error < 0.5
