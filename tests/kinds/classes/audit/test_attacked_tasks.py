"""Attacked tasks: planted coalitions are found, clean crowds left alone, thin data named."""

import numpy as np
import pytest

from wisecrowd.aggregation import DawidSkene
from wisecrowd.audit import audit_crowd, find_attacked_tasks
from wisecrowd.core.exceptions import DataError
from wisecrowd.core.part import NotApplicable
from wisecrowd.kinds.classes.audit import attacked_tasks
from wisecrowd.kinds.classes.audit.attacked_tasks import AttackedTasks
from wisecrowd.kinds.classes.container import CrowdLabels


def attacked_crowd(seed, n_members=12, share=0.15, observed=0.3, n_tasks=1000, n_workers=60):
    """Return labels of which some workers lie together on some tasks; truth and these tasks."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(3, size=n_tasks)
    hit, target = rng.random(n_tasks) < share, (truth + rng.integers(1, 3, n_tasks)) % 3
    task, worker = np.nonzero(rng.random((n_tasks, n_workers)) < observed)
    right = rng.random(len(task)) < rng.uniform(0.6, 0.9, n_workers)[worker]
    label = np.where(right, truth[task], (truth[task] + rng.integers(1, 3, len(task))) % 3)
    lies = (worker < n_members) & hit[task]
    label[lies] = target[task][lies]
    ids = {"tasks": range(n_tasks), "workers": range(n_workers)}
    return CrowdLabels.from_arrays(task, worker, label, **ids), truth, hit


def area_under_curve(positive, score):
    order = score[positive][:, None] - score[~positive]
    return np.mean(order > 0) + np.mean(order == 0) / 2


@pytest.mark.parametrize("seed", [0, 1])
def test_a_coalition_and_its_tasks_are_found(seed):
    labels, truth, hit = attacked_crowd(seed)
    found = find_attacked_tasks(labels)
    np.testing.assert_array_equal(np.flatnonzero(found.member > 0.5), np.arange(12))
    assert area_under_curve(hit, found.attacked) > 0.85
    finding = found.findings()[0]
    assert (finding.id, finding.severity, len(finding.affected)) == ("attacked-tasks", "high", 12)
    before, after = (
        DawidSkene().fit(data).labels_ == truth for data in (labels, found.remove(labels))
    )
    assert after[hit].mean() >= before[hit].mean()


def test_clean_crowds_are_left_alone():
    for seed in range(5):
        labels, _, _ = attacked_crowd(seed, n_members=0)
        assert find_attacked_tasks(labels).findings() == []


def test_hard_tasks_are_not_an_attack():
    rng = np.random.default_rng(0)
    truth, hard = rng.integers(3, size=600), rng.random(600) < 0.3
    task, worker = np.nonzero(rng.random((600, 40)) < 0.4)
    right = rng.random(len(task)) < np.where(hard[task], 0.45, 0.9)
    label = np.where(right, truth[task], (truth[task] + rng.integers(1, 3, len(task))) % 3)
    assert find_attacked_tasks(CrowdLabels.from_arrays(task, worker, label)).findings() == []


def test_too_thin_data_are_named():
    labels, _, _ = attacked_crowd(0, observed=0.05)
    with pytest.raises(NotApplicable, match="share too few tasks"):
        find_attacked_tasks(labels)
    with pytest.raises(NotApplicable, match="four workers"):
        find_attacked_tasks([[0, 1], [1, 1]])
    assert "attacked-tasks" in audit_crowd(labels, parts=["attacked-tasks"]).skipped


def test_labels_of_members_alone_are_not_removed():
    labels = CrowdLabels.from_arrays([0, 0, 1, 1], [0, 1, 0, 1], [1, 1, 0, 1])
    found = AttackedTasks(
        labels.tasks, labels.workers, np.array([1.0, 0.0]), labels.tasks, np.array([1.0, 0.0]),
        9.0, 1.0,
    )  # fmt: skip
    kept = found.remove(labels)
    assert (kept.n_annotations, kept.n_tasks) == (3, 2)
    everybody = AttackedTasks(
        labels.tasks, labels.workers, np.array([1.0, 0.0]), labels.tasks, np.ones(2), 9.0, 1.0
    )
    with pytest.raises(DataError, match="1 attacked tasks have labels by the coalition alone"):
        everybody.remove(labels)


def test_a_coalition_nobody_can_name_is_said_so():
    ids = np.arange(3)
    found = AttackedTasks(ids, ids, np.zeros(3), ids, np.zeros(3), strength=9.0, expected=2.0)
    assert [finding.severity for finding in found.findings()] == ["low"]


def test_too_many_pairs_of_workers_are_not_compared(monkeypatch):
    crowd = CrowdLabels.from_arrays(["t"] * 300, range(300), ["a", "b", "a"] * 100)
    monkeypatch.setattr(attacked_tasks, "available_memory", lambda: 1 << 20)
    with pytest.raises(NotApplicable, match="pairs of workers who share a task are too many"):
        find_attacked_tasks(crowd)
