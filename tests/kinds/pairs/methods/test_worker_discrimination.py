"""WorkerDiscrimination: Bradley-Terry as a special case, its own simulator, gradient."""

from __future__ import annotations

import numpy as np
from tests.kinds.pairs.finite_differences import assert_gradient, random_votes

from wisecrowd.kinds.pairs.methods.bradley_terry import BradleyTerry
from wisecrowd.kinds.pairs.methods.worker_discrimination import (
    DiscriminationLaw,
    WorkerDiscrimination,
)
from wisecrowd.simulate import VoteWorkers, votes


def test_equal_workers_are_bradley_terry():
    pairs = votes(8, 10, 800, random_state=0).pairs
    fit = WorkerDiscrimination(spread=1e-4, tol=1e-9).fit(pairs)
    assert np.allclose(fit.discrimination_, 1, atol=1e-4)
    assert np.allclose(fit.scores_, BradleyTerry().fit(pairs).scores_, atol=1e-3)


def test_recovers_discriminations():
    people = VoteWorkers(discrimination_spread=0.7)
    made = votes(12, 20, 20000, people, spread=1.5, random_state=1)
    fit = WorkerDiscrimination().fit(made.pairs)
    assert np.corrcoef(fit.discrimination_, made.discrimination)[0, 1] > 0.95
    weight = made.pairs.labels_per_worker
    assert abs(weight @ fit.discrimination_ / weight.sum() - 1) < 1e-9


def test_adversaries_have_a_negative_discrimination():
    made = votes(12, 20, 4000, VoteWorkers(adversaries=0.25), spread=1.5, random_state=2)
    fit = WorkerDiscrimination().fit(made.pairs)
    assert (fit.discrimination_[made.is_adversary] < 0).all()
    assert (fit.discrimination_[~made.is_adversary] > 0).all()
    assert fit.score(made.pairs, made.truth) > 0.8


def test_gradient():
    assert_gradient(DiscriminationLaw(0.5, 0.8), random_votes(), 0, 1)
