"""ConfusionVector against enumeration, its neighbours in the chain of models, and its simulator."""

from __future__ import annotations

import numpy as np
import pytest

from wisecrowd import simulate
from wisecrowd.aggregation import ConfusionVector, DawidSkene, OneCoin
from wisecrowd.kinds.classes.container import CrowdLabels


def crowd(n_tasks, n_workers, n_classes, seed=0, labels_per_task=4):
    made = simulate.crowd(
        n_tasks,
        n_workers * simulate.DirichletWorkers(),
        simulate.PerTask(labels_per_task),
        class_prior=np.arange(1, n_classes + 1) / np.arange(1, n_classes + 1).sum(),
        random_state=seed,
    )
    return made.labels


def enumerated_posterior(labels, class_accuracy, class_prior):
    """Bayes' rule, one label at a time."""
    K = labels.n_classes
    scores = np.tile(class_prior, (labels.n_tasks, 1))
    for i, j, y in zip(labels.task, labels.worker, labels.label, strict=True):
        for k in range(K):
            w = class_accuracy[j, k]
            scores[i, k] *= w if k == y else (1 - w) / (K - 1)
    return scores


@pytest.mark.parametrize("accelerate", [False, True])
def test_two_classes_without_prior_are_dawid_and_skene(accelerate):
    labels = crowd(60, 8, 2)
    options = {"prior": None, "max_iter": 30, "tol": 0.0, "accelerate": accelerate}
    vector = ConfusionVector(**options).fit(labels)
    full = DawidSkene(**options).fit(labels)
    np.testing.assert_allclose(vector.probas_, full.probas_, atol=1e-10)
    np.testing.assert_allclose(vector.confusion_, full.confusion_, atol=1e-10)
    np.testing.assert_allclose(vector.history_, full.history_, rtol=1e-12)


@pytest.mark.parametrize("seed", range(3))
def test_likelihoods_are_nested(seed):
    labels = crowd(80, 10, 3, seed)
    start = np.random.default_rng(seed).dirichlet(np.ones(3), size=80)
    options = {"prior": None, "max_iter": 3000, "tol": 1e-13}
    coin = OneCoin(**options).fit(labels, init=start)
    vector = ConfusionVector(**options).fit(labels, init=coin)
    full = DawidSkene(**options).fit(labels, init=vector)
    assert coin.score(labels) < vector.score(labels) < full.score(labels)


def test_posterior_is_bayes_rule():
    labels = crowd(50, 6, 3)
    model = ConfusionVector().fit(labels)
    joint = enumerated_posterior(labels, model.class_accuracy_, model.class_prior_)
    np.testing.assert_allclose(model.probas_, joint / joint.sum(axis=1, keepdims=True), atol=1e-12)


def test_objective_is_log_likelihood_plus_log_prior():
    labels = crowd(50, 6, 4)
    model = ConfusionVector(prior=(1.5, 0.25)).fit(labels)
    w = model.class_accuracy_
    joint = enumerated_posterior(labels, w, model.class_prior_)
    expected = np.log(joint.sum(axis=1)).sum() + (1.5 * np.log(w) + 0.25 * np.log(1 - w)).sum()
    assert model.history_[-1] == pytest.approx(expected, rel=1e-12)


def test_m_step_counts_one_label_at_a_time():
    labels = crowd(30, 5, 3)
    start = np.random.default_rng(0).dirichlet(np.ones(3), size=30)
    model = ConfusionVector(prior=(1, 0.5), max_iter=1).fit(labels, init=start)
    for j in range(labels.n_workers):
        mine = labels.worker == j
        q = start[labels.task[mine]]
        for k in range(3):
            right = q[labels.label[mine] == k, k].sum()
            expected = (right + 1) / (q[:, k].sum() + 1.5)
            assert model.class_accuracy_[j, k] == pytest.approx(expected)


@pytest.mark.parametrize("prior", ["weak", None, (0.0, 2.0)])
@pytest.mark.parametrize("accelerate", [False, True])
def test_objective_never_falls(prior, accelerate):
    for seed in range(4):
        labels = crowd(40, 9, 4, seed)
        model = ConfusionVector(prior=prior, tol=0, accelerate=accelerate, max_iter=60).fit(labels)
        rounding = 1e-11 * abs(model.history_[-1])
        assert np.diff(model.history_).min() >= -rounding


def test_acceleration_reaches_the_same_optimum_sooner():
    labels = crowd(300, 12, 3)
    plain = ConfusionVector(tol=1e-12, max_iter=3000).fit(labels)
    fast = ConfusionVector(tol=1e-12, max_iter=3000, accelerate=True).fit(labels)
    assert fast.n_iter_ < plain.n_iter_
    np.testing.assert_allclose(fast.class_accuracy_, plain.class_accuracy_, atol=1e-3)
    w = fast.class_accuracy_
    np.testing.assert_allclose(np.diagonal(fast.confusion_, axis1=1, axis2=2), w, atol=1e-12)


def test_recovers_class_experts():
    made = simulate.crowd(
        4000,
        10 * simulate.ClassExperts(n_known=1, p=0.95, q=0.6),
        simulate.PerTask(6),
        class_prior=[0.5, 0.3, 0.2],
        random_state=1,
    )
    model = ConfusionVector().fit(made.labels)
    truth = np.diagonal(made.confusion, axis1=1, axis2=2)
    assert np.abs(model.class_accuracy_ - truth).max() < 0.08


def test_unmet_classes_and_unheard_workers():
    labels = CrowdLabels.from_arrays(
        [0, 0], ["a", "b"], ["x", "x"], classes=["x", "y", "z"], workers=["a", "b", "c"]
    )
    flat = ConfusionVector(prior=None).fit(labels)
    np.testing.assert_allclose(flat.class_accuracy_[2], 1 / 3)
    weak = ConfusionVector().fit(labels)
    np.testing.assert_allclose(weak.class_accuracy_[2], 2 / 3)
    assert flat.labels_.tolist() == weak.labels_.tolist() == ["x"]


def test_one_class_is_always_right():
    model = ConfusionVector().fit(CrowdLabels.from_arrays([0, 1], ["a", "b"], ["x", "x"]))
    assert model.probas_.tolist() == [[1.0], [1.0]]
    assert model.class_accuracy_.tolist() == [[1.0], [1.0]]
    assert model.history_[-1] == 0.0
