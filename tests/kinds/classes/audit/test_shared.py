"""Which fit a part of an audit works with, and that parts share one."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from wisecrowd import CrowdLabels, simulate
from wisecrowd.aggregation import GLAD, Auto, DawidSkene, HierarchicalDawidSkene, MajorityVote
from wisecrowd.audit import find_clones, find_collusion
from wisecrowd.audit.crowd_audit import audit_crowd
from wisecrowd.kinds.classes.audit import shared
from wisecrowd.kinds.classes.audit.confidence import measure_confidence
from wisecrowd.kinds.classes.audit.drift import find_drift
from wisecrowd.kinds.classes.audit.label_distribution import find_label_outliers
from wisecrowd.kinds.classes.audit.shared import (
    common_errors,
    fit_or_default,
    fit_with_law,
    leave_one_out_posteriors,
    measure_misfit,
    simulate_from_fit,
    unexplained_z,
)


@pytest.fixture(scope="module")
def labels():
    workers = 8 * simulate.OneCoinWorkers(8, 2)
    return simulate.crowd(150, workers, simulate.PerTask(5), n_classes=3).labels


@pytest.fixture
def default_fits(monkeypatch):
    """Crowds to which the default method is fitted."""
    seen, fit = [], Auto._fit_without_checks
    monkeypatch.setattr(
        Auto, "_fit_without_checks", lambda model, data: seen.append(data) or fit(model, data)
    )
    return seen


def test_a_given_fit_is_kept_where_it_serves(labels, default_fits):
    vote, glad = MajorityVote().fit(labels), GLAD().fit(labels)
    other = DawidSkene(max_iter=3).fit(labels)
    assert fit_or_default(labels, vote) is vote
    assert fit_with_law(labels, glad) is glad
    assert fit_with_law(labels, vote, other) is other
    assert default_fits == []
    assert isinstance(fit_with_law(labels, vote), Auto)
    assert isinstance(fit_or_default(labels, None), Auto)
    assert default_fits == [labels, labels]


def test_an_audit_of_a_vote_shares_one_fit_with_a_law(labels, default_fits):
    parts = ["spammers", "label-distribution", "identifiability", "confidence"]
    vote = MajorityVote().fit(labels)
    found = audit_crowd(labels, fit=vote, parts=parts)
    assert sum(data is labels for data in default_fits) == 1
    assert found["confidence"].mean_confidence == pytest.approx(vote.confidence_.mean())
    plain = audit_crowd(labels, parts=["spammers"])
    np.testing.assert_array_equal(found["spammers"].capacity, plain["spammers"].capacity)


def test_a_given_source_is_used_instead_of_another_fit(labels, default_fits):
    source = DawidSkene().fit(labels)
    found = measure_confidence(labels, source=source)
    assert default_fits == []
    assert found.mean_confidence == pytest.approx(source.confidence_.mean())


def test_parts_accept_fits_without_confusion_matrices(labels):
    table = labels.to_dict()
    timed = type(labels).from_arrays(
        table["task"], table["worker"], table["label"], timestamp=table["task"]
    )
    for method in (GLAD, MajorityVote):
        fit = method().fit(timed)
        assert find_drift(timed, fit=fit).findings() == []
        assert find_label_outliers(timed, fit=fit).findings() == []


@pytest.mark.parametrize("weighted", [False, True])
def test_belief_is_the_prediction_from_the_other_labels(weighted):
    made = simulate.crowd(60, 6 * simulate.OneCoinWorkers(8, 2), n_classes=3).labels
    table = made.to_dict()
    weight = np.random.default_rng(0).integers(1, 4, made.n_annotations) if weighted else None
    labels = CrowdLabels.from_arrays(table["task"], table["worker"], table["label"], weight=weight)
    fit = DawidSkene().fit(labels)
    for one in leave_one_out_posteriors(labels, fit.label_law(), 5):
        without = labels.select_annotations(labels.worker != one.worker)
        expected = fit.predict_proba(without)[labels.task[one.rows]]
        np.testing.assert_allclose(one.belief, expected, atol=1e-9)
        assert (labels.worker[one.rows] == one.worker).all()


def test_only_tasks_that_others_labelled_count():
    labels = CrowdLabels.from_arrays(
        [1, 1, 2, 2, 3, 4], ["a", "b", "a", "b", "a", "a"], [0, 0, 1, 1, 0, 1]
    )
    law = DawidSkene().fit(labels).label_law()
    assert [(one.worker, len(one.rows)) for one in leave_one_out_posteriors(labels, law, 2)] == [
        (0, 2),
        (1, 2),
    ]
    assert list(leave_one_out_posteriors(labels, law, 3)) == []


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
    monkeypatch.setattr(shared, "MOST_TASKS", 100)
    seen = []
    fit = shared.fit_copy
    monkeypatch.setattr(shared, "fit_copy", lambda m, x: seen.append(x.n_tasks) or fit(m, x))
    assert np.isfinite(measure_misfit(labels, np.random.default_rng(0)))
    assert set(seen) == {100}


def small_crowd():
    workers = 5 * simulate.OneCoinWorkers(6, 3) + 1 * simulate.Copiers(0.9, sources=0)
    return simulate.crowd(60, workers, simulate.PerTask(4), n_classes=3, random_state=2).labels


def plain_z(labels, fit, one, other):
    """The formula, task by task."""
    sheets = [
        {i: y for i, j, y in zip(labels.task, labels.worker, labels.label, strict=True) if j == who}
        for who in (one, other)
    ]
    equal = expected = variance = 0.0
    for i in set(sheets[0]) & set(sheets[1]):
        e = sum(
            fit.probas_[i, k] * fit.confusion_[one, k, y] * fit.confusion_[other, k, y]
            for k in range(labels.n_classes)
            for y in range(labels.n_classes)
        )
        equal += sheets[0][i] == sheets[1][i]
        expected, variance = expected + e, variance + e * (1 - e)
    return (equal - expected) / np.sqrt(variance)


def test_z_is_that_of_the_formula():
    labels = small_crowd()
    fit = HierarchicalDawidSkene().fit(labels)
    group = np.array([0, 1, -1, 1, 1, 0])
    found = unexplained_z(labels, group, fit)
    three = [plain_z(labels, fit, *pair) for pair in ((1, 3), (1, 4), (3, 4))]
    assert found == pytest.approx([plain_z(labels, fit, 0, 5), np.median(three)], rel=1e-6)


def team(copies):
    """Two who agree almost always, among two who are often wrong: experts, or one and a copy."""
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 4, 300)

    def answers(accuracy):
        return np.where(rng.random(300) < accuracy, truth, rng.integers(0, 4, 300))

    weak = [answers(0.5) for _ in range(14 if copies else 2)]
    first = answers(0.5) if copies else answers(0.99)
    second = first.copy() if copies else answers(0.99)
    if copies:
        second[:6] = (second[:6] + 1) % 4
    return CrowdLabels.from_matrix(np.stack([*weak, first, second], axis=1))


def test_good_workers_of_a_small_team_are_not_called_copies():
    found = find_clones(team(copies=False)).findings()
    found += find_collusion(team(copies=False)).findings()
    assert all(finding.severity != "high" for finding in found)


def test_workers_whose_matrices_do_not_explain_it_are():
    (finding,) = find_clones(team(copies=True)).findings()
    assert (finding.severity, finding.affected) == ("high", (14, 15))
    assert "they probably copy" in finding.explanation


def test_otherwise_known_tasks_are_asked_for(monkeypatch):
    monkeypatch.setattr(
        "wisecrowd.kinds.classes.audit.clones.unexplained_z", lambda *given: np.array([2.9])
    )
    monkeypatch.setattr(
        "wisecrowd.kinds.classes.audit.collusion.unexplained_z", lambda *given: np.array([2.9])
    )
    (finding,) = find_clones(team(copies=True)).findings()
    assert finding.severity == "medium"
    assert "labels of so few workers cannot tell, 20 known tasks can" in finding.explanation
    assert "known answers of 20" in finding.remedy
    (finding,) = find_collusion(team(copies=True)).findings()
    assert finding.severity == "medium"
    assert "20 known tasks can" in finding.explanation
