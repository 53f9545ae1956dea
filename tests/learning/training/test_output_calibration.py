"""Calibration: the formula, recovery of exponents and dependence, and what a fit publishes."""

from __future__ import annotations

import numpy as np
import pytest

from wisecrowd.kinds.classes.container import CrowdLabels
from wisecrowd.learning import CCEM
from wisecrowd.learning.training.label_model import forecast, softmax
from wisecrowd.learning.training.output_calibration import (
    USUAL,
    Calibration,
    calibration_by_classes,
    judge_by_labels,
)
from wisecrowd.storage.saved_methods import load

RIGHT = 0.75  # accuracy of the workers


def held_out_crowd(n=1500, sure=1.0, copies=1, n_classes=3, per_task=3, seed=0):
    """Return log f to the power ``sure``, labels, true confusion matrices and classes.

    Each label is given by ``copies`` workers.
    """
    rng = np.random.default_rng(seed)
    log_f = 1.5 * rng.normal(size=(n, n_classes))
    log_f -= np.log(np.exp(log_f).sum(axis=1, keepdims=True))
    truth = (np.exp(log_f).cumsum(axis=1) < rng.random((n, 1))).sum(axis=1)
    task = np.repeat(np.arange(n), per_task)
    wrong = (truth[task] + rng.integers(1, n_classes, len(task))) % n_classes
    label = np.where(rng.random(len(task)) < RIGHT, truth[task], wrong)
    worker = np.tile(np.arange(per_task), n)
    columns = [
        np.repeat(task, copies),
        np.repeat(copies * worker, copies),
        np.repeat(label, copies),
    ]
    columns[1] = columns[1] + np.tile(np.arange(copies), len(task))
    labels = CrowdLabels.from_arrays(*columns)
    table = np.full((n_classes, n_classes), (1 - RIGHT) / (n_classes - 1))
    np.fill_diagonal(table, RIGHT)
    confusion = np.broadcast_to(table, (labels.n_workers, n_classes, n_classes))
    return sure * log_f, labels, confusion, truth


def judged(*held_out):
    return judge_by_labels(*held_out).calibration


def test_the_formula_by_hand():
    labels = CrowdLabels.from_arrays([0, 0, 1], list("aba"), [0, 1, 1], tasks=[0, 1, 2])
    prior = np.log([[0.7, 0.3], [0.5, 0.5], [0.8, 0.2]])
    confusion = np.array([[[0.9, 0.1], [0.2, 0.8]], [[0.6, 0.4], [0.3, 0.7]]])
    found = Calibration(0.5, 2.0, 1.0).apply(forecast(prior, labels, confusion), prior, labels)
    two = np.array([0.7**2 * (0.9 * 0.4) ** 0.5, 0.3**2 * (0.2 * 0.7) ** 0.5])
    one = np.array([0.5**2 * 0.1, 0.5**2 * 0.8])
    none = np.sqrt([0.8, 0.2])
    for row, expected in zip(found, (two, one, none), strict=True):
        np.testing.assert_allclose(row, expected / expected.sum(), rtol=1e-12)


def test_a_class_without_any_probability_does_not_win():
    labels = CrowdLabels.from_arrays([0], ["a"], [0], classes=[0, 1])
    certain = np.array([[0.0, -2000.0]])
    assert Calibration(1.0, 0.1, 3.0).apply(np.array([[1.0, 0.0]]), certain, labels)[0, 0] > 0.99


@pytest.mark.parametrize("sure", [0.3, 1.0, 3.0])
def test_exponents_are_recovered_from_labels_alone(sure):
    log_f, labels, confusion, truth = held_out_crowd(sure=sure)
    found = judged(log_f, labels, confusion)
    assert found.alone == pytest.approx(1 / sure, rel=0.35)
    assert found.beside_labels == pytest.approx(1 / sure, rel=0.35)
    assert found.dependence <= 0.3  # the labels are independent
    assert calibration_by_classes(log_f, truth).alone == pytest.approx(1 / sure, rel=0.35)


def test_copied_labels_are_dependent():
    log_f, labels, confusion, _ = held_out_crowd(n=600, copies=3)
    found = judged(log_f, labels, confusion)
    assert found.dependence >= 0.3
    few = judged(log_f[:2], labels[[0, 1]], confusion)
    assert 0.1 < few.alone < 10  # two tasks are no reason for an extreme exponent


def test_the_gain_is_what_features_tell_about_labels():
    log_f, labels, confusion, truth = held_out_crowd()
    found = judge_by_labels(log_f, labels, confusion)
    assert found.gain > 5 * found.error > 0
    shuffled = np.random.default_rng(0).permutation(log_f)
    useless = judge_by_labels(shuffled, labels, confusion)
    assert useless.gain < 2 * useless.error
    certain = np.log(np.full((len(truth), 3), 1e-6))
    certain[np.arange(len(truth)), truth] = 0.0
    most = judge_by_labels(certain, labels, confusion).gain
    entropy = RIGHT * np.log(RIGHT) + (1 - RIGHT) * np.log((1 - RIGHT) / 2)
    assert most == pytest.approx(np.log(3) + entropy, abs=0.03)  # the information of a label


def test_one_label_per_task_says_nothing_about_dependence():
    log_f, labels, confusion, _ = held_out_crowd(per_task=1)
    assert judged(log_f, labels, confusion).dependence == USUAL


def test_weights_count_as_repetitions_and_rows_may_change_places():
    log_f, labels, confusion, _ = held_out_crowd(n=400, sure=3.0)
    doubled = CrowdLabels(
        labels.task, labels.worker, labels.label, labels.tasks, labels.workers, labels.classes,
        weight=np.where(labels.task < 200, 0.0, 1.0),
    )  # fmt: skip
    half = np.arange(200, 400)
    expected = judged(log_f[half], labels[half], confusion)
    assert judged(log_f, doubled, confusion) == pytest.approx(expected)
    order = np.random.default_rng(1).permutation(400)
    moved = judged(log_f[order], labels[order], confusion)
    assert moved == pytest.approx(judged(log_f, labels, confusion))


def test_a_fit_publishes_saves_and_uses_its_calibration(tmp_path):
    log_f, labels, _, truth = held_out_crowd(n=400)
    options = {"module": "linear", "epochs": 5, "lr": 0.1}
    plain = CCEM(**options, calibrate=False, selection="crowd").fit(log_f, labels)
    model = CCEM(**options).fit(log_f, labels)
    assert model.selection_ == "crowd"
    calibration = Calibration(*model.calibration_)
    output = plain._log_probas(log_f)
    expected = calibration.apply(plain.probas_, output, labels)
    np.testing.assert_allclose(model.probas_, expected, atol=1e-9)
    np.testing.assert_allclose(model.predict_proba(log_f, labels), model.probas_, atol=1e-6)
    alone = softmax(calibration.alone * output)
    np.testing.assert_allclose(model.predict_proba(log_f), alone, atol=1e-6)
    np.testing.assert_array_equal(model.labels_, model.classes_[model.probas_.argmax(axis=1)])
    model.save(tmp_path / "model")
    assert load(tmp_path / "model").calibration_ == model.calibration_
    known = CCEM(**options).fit(log_f, labels, valid=(log_f, truth))
    assert known.calibration_[2] == USUAL
