"""FastDawidSkene against exhaustive search over all hard assignments."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from wisecrowd import simulate
from wisecrowd.aggregation import DawidSkene, FastDawidSkene
from wisecrowd.kinds.classes.container import CrowdLabels


def crowd(n_tasks, n_workers, n_classes, seed=0):
    return simulate.crowd(
        n_tasks,
        n_workers * simulate.DirichletWorkers(),
        simulate.PerTask(3),
        class_prior=np.arange(1, n_classes + 1) / np.arange(1, n_classes + 1).sum(),
        random_state=seed,
    ).labels


def joint(labels, class_prior, confusion):
    """Return p(labels of a task, class) one label at a time, (N, K)."""
    scores = np.tile(class_prior, (labels.n_tasks, 1))
    for i, j, y in zip(labels.task, labels.worker, labels.label, strict=True):
        scores[i] *= confusion[j, :, y]
    return scores


def classification_likelihood(labels, classes, alpha):
    """Return the best objective when task ``i`` is certainly of class ``classes[i]``."""
    K = labels.n_classes
    counts = np.zeros((labels.n_workers, K, K)) + alpha
    for i, j, y in zip(labels.task, labels.worker, labels.label, strict=True):
        counts[j, classes[i], y] += 1
    confusion = counts / counts.sum(axis=2, keepdims=True)
    share = np.bincount(classes, minlength=K) / labels.n_tasks
    chosen = joint(labels, share, confusion)[np.arange(labels.n_tasks), classes]
    return np.log(chosen).sum() + (alpha * np.log(confusion)).sum()


def test_restarts_find_the_best_of_all_assignments():
    labels = crowd(8, 4, 2, seed=3)
    alpha = np.array([[2.0, 1.0], [1.0, 2.0]])  # the weak prior for two classes
    best = max(
        classification_likelihood(labels, np.array(classes), alpha)
        for classes in itertools.product(range(2), repeat=8)
    )
    assert FastDawidSkene(n_init=40).fit(labels).history_[-1] == pytest.approx(best, rel=1e-12)


@pytest.mark.parametrize("prior", ["weak", None, 0.3])
def test_objective_is_the_classification_likelihood_and_never_falls(prior):
    for seed in range(4):
        labels = crowd(60, 7, 3, seed)
        model = FastDawidSkene(prior=prior, tol=0).fit(labels)
        assert np.diff(model.history_).min(initial=0) >= -1e-9
        alpha = {"weak": np.full((3, 3), 2 / 3) + 4 / 3 * np.eye(3), None: 0.0, 0.3: 0.3}[prior]
        scores = joint(labels, model.class_prior_, model.confusion_).max(axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            log_prior = np.where(alpha == 0, 0, alpha * np.log(model.confusion_)).sum()
        assert model.history_[-1] == pytest.approx(np.log(scores).sum() + log_prior, rel=1e-9)


def test_fixed_point_is_that_of_its_own_labels():
    labels = crowd(80, 6, 3)
    model = FastDawidSkene(tol=0).fit(labels)
    assert model.converged_
    assert not model.ties_.any()
    codes = np.searchsorted(model.classes_, model.labels_)
    alpha = np.full((3, 3), 2 / 3) + 4 / 3 * np.eye(3)
    expected = classification_likelihood(labels, codes, alpha)
    assert model.history_[-1] == pytest.approx(expected, rel=1e-12)


def test_posterior_is_soft_and_its_best_class_the_hard_one():
    labels = crowd(80, 6, 3)
    model = FastDawidSkene().fit(labels)
    scores = joint(labels, model.class_prior_, model.confusion_)
    np.testing.assert_allclose(model.probas_, scores / scores.sum(1, keepdims=True), atol=1e-12)
    assert ((model.probas_ > 0.001) & (model.probas_ < 0.999)).any()
    np.testing.assert_allclose(model.predict_proba(labels), model.probas_, atol=1e-12)


def test_score_is_the_log_likelihood_not_that_of_the_best_classes():
    labels = crowd(80, 6, 3)
    model = FastDawidSkene().fit(labels)
    scores = joint(labels, model.class_prior_, model.confusion_)
    expected = np.log(scores.sum(axis=1)).sum() / labels.n_annotations
    assert model.score(labels) == pytest.approx(expected, rel=1e-12)


def test_ties_are_shared_whatever_the_row_order():
    votes = CrowdLabels.from_matrix([[0, 1], [1, 0]])
    model = FastDawidSkene(class_prior="uniform").fit(votes)
    np.testing.assert_allclose(model.probas_, 0.5)
    np.testing.assert_allclose(model.confusion_[0], model.confusion_[1])


def test_fewer_iterations_than_soft_steps():
    labels = crowd(2000, 20, 4)
    hard = FastDawidSkene(tol=1e-9, max_iter=500).fit(labels)
    soft = DawidSkene(tol=1e-9, max_iter=500, accelerate=False).fit(labels)
    assert hard.n_iter_ < soft.n_iter_ / 2
    assert np.mean(hard.labels_ == soft.labels_) > 0.9
