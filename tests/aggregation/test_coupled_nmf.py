"""CoupledNMF on labels."""

from __future__ import annotations

import numpy as np
import pytest

from wisecrowd import simulate
from wisecrowd.aggregation import CoupledNMF, DawidSkene, MajorityVote
from wisecrowd.core.exceptions import ParameterError
from wisecrowd.simulate import Dense, FixedConfusion, crowd


def mostly_spammers(seed=0, n_tasks=2000):
    """Return a crowd of 24 of whom 17 say anything, and the matrices it has."""
    rng = np.random.default_rng(seed)
    right = np.where(np.arange(24) < 7, rng.uniform(0.75, 0.9, 24), 1 / 3)
    confusion = np.full((24, 3, 3), 0.0) + ((1 - right) / 2)[:, None, None]
    confusion[:, np.arange(3), np.arange(3)] = right[:, None]
    made = crowd(n_tasks, 24 * FixedConfusion(confusion), Dense(), n_classes=3, random_state=seed)
    seen = rng.random(made.labels.n_annotations) < 0.4
    return made.labels.select_annotations(seen), made.truth, confusion


def test_skills_are_found_where_most_workers_say_anything():
    labels, truth, confusion = mostly_spammers()
    model = CoupledNMF().fit(labels)
    vote = MajorityVote().fit(labels)
    assert model.converged_
    assert model.score(labels, truth) >= vote.score(labels, truth) + 0.1
    assert np.abs(model.confusion_ - confusion).max() < 0.12
    assert (np.diff(model.history_) >= -1e-12).all()
    assert model.history_[-1] <= 0


def test_a_given_start_counts():
    labels, _, _ = mostly_spammers(n_tasks=60)
    start = np.random.default_rng(0).dirichlet(np.ones(3), labels.n_tasks)
    elsewhere = CoupledNMF(max_iter=1).fit(labels, init=start)
    plain = CoupledNMF(max_iter=1).fit(labels)
    assert np.abs(elsewhere.confusion_ - plain.confusion_).max() > 0.05


def test_equal_weights_are_another_fit():
    labels, _, _ = mostly_spammers(n_tasks=80)
    shared = CoupledNMF().fit(labels).confusion_
    equal = CoupledNMF(weights="equal").fit(labels).confusion_
    assert np.abs(shared - equal).max() > 1e-6


def test_wrong_parameters_are_refused():
    labels, _, _ = mostly_spammers(n_tasks=20)
    with pytest.raises(ParameterError, match="weights"):
        CoupledNMF(weights="few").fit(labels)


@pytest.mark.parametrize(("name", "bar"), [("bluebird", 0.1297), ("dog", 0.1747), ("rte", 0.0875)])
def test_published_errors(real_crowd, name, bar):
    labels, truth = real_crowd(name)
    model = CoupledNMF().fit(labels)
    assert 1 - model.score(labels, truth) <= bar
    after = DawidSkene().fit(labels, init=model)
    assert 1 - after.score(labels, truth) <= {"bluebird": 0.1112, "dog": 0.169, "rte": 0.08}[name]


def test_the_default_converges_on_a_good_dense_crowd():
    """EM is slow here: 500 steps left confusion matrices half a percent away."""
    made = simulate.crowd(
        300, 6 * simulate.OneCoinWorkers(17, 3), simulate.PerTask(6), n_classes=4, random_state=1
    )
    model = CoupledNMF().fit(made.labels)
    assert model.converged_
    assert model.n_iter_ > 500
