"""Imagined crowds follow the law they are drawn from, and see what the model lacks."""

from __future__ import annotations

import itertools

import numpy as np

from wisecrowd import CrowdLabels, simulate
from wisecrowd.aggregation import DawidSkene
from wisecrowd.audit import parametric_bootstrap
from wisecrowd.audit.parametric_bootstrap import common_errors, measure_misfit, simulate_from_fit


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


def test_common_errors_are_sums_over_pairs_of_labels():
    labels = simulate.crowd(50, 6 * simulate.OneCoinWorkers(4, 2), n_classes=3).labels
    fit = DawidSkene().fit(labels)
    rest = [
        fit.probas_[i, y] - fit.probas_[i] @ np.diag(fit.confusion_[j])
        for i, j, y in zip(labels.task, labels.worker, labels.label, strict=True)
    ]
    sums = np.zeros(50)
    for a, b in itertools.permutations(range(len(rest)), 2):
        if labels.task[a] == labels.task[b]:
            sums[labels.task[a]] += rest[a] * rest[b]
    np.testing.assert_allclose(common_errors(labels, fit), sums, atol=1e-12)


def test_misfit_is_seen_where_tasks_differ_in_difficulty():
    easy_and_hard = simulate.GivenDifficulty(np.tile([0.0, 0.9], 300))
    workers = 20 * simulate.OneCoinWorkers(18, 2)
    hard = simulate.crowd(600, workers, difficulty=easy_and_hard, n_classes=3).labels
    plain = simulate.crowd(600, workers, n_classes=3).labels
    rng = np.random.default_rng(0)
    assert measure_misfit(hard, rng) > 5
    assert abs(measure_misfit(plain, rng)) < 3


def test_a_crowd_without_second_labels_has_no_misfit():
    alone = CrowdLabels.from_arrays([1, 2], ["a", "b"], [0, 1])
    one = CrowdLabels.from_arrays([1, 1], ["a", "b"], [0, 0])
    rng = np.random.default_rng(0)
    assert np.isnan(measure_misfit(alone, rng))
    assert np.isnan(measure_misfit(one, rng))


def test_a_large_crowd_is_sampled(monkeypatch):
    labels = simulate.crowd(300, 6 * simulate.OneCoinWorkers(4, 2)).labels
    monkeypatch.setattr(parametric_bootstrap, "MOST_TASKS", 100)
    seen = []
    fit = parametric_bootstrap.fit_copy
    monkeypatch.setattr(
        parametric_bootstrap, "fit_copy", lambda m, x: seen.append(x.n_tasks) or fit(m, x)
    )
    assert np.isfinite(measure_misfit(labels, np.random.default_rng(0)))
    assert set(seen) == {100}
