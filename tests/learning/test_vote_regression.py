"""VoteRegression: closed forms, the choice of the penalty, and refused input."""

from __future__ import annotations

import numpy as np
import pytest

from wisecrowd.core.exceptions import DataError, ParameterError
from wisecrowd.kinds.classes.container import CrowdLabels
from wisecrowd.learning import VoteRegression
from wisecrowd.learning.vote_regression import PENALTIES, _rotated, held_out_votes


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def crowd(rng, n=80, n_features=3, n_classes=3, per_task=4):
    X = 3.0 + 2.0 * rng.normal(size=(n, n_features))
    label = rng.integers(0, n_classes, (n, per_task))
    label[:, 0] = (X[:, 0] > 3).astype(int)
    task = np.repeat(np.arange(n), per_task)
    return X, CrowdLabels.from_arrays(task, np.tile(np.arange(per_task), n), label.ravel())


def vote_shares(labels):
    counts = np.zeros((labels.n_tasks, labels.n_classes))
    np.add.at(counts, (labels.task, labels.label), 1.0)
    return counts / counts.sum(axis=1, keepdims=True)


def test_the_gradient_is_zero_at_the_solution(rng):
    X, labels = crowd(rng)
    model = VoteRegression(l2=2.0).fit(X, labels)
    standard = (X - X.mean(axis=0)) / X.std(axis=0)
    residual = model.predict_proba(X) - vote_shares(labels)  # (N, K)
    weights = model.coef_ * X.std(axis=0)
    np.testing.assert_allclose(residual.T @ standard + 2.0 * weights, 0.0, atol=1e-4)
    np.testing.assert_allclose(residual.sum(axis=0), 0.0, atol=1e-4)  # the intercept is free


def test_without_features_that_vary_the_prediction_is_the_mean_vote(rng):
    _, labels = crowd(rng)
    model = VoteRegression(l2=1.0).fit(np.ones((80, 2)), labels)
    expected = vote_shares(labels).mean(axis=0)
    np.testing.assert_allclose(model.predict_proba(np.ones((1, 2)))[0], expected, atol=1e-5)


def test_one_worker_who_is_always_right_gives_logistic_regression_on_the_truth(rng):
    from sklearn.linear_model import LogisticRegression

    X = rng.normal(size=(90, 4))
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    truth = (X[:, 0] + 0.5 * rng.normal(size=90) > 0).astype(int) + (X[:, 1] > 1)
    model = VoteRegression(l2=0.5).fit(X, truth)
    theirs = LogisticRegression(C=2.0, tol=1e-8, max_iter=2000).fit(X, truth)
    np.testing.assert_allclose(model.predict_proba(X), theirs.predict_proba(X), atol=1e-4)


def test_gold_replaces_the_votes(rng):
    X, labels = crowd(rng)
    gold = {int(i): 2 for i in np.flatnonzero(X[:, 1] > 3)}
    model = VoteRegression(l2=1.0).fit(X, labels, gold=gold)
    alone = VoteRegression(l2=1.0).fit(X, labels)
    rows = sorted(gold)
    assert (model.labels_[rows] == 2).all()
    assert model.predict_proba(X[rows])[:, 2].mean() > alone.predict_proba(X[rows])[:, 2].mean()


def test_many_features_are_rotated_without_loss(rng):
    X = np.hstack([rng.normal(size=(12, 30)), np.ones((12, 1))])
    design, back = _rotated(X)
    assert design.shape[1] <= 13
    weights = rng.normal(size=(2, design.shape[1]))
    np.testing.assert_allclose(X @ (weights @ back).T, design @ weights.T, atol=1e-9)
    # The penalty is the same too: rotated weights have the same length.
    lengths = [np.linalg.norm(w[:, :-1]) for w in (weights, weights @ back)]
    assert lengths[0] == pytest.approx(lengths[1])


def test_the_penalty_is_the_best_of_held_out_votes(rng):
    X, labels = crowd(rng, n=60, n_features=8)
    model = VoteRegression().fit(X, labels)
    scores = {row["l2"]: row["held_out_log_likelihood"] for row in model.history_}
    assert set(scores) == set(PENALTIES)
    assert model.l2_ == max(scores, key=scores.get)
    noise = rng.normal(size=(60, 8))  # features without any relation to the votes
    assert VoteRegression().fit(noise, labels).l2_ > model.l2_


def test_held_out_votes_are_scored_by_fits_without_them():
    targets = np.array([[0.8, 0.2]] * 5 + [[0.4, 0.6]] * 5)
    fold = np.random.default_rng(0).permutation(10) % 5
    expected = 0.0
    for number in range(5):  # without features, the prediction is the mean share of the others
        mean = targets[fold != number].mean(axis=0)
        expected += float((targets[fold == number] * np.log(mean)).sum()) / 10
    score = held_out_votes(np.ones((10, 1)), targets, 0)[1.0]
    assert score == pytest.approx(expected, abs=1e-5)


def test_bad_parameters_and_input(rng):
    X, labels = crowd(rng)
    with pytest.raises(ParameterError, match="l2 is -1"):
        VoteRegression(l2=-1).fit(X, labels)
    with pytest.raises(ParameterError, match="no checkpoints"):
        VoteRegression().fit(X, labels, resume=True)
    model = VoteRegression(l2=1.0).fit(X, labels)
    with pytest.raises(DataError):
        model.predict(X[:, :2])
    with pytest.warns(UserWarning, match="validation set was not used"):
        VoteRegression(l2=1.0).fit(X, labels, valid=(X[:3], [0, 1, 1]))
