"""Majority vote: counting, the tie rule, priors, and very many classes."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from wisecrowd.aggregation import MajorityVote
from wisecrowd.core.exceptions import ParameterError
from wisecrowd.kinds.classes.container import CrowdLabels


def some_labels(n_tasks=60, n_workers=9, n_classes=4, seed=0):
    rng = np.random.default_rng(seed)
    keep = rng.random((n_tasks, n_workers)) < 0.6
    matrix = np.where(keep, rng.integers(0, n_classes, (n_tasks, n_workers)), -1)
    return CrowdLabels.from_matrix(matrix, missing=-1, classes=range(n_classes)), matrix


def test_shares_are_counts_over_counts():
    labels, matrix = some_labels()
    counts = (matrix[:, :, None] == np.arange(4)).sum(axis=1)
    expected = counts / counts.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(MajorityVote().fit(labels).probas_, expected, atol=1e-15)


def test_smoothing_adds_votes_to_every_class():
    labels, matrix = some_labels()
    counts = (matrix[:, :, None] == np.arange(4)).sum(axis=1) + 0.5
    expected = counts / counts.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(MajorityVote(smoothing=0.5).fit(labels).probas_, expected)


def test_a_tie_goes_to_the_class_that_is_more_common():
    labels = CrowdLabels.from_arrays(
        [0, 0, 1, 1, 2, 2], ["a", "b"] * 3, ["x", "y", "y", "y", "z", "x"]
    )
    model = MajorityVote().fit(labels)
    assert model.labels_.tolist() == ["y", "y", "x"]
    assert model.ties_.tolist() == [True, False, True]


def test_workers_are_judged_by_expected_agreement():
    labels = CrowdLabels.from_matrix([[0, 0, 1], [1, 1, 1]])
    model = MajorityVote().fit(labels)
    np.testing.assert_allclose(model.worker_accuracy_, [5 / 6, 5 / 6, 2 / 3])
    assert (model.worker_accuracy_error_ > 0.1).all()


def test_a_task_prior_multiplies_the_votes():
    labels = CrowdLabels.from_arrays([0, 0, 0, 1], list("abca"), [0, 0, 1, 2], classes=range(3))
    prior = np.array([[0.2, 0.5, 0.3], [0.6, 0.4, 0.0]])
    probas = MajorityVote().fit(labels, task_prior=prior).probas_
    np.testing.assert_allclose(probas[0], np.array([0.4, 0.5, 0]) / 0.9)
    np.testing.assert_allclose(probas[1], prior[1])  # the only label is impossible: the prior


def test_gold_that_nobody_chose_is_kept():
    labels = CrowdLabels.from_arrays([0, 0, 1], list("aba"), [0, 0, 1], classes=range(3))
    model = MajorityVote().fit(labels, gold={0: 2})
    assert model.labels_.tolist() == [2, 1]
    assert model.worker_accuracy_.tolist() == [0.5, 0.0]


@pytest.mark.parametrize("smoothing", [-1, np.nan, "much"])
def test_smoothing_is_checked(smoothing):
    with pytest.raises(ParameterError, match="smoothing"):
        MajorityVote(smoothing=smoothing).fit(CrowdLabels.from_matrix([[0, 1]]))


def many_classes(n_tasks=34_000, n_classes=35_754, per_task=3, seed=0):
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, n_classes, n_tasks)
    task = np.repeat(np.arange(n_tasks, dtype=np.int32), per_task)
    wrong = rng.integers(0, n_classes, len(task))
    label = np.where(rng.random(len(task)) < 0.8, truth[task], wrong).astype(np.int32)
    worker = (np.arange(len(task)) % 400).astype(np.int32)
    vocabularies = np.arange(n_tasks), np.arange(400), np.arange(n_classes)
    return CrowdLabels(task, worker, label, *vocabularies), truth


def test_very_many_classes_need_little_memory():
    """A dense posterior would be 9.7 GB."""
    labels, truth = many_classes()
    MajorityVote().fit(labels).predict_proba(labels)  # compiles, which takes memory of its own
    tracemalloc.start()
    model = MajorityVote().fit(labels)
    probas = model.predict_proba(labels)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 100e6
    assert probas.shape == (34_000, 35_754)
    np.testing.assert_allclose(probas.sum(axis=1), 1.0)
    np.testing.assert_array_equal(probas.data, model.probas_.data)
    assert model.score(labels, truth) > 0.85
    assert (model.confidence_ > 0.3).all()


@pytest.mark.parametrize(
    ("name", "expected"), [("bluebird", 0.7593), ("rte", 0.8969), ("dog", 0.8222)]
)
def test_accuracy_on_real_data_with_fractional_ties(real_crowd, name, expected):
    labels, truth = real_crowd(name)
    probas = MajorityVote().fit(labels).probas_
    best = probas >= probas.max(axis=1, keepdims=True) - 1e-9
    right = labels.classes == np.array([truth[t] for t in labels.tasks.tolist()])[:, None]
    assert np.mean((best & right).sum(axis=1) / best.sum(axis=1)) == pytest.approx(
        expected, abs=5e-5
    )
