"""Gaps between groups: rates and intervals, planted workers are found, clean crowds left alone."""

import numpy as np
import pytest

from wisecrowd.audit import audit_crowd, find_group_gaps
from wisecrowd.core.exceptions import DataError, ParameterError
from wisecrowd.core.part import NotApplicable
from wisecrowd.fairness import with_task_attributes
from wisecrowd.kinds.classes.container import CrowdLabels


def crowd_with_groups(seed=0, biased=(), n_tasks=400, n_workers=12, base=(0.5, 0.5)):
    """Return labels with the attribute city; the workers in ``biased`` accuse Rome."""
    rng = np.random.default_rng(seed)
    city = rng.integers(2, size=n_tasks)
    truth = (rng.random(n_tasks) < np.array(base)[city]).astype(int)
    task, worker = np.nonzero(rng.random((n_tasks, n_workers)) < 0.6)
    p = np.where(truth[task] == 1, 0.8, 0.2)
    p = np.where(np.isin(worker, biased) & (city[task] == 1), 0.9, p)
    label = (rng.random(len(task)) < p).astype(int)
    labels = CrowdLabels.from_arrays(task, worker, label, tasks=range(n_tasks))
    names = np.where(city == 1, "Rome", "Oslo").tolist()
    return with_task_attributes(labels, {"task": range(n_tasks), "city": names}), truth


def test_workers_who_judge_groups_differently_are_found():
    labels, _ = crowd_with_groups(biased=(3, 7))
    found = find_group_gaps(labels)
    finding = next(one for one in found.findings() if one.id == "group-bias")
    assert finding.affected == (3, 7)
    assert found.workers["group"][found.workers["worker"] == 3].tolist() == ["Rome"]


def test_clean_crowds_are_left_alone():
    for seed in range(5):
        labels, _ = crowd_with_groups(seed)
        assert not [one for one in find_group_gaps(labels).findings() if one.id == "group-bias"]


def test_a_gap_without_gold_is_no_accusation():
    labels, truth = crowd_with_groups(base=(0.3, 0.7))
    finding = find_group_gaps(labels).findings()[0]
    assert (finding.id, finding.severity) == ("group-gap", "info")
    assert "give gold" in finding.remedy
    gold = find_group_gaps(labels, gold=truth).findings()[0]
    assert gold.severity == "low"
    assert "By gold, error rates differ" in gold.explanation


def test_groups_of_equal_rates_are_no_finding():
    labels, _ = crowd_with_groups(1)
    assert [one.id for one in find_group_gaps(labels).findings()] == []


def test_the_audit_has_the_part_where_there_are_attributes():
    labels, _ = crowd_with_groups(base=(0.3, 0.7))
    done = audit_crowd(labels, parts=["group-gaps"])
    assert set(done.tables()) >= {"group_rates", "group_gaps", "group_workers"}
    assert done.to_dict()["parts"]["group-gaps"]["positive"] == 1
    plain = CrowdLabels.from_matrix([[0, 1], [1, 1]])
    with pytest.raises(NotApplicable, match="no attributes"):
        find_group_gaps(plain)


def test_bad_names():
    labels, _ = crowd_with_groups()
    with pytest.raises(ParameterError, match="no attribute 'town'"):
        find_group_gaps(labels, attributes=["town"])
    with pytest.raises(ParameterError, match="positive class 'x'"):
        find_group_gaps(labels, positive="x")
    one = with_task_attributes(labels, {"task": [0, 1], "flat": ["a", "a"]})
    with pytest.raises(DataError, match="one group only"):
        find_group_gaps(one, attributes=["flat"])
