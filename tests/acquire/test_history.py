from __future__ import annotations

import numpy as np
import pytest

from wisecrowd import CrowdLabels, simulate
from wisecrowd.acquire.history import (
    History,
    NewAnswers,
    RoundRecord,
    check_target,
    flips,
    gold_score,
    habit_of,
    labels_settled,
    wilson_lower,
    window_of,
)
from wisecrowd.acquire.shrunken_models import check_model, fit_beliefs
from wisecrowd.aggregation import DawidSkene
from wisecrowd.core.exceptions import DataError, ParameterError
from wisecrowd.kinds.classes.prior import class_prior


def plain(labels):
    return class_prior(None, None, labels)


def some_crowd(seed=0, n_tasks=80, n_classes=3):
    made = simulate.crowd(
        n_tasks, 10 * simulate.OneCoinWorkers(8, 2), n_classes=n_classes, random_state=seed
    )
    return made.labels


# ---------------------------------------------------------------------------------------- models


def test_coin_parameters_are_the_shrunken_shares_at_the_fixed_point():
    labels = some_crowd()
    coin, _ = fit_beliefs(labels, plain(labels))
    credit = coin.rows(labels.task)[np.arange(labels.n_annotations), labels.label]
    right = np.bincount(labels.worker, credit, labels.n_workers)
    expected = (right + 6) / (labels.labels_per_worker + 8)
    np.testing.assert_allclose(coin.law.accuracy, expected, atol=1e-6)
    mass = coin.probas.sum(axis=0) + 0.25 * labels.n_tasks / 3
    np.testing.assert_allclose(coin.law.class_prior, mass / mass.sum(), atol=1e-6)


def test_confusion_rows_are_shrunk_to_the_pooled_matrix():
    labels = some_crowd()
    _, found = fit_beliefs(labels, plain(labels))
    q = found.rows(labels.task)
    counts = np.zeros((labels.n_workers, 3, 3))
    np.add.at(counts.transpose(0, 2, 1), (labels.worker, labels.label), q)
    guess = np.full((3, 3), 0.125) + 0.625 * np.eye(3)
    pooled = counts.sum(axis=0) + guess
    pooled /= pooled.sum(axis=1, keepdims=True)
    expected = counts + 4 * pooled
    expected /= expected.sum(axis=2, keepdims=True)
    np.testing.assert_allclose(found.law.matrices, expected, atol=2e-3)  # 12 steps


def test_two_labels_per_task_do_not_collapse_to_one_class():
    rng = np.random.default_rng(1)
    truth = rng.integers(0, 2, 400)
    task = np.repeat(np.arange(400), 2)
    label = np.where(rng.random(800) < 0.75, truth[task], 1 - truth[task])
    labels = CrowdLabels.from_arrays(task, rng.integers(0, 40, 800), label, duplicates="keep")
    for one in fit_beliefs(labels, plain(labels)):
        assert 0.3 < one.label.mean() < 0.7
        assert (one.label == truth).mean() > 0.7


def test_gold_enters_through_the_task_prior():
    labels = some_crowd()
    gold = {labels.tasks[0]: labels.classes[2]}
    for one in fit_beliefs(labels, class_prior(None, gold, labels)):
        assert one.probas[0].tolist() == [0, 0, 1]


def test_a_method_of_the_user_drives_by_its_posterior_and_its_law():
    labels = some_crowd()
    (one,) = fit_beliefs(labels, plain(labels), DawidSkene())
    fitted = DawidSkene().fit(labels)
    assert (one.probas == fitted.probas_).all()
    assert (one.law.matrices == fitted.confusion_).all()


def test_models_are_checked():
    with pytest.raises(ParameterError, match="did you mean 'confusion'"):
        check_model("confusoin")
    from wisecrowd.aggregation import MajorityVote

    with pytest.raises(DataError, match="no label law"):
        fit_beliefs(some_crowd(), plain(some_crowd()), MajorityVote())


def test_one_class_and_unlabelled_tasks():
    labels = CrowdLabels.from_arrays([0], ["a"], ["x"], tasks=[0, 1], workers=["a", "b"])
    for one in fit_beliefs(labels, plain(labels)):
        assert one.entropy().tolist() == [0, 0]
        assert one.margin().tolist() == [1, 1]
        assert one.label.tolist() == [0, -1]


# ----------------------------------------------------------------------------------------- guard


def test_advantages_are_log_ratios_to_habit():
    labels = some_crowd()
    half = labels.select_annotations(np.arange(labels.n_annotations) % 2 == 0)
    rest = np.arange(labels.n_annotations) % 2 == 1
    new = NewAnswers(labels.task[rest], labels.worker[rest], labels.label[rest])
    history = History()
    history.observe(None, NewAnswers(half.task, half.worker, half.label), half, plain(half), 10)
    coin = history.beliefs[0]
    history.observe(half, new, labels, plain(labels), 20)
    had = half.labels_per_task[new.task] > 0
    right = coin.law.accuracy[new.worker]
    q = coin.probas[new.task, new.label]
    p = q * right + (1 - q) * (1 - right) / 2
    habit = habit_of(half, new.worker, new.label)
    expected = (np.log(p) - np.log(habit))[had].sum()
    assert history.records[-1].gains["one-coin"] == pytest.approx(expected)
    assert history.trusted  # a good crowd is predicted better than by habit


def test_answers_at_random_are_not_predicted_better_than_by_habit():
    rng = np.random.default_rng(0)
    E = 1200
    labels = CrowdLabels.from_arrays(
        rng.integers(0, 200, E), rng.integers(0, 30, E), rng.integers(0, 2, E), duplicates="keep"
    )
    part = np.arange(E) % 2 == 0
    half = labels.select_annotations(part)
    history = History()
    history.observe(None, NewAnswers(half.task, half.worker, half.label), half, plain(half), 600)
    new = NewAnswers(labels.task[~part], labels.worker[~part], labels.label[~part])
    history.observe(half, new, labels, plain(labels), E)
    assert not history.trusted


# ------------------------------------------------------------------------------------- stop rule


def records(changes, step=25):
    return [RoundRecord(step * (i + 1), {}, np.array(c, np.int64)) for i, c in enumerate(changes)]


def test_constant_answers_stop_at_the_first_window():
    seen = records([[]] * 2)
    assert flips(seen, 50) is None
    assert labels_settled(seen, 20, 50, 0.03) == (False, None)
    assert labels_settled(records([[]] * 3), 20, 75, 0.03) == (True, 0.0)


def test_alternating_answers_never_stop_and_zero_never_stops():
    for n in range(3, 40):
        alternating = records([[0, 1, 2]] * n)
        assert not labels_settled(alternating, 20, 25 * n, 0.03)[0]
        assert not labels_settled(records([[]] * n), 20, 25 * n, 0.0)[0]
        assert not labels_settled(records([[]] * n), 20, 25 * n, None)[0]


def test_two_labels_per_task_are_needed():
    assert not labels_settled(records([[]] * 4), 60, 100, 0.03)[0]
    assert labels_settled(records([[]] * 5), 60, 125, 0.03)[0]


def test_window_and_gold():
    assert (window_of(10), window_of(2000)) == (50, 200)
    assert gold_score(np.array([0, 1, -1, 1]), np.array([0, 0, 0, -1])) == (1, 2)
    assert wilson_lower(0, 0) == 0
    assert wilson_lower(30, 30) == pytest.approx(30 / (30 + 1.959964**2), abs=1e-6)
    with pytest.raises(ParameterError, match="30 held-out gold"):
        check_target(0.9, 29)
