"""Imagined crowds follow the law they are drawn from, and see what the model lacks."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from wisecrowd import CrowdLabels, simulate
from wisecrowd.aggregation import DawidSkene, MajorityVote
from wisecrowd.audit.parametric_bootstrap import common_errors, run_bootstrap, simulate_from_fit


def test_labels_follow_the_confusion_matrices_of_the_fit():
    made = simulate.crowd(20_000, 3 * simulate.DirichletWorkers(), n_classes=3)
    fit = DawidSkene().fit(made.labels)
    crowd, truth = simulate_from_fit(made.labels, fit.label_law(), np.random.default_rng(0))
    np.testing.assert_array_equal(crowd.task, made.labels.task)
    np.testing.assert_allclose(np.bincount(truth) / 20_000, fit.class_prior_, atol=0.015)
    for j in range(3):
        mine = crowd.worker == j
        counts = np.zeros((3, 3))
        np.add.at(counts, (truth[crowd.task[mine]], crowd.label[mine]), 1)
        counts /= counts.sum(axis=1, keepdims=True)
        np.testing.assert_allclose(counts, fit.confusion_[j], atol=0.04)


def test_common_errors_is_the_mean_over_pairs_of_labels():
    labels = simulate.crowd(50, 6 * simulate.OneCoinWorkers(4, 2), n_classes=3).labels
    fit = DawidSkene().fit(labels)
    rest = [
        fit.probas_[i, y] - fit.probas_[i] @ np.diag(fit.confusion_[j])
        for i, j, y in zip(labels.task, labels.worker, labels.label, strict=True)
    ]
    pairs = [
        rest[a] * rest[b]
        for a, b in itertools.combinations(range(len(rest)), 2)
        if labels.task[a] == labels.task[b]
    ]
    assert common_errors(labels, fit) == pytest.approx(np.mean(pairs))
    alone = CrowdLabels.from_arrays([1, 2], ["a", "b"], [0, 1])
    assert common_errors(alone, DawidSkene().fit(alone)) == 0.0


@pytest.mark.parametrize("model", [DawidSkene(), MajorityVote()])
def test_gaps_are_those_of_true_crowds(model):
    """The mean gap of imagined crowds is near the mean gap of crowds of the same population."""
    workers, graph = 25 * simulate.OneCoinWorkers(6, 3), simulate.PerTask(4)
    true, imagined = [], []
    for seed in range(8):
        made = simulate.crowd(250, workers, graph, random_state=seed)
        model.fit(made.labels)
        true.append(np.mean(model.labels_ == made.truth) - model.confidence_.mean())
        found = run_bootstrap(made.labels, model, 4, np.random.default_rng(seed))
        imagined.append(found.gap.mean())
        assert found.gap_within.shape == (4,)
    error = np.hypot(np.std(true), np.std(imagined)) / np.sqrt(8)
    assert abs(np.mean(true) - np.mean(imagined)) < 3 * error + 0.005


def test_misfit_is_seen_where_tasks_differ_in_difficulty():
    easy_and_hard = simulate.GivenDifficulty(np.tile([0.0, 0.9], 300))
    workers = 20 * simulate.OneCoinWorkers(18, 2)
    hard = simulate.crowd(600, workers, difficulty=easy_and_hard, n_classes=3).labels
    plain = simulate.crowd(600, workers, n_classes=3).labels
    rng = np.random.default_rng(0)
    assert run_bootstrap(hard, DawidSkene().fit(hard), 10, rng).misfit > 5
    assert abs(run_bootstrap(plain, DawidSkene().fit(plain), 10, rng).misfit) < 3
