"""Scores of learners on held-out tasks: which tasks, by whom they are judged, standard errors."""

from __future__ import annotations

import numpy as np
import pytest

from wisecrowd.inference.held_out import paired_difference
from wisecrowd.learning import VoteRegression
from wisecrowd.learning.training.crowd_classifier import Training
from wisecrowd.learning.training.held_out_scoring import (
    TaskFolds,
    held_out_score,
    held_out_tasks,
    score_held_out,
)
from wisecrowd.learning.training.rows_of_features import as_targets


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, 60)
    X = rng.normal(size=(60, 2)) + 2.0 * np.eye(2)[truth]
    right = rng.random((60, 3)) < [0.9, 0.8, 0.5]
    votes = np.where(right, truth[:, None], 1 - truth[:, None])
    return X, as_targets(votes, 60), truth


def test_every_labelled_task_is_held_out_once_and_never_trained_on(data, monkeypatch):
    X, labels, _ = data
    labels = labels.select_annotations(labels.task != 7)
    folds = TaskFolds.of(labels, 0)
    assert folds.n_used == 5
    assert folds.rows.tolist() == [i for i in range(60) if i != 7]
    seen = []
    fit = VoteRegression._fit

    def spy(self, training):
        seen.append(training.labels.tasks.tolist())
        return fit(self, training)

    monkeypatch.setattr(VoteRegression, "_fit", spy)
    held_out_tasks(VoteRegression(l2=1.0), Training(X, labels, np.full(60, -1)), folds)
    assert len(seen) == 5
    for number, train in enumerate(seen):
        assert sorted(train) == np.flatnonzero(folds.fold != number).tolist()
        assert 7 in train  # a task without labels hides nothing


def test_one_fold_of_many_tasks():
    many = as_targets(np.zeros((2400, 1), int), 2400)
    folds = TaskFolds.of(many, 0)
    assert folds.n_used == 1
    assert len(folds.rows) == 480


def test_the_judge_learns_workers_from_other_tasks(data):
    """A worker who is always wrong is as predictable as one who is always right."""
    truth = data[2]
    probas = np.clip(np.eye(2)[truth], 0.01, 0.99)
    flipped = as_targets(np.column_stack([truth, 1 - truth]), 60)
    score = score_held_out(probas, flipped)
    by_worker = [score.per_label[flipped.worker == j].mean() for j in (0, 1)]
    assert by_worker[0] == pytest.approx(by_worker[1], abs=0.05)
    assert score.mean > score_held_out(np.full((60, 2), 0.5), flipped).mean + 0.3


def test_labels_do_not_judge_themselves(data):
    """Labels that are coins, each by a worker of its own, cannot be predicted better than coins."""
    probas = np.clip(np.eye(2)[data[2]], 0.01, 0.99)
    coins = np.random.default_rng(1).integers(0, 2, 60)
    workers = np.array([f"w{i}" for i in range(60)], dtype=object)
    score = score_held_out(probas, as_targets((np.arange(60), workers, coins), 60))
    assert score.mean < np.log(0.5)


def test_scores_of_the_same_folds_are_compared_by_task(data):
    X, labels, _ = data
    noise = np.random.default_rng(1).normal(size=(60, 2))
    one = held_out_score(VoteRegression(l2=1.0), X, labels, n_used=5)
    other = held_out_score(VoteRegression(l2=1.0), noise, labels, n_used=5)
    lead, error = paired_difference(one, other)
    assert lead > 2 * error > 0
    per_task = np.bincount(one.task, one.per_label - other.per_label)
    assert lead == pytest.approx(per_task.sum() / 180)
    expected = per_task.std(ddof=1) * np.sqrt(60) / 180
    assert error == pytest.approx(expected, rel=1e-6)


def test_the_method_itself_does_not_change(data):
    X, labels, _ = data
    method = VoteRegression(l2=1.0)
    before = dict(vars(method))
    first, second = (held_out_score(method, X, labels, seed=3).per_label for _ in range(2))
    assert vars(method) == before
    np.testing.assert_array_equal(first, second)
