"""CoupledTensor: recovery, what is identified, the budget of triples, real crowds."""

from __future__ import annotations

import numpy as np
import pytest

from wisecrowd.aggregation.coupled_tensor import CoupledTensor
from wisecrowd.aggregation.dawid_skene import DawidSkene
from wisecrowd.core.exceptions import ParameterError, WisecrowdWarning
from wisecrowd.core.labels import CrowdLabels
from wisecrowd.simulate import Bernoulli, FixedConfusion, crowd
from wisecrowd.testing.crowds import asymmetric_confusions


def made_crowd(n_tasks, n_workers, n_classes=3, share=0.8, seed=0):
    return crowd(
        n_tasks,
        n_workers * FixedConfusion(asymmetric_confusions(n_workers, n_classes)),
        Bernoulli(share),
        class_prior={2: (0.6, 0.4), 3: (0.5, 0.3, 0.2)}[n_classes],
        random_state=seed,
    )


def test_error_of_the_confusion_matrices_falls_with_the_number_of_tasks():
    errors = []
    for n_tasks in (500, 8000):
        error = [
            np.abs(CoupledTensor().fit(made.labels).confusion_ - made.confusion).mean()
            for made in (made_crowd(n_tasks, 6, seed=seed) for seed in range(3))
        ]
        errors.append(np.mean(error))
    assert 2.5 < errors[0] / errors[1] < 6.5  # 4 for 16 times as many tasks


def test_objective_never_rises_and_stops_when_nothing_moves():
    made = made_crowd(300, 6)
    model = CoupledTensor(max_iter=300, tol=1e-7).fit(made.labels)
    assert model.converged_
    assert np.diff(model.history_).max() <= 1e-12
    assert model.n_iter_ == len(model.history_) < 300


def test_a_worker_in_no_triple_is_fitted_to_the_others():
    made = made_crowd(2000, 5, 3, share=1.0)
    labels = made.labels
    seldom = np.flatnonzero((labels.worker != 4) | (labels.task < 20))
    labels = CrowdLabels.from_arrays(*(x[seldom] for x in (labels.task, labels.worker,
                                                           labels.label)))  # fmt: skip
    everyone = CoupledTensor().fit(labels)
    assert everyone.identified_.all()
    with pytest.warns(WisecrowdWarning, match="1 of 5 workers"):
        model = CoupledTensor(min_shared=21).fit(labels)
    assert model.identified_.tolist() == [True] * 4 + [False]
    assert np.abs(model.confusion_[:4] - made.confusion[:4]).mean() < 0.05


def test_the_budget_of_triples_is_kept_and_said():
    made = made_crowd(400, 9, 2)
    with pytest.warns(WisecrowdWarning, match="Triples of workers are drawn"):
        model = CoupledTensor(max_triples=60).fit(made.labels)
    full = CoupledTensor().fit(made.labels)
    assert np.abs(model.confusion_ - full.confusion_).mean() < 0.05


def test_without_triples_it_warns_and_fits_pairs():
    task = np.repeat(np.arange(120), 2)
    pairs = np.array([(0, 1), (1, 2), (0, 2)])
    worker = pairs[np.arange(120) % 3].ravel()
    truth = np.arange(120) // 3 % 2
    label = np.repeat(truth, 2)
    label[::17] = 1 - label[::17]
    with pytest.warns(WisecrowdWarning, match="3 of 3 workers are in no triple"):
        model = CoupledTensor().fit(CrowdLabels.from_arrays(task, worker, label))
    assert np.isfinite(model.probas_).all()
    assert np.mean(model.labels_ == truth) > 0.9


def test_the_start_counts():
    made = made_crowd(200, 5)
    plain = CoupledTensor(max_iter=1).fit(made.labels)
    start = np.roll(plain.probas_, 1, axis=1)
    other = CoupledTensor(max_iter=1).fit(made.labels, init=start)
    assert np.abs(plain.probas_ - other.probas_).max() > 1e-3


def test_refuses_no_triples():
    with pytest.raises(ParameterError, match="max_triples"):
        CoupledTensor(max_triples=0).fit(CrowdLabels.from_matrix([[0, 1], [1, 1]]))


@pytest.mark.parametrize(("name", "bar"), [("bluebird", 0.1204), ("rte", 0.0813)])
def test_real_crowds(real_crowd, name, bar):
    labels, known = real_crowd(name)
    model = CoupledTensor(max_triples=10**5 if name == "bluebird" else 2000)
    if name == "rte":
        with pytest.warns(WisecrowdWarning, match="Triples"):
            model.fit(labels)
    else:
        model.fit(labels)
    assert 1 - model.score(labels, known) <= bar
    assert 1 - DawidSkene().fit(labels, init=model).score(labels, known) <= bar
