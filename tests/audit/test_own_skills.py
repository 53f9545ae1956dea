"""Workers are called copies only if their own matrices do not explain their agreement."""

from __future__ import annotations

import numpy as np
import pytest

from wisecrowd import CrowdLabels, simulate
from wisecrowd.aggregation import HierarchicalDawidSkene
from wisecrowd.audit import find_clones, find_collusion
from wisecrowd.audit.own_skills import unexplained_z


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
    monkeypatch.setattr("wisecrowd.audit.clones.unexplained_z", lambda *given: np.array([2.9]))
    monkeypatch.setattr("wisecrowd.audit.collusion.unexplained_z", lambda *given: np.array([2.9]))
    (finding,) = find_clones(team(copies=True)).findings()
    assert finding.severity == "medium"
    assert "labels of so few workers cannot tell, 20 known tasks can" in finding.explanation
    assert "known answers of 20" in finding.remedy
    (finding,) = find_collusion(team(copies=True)).findings()
    assert finding.severity == "medium"
    assert "20 known tasks can" in finding.explanation
