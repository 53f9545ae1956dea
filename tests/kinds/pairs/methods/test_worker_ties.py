"""WorkerTies: its own simulator, Davidson as a special case, gradient, held-out votes."""

from __future__ import annotations

import numpy as np
import pytest
from tests.kinds.pairs.finite_differences import assert_gradient, random_votes

from wisecrowd.inference.held_out import paired_difference
from wisecrowd.kinds.pairs.methods.davidson import Davidson
from wisecrowd.kinds.pairs.methods.worker_ties import WorkerTies, WorkerTiesLaw
from wisecrowd.kinds.pairs.scorer import by_worker, held_out_votes
from wisecrowd.simulate import VoteWorkers, votes

PEOPLE = VoteWorkers(
    tie_level=-0.2, tie_spread=1.0, discrimination_spread=0.5, side=0.3, side_spread=0.5
)


def test_recovers_its_own_simulator():
    made = votes(10, 40, 20000, PEOPLE, random_state=0)
    fit = WorkerTies().fit(made.pairs)
    assert np.corrcoef(fit.tie_threshold_, made.tie_threshold)[0, 1] > 0.97
    assert np.corrcoef(fit.side_, made.side)[0, 1] > 0.9
    assert np.corrcoef(np.log(fit.discrimination_), np.log(made.discrimination))[0, 1] > 0.8
    assert np.corrcoef(fit.scores_, made.scores)[0, 1] > 0.99
    assert fit.side_bias_ == pytest.approx(made.side.mean(), abs=0.1)


def test_predicts_hidden_votes_better_than_davidson():
    pairs = votes(10, 30, 4000, PEOPLE, random_state=1).pairs
    full, plain = (by_worker(held_out_votes(one().fit, pairs)) for one in (WorkerTies, Davidson))
    gain, error = paired_difference(full, plain)
    assert gain > 4 * error > 0


def test_without_spread_it_is_davidson():
    pairs = votes(8, 10, 1500, VoteWorkers(tie_level=0.0), random_state=2).pairs
    same = WorkerTies(tie_spread=0, discrimination_spread=0, side_spread=0, tol=1e-9).fit(pairs)
    plain = Davidson(tol=1e-9).fit(pairs)
    assert np.allclose(same.scores_, plain.scores_, atol=1e-5)
    assert np.allclose(same.tie_threshold_, plain.tie_level_, atol=1e-5)
    assert (same.discrimination_ == 1).all()
    assert (same.side_ == 0).all()
    assert np.allclose(same.high_, plain.high_, atol=1e-3)


def test_gradient():
    assert_gradient(WorkerTiesLaw(0.5, np.array([1.0, 0.5, 0.5])), random_votes(), 2, 3)
    fixed = WorkerTiesLaw(0.5, np.array([1.0, 0.5, 0.5]))
    assert_gradient(fixed, random_votes(seed=5), 2, 3, seed=6)
