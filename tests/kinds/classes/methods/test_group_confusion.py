"""GroupConfusion: Dawid-Skene without groups, planted bias of workers, bias that tasks carry."""

import numpy as np
import pytest

from wisecrowd.aggregation import DawidSkene, GroupConfusion
from wisecrowd.core.exceptions import ParameterError
from wisecrowd.fairness import with_task_attributes
from wisecrowd.kinds.classes.container import CrowdLabels


def biased_crowd(seed, where, n_tasks=2000, n_workers=40, per_task=10):
    """Return labels that accuse group 1 by .2 too often; truth and groups.

    The bias is that of each worker by itself, or lies in tasks that look positive to everybody.
    """
    rng = np.random.default_rng(seed)
    truth, group = rng.integers(2, size=n_tasks), rng.integers(2, size=n_tasks)
    task = np.repeat(np.arange(n_tasks), per_task)
    worker = np.argsort(rng.random((n_tasks, n_workers)), axis=1)[:, :per_task].ravel()
    hit, alarm = rng.uniform(0.65, 0.9, n_workers), rng.uniform(0.1, 0.3, n_workers)
    innocent = (truth == 0) & (group == 1)
    seen = np.where(innocent & (rng.random(n_tasks) < 0.25) & (where == "tasks"), 1, truth)
    p = np.where(seen[task] == 1, hit[worker], alarm[worker])
    if where == "workers":
        p = np.where(innocent[task], p + 0.2, p)
    label = (rng.random(len(task)) < p).astype(int)
    return CrowdLabels.from_arrays(task, worker, label), truth, group


def gap(said, truth, group):
    """Return the difference of false positive rates."""
    rates = [said[(truth == 0) & (group == number)].mean() for number in (0, 1)]
    return rates[1] - rates[0]


def test_without_groups_it_is_dawid_skene_to_the_last_bit():
    labels, _, group = biased_crowd(0, "workers", n_tasks=100)
    static = DawidSkene().fit(labels)
    for model in (GroupConfusion(), GroupConfusion(task_group=group, group_strength=np.inf)):
        np.testing.assert_array_equal(model.fit(labels).probas_, static.probas_)
        np.testing.assert_array_equal(model.confusion_, static.confusion_)


def test_a_strong_tie_is_dawid_skene():
    labels, _, group = biased_crowd(0, "workers", n_tasks=200)
    settings = {"accelerate": False, "tol": 0.0, "max_iter": 30}
    tied = GroupConfusion(task_group=group, group_strength=1e9, **settings).fit(labels)
    static = DawidSkene(**settings).fit(labels)
    np.testing.assert_allclose(tied.probas_, static.probas_, atol=1e-5)


def test_bias_of_single_workers_is_seen():
    labels, truth, group = biased_crowd(0, "workers")
    model = GroupConfusion(task_group=group).fit(labels)
    planted = gap(labels.label, truth[labels.task], group[labels.task])
    fitted = (model.group_confusion_[1] - model.group_confusion_[0])[:, 0, 1].mean()
    assert fitted > 0.9 * planted
    static = DawidSkene().fit(labels).labels_
    assert gap(model.labels_, truth, group) < gap(static, truth, group) - 0.05
    assert np.mean(model.labels_ == truth) > np.mean(static == truth)


def test_bias_of_the_tasks_is_said_to_be_invisible():
    labels, truth, group = biased_crowd(0, "tasks")
    model = GroupConfusion(task_group=group).fit(labels)
    assert model.group_strength_ == np.inf
    assert gap(model.labels_, truth, group) > 0.1
    assert "shared-bias" in [finding.id for finding in model.findings_]


def test_names_of_groups_do_not_matter():
    labels, _, group = biased_crowd(1, "workers", n_tasks=200)
    one = GroupConfusion(task_group=group, group_strength=5.0).fit(labels)
    other = GroupConfusion(task_group=1 - group, group_strength=5.0).fit(labels)
    np.testing.assert_allclose(one.probas_, other.probas_, atol=1e-9)
    np.testing.assert_allclose(one.group_confusion_, other.group_confusion_[::-1], atol=1e-9)


def test_an_attribute_of_the_tasks_may_be_named():
    labels, _, group = biased_crowd(2, "workers", n_tasks=60)
    table = {"task": list(range(59)), "city": ["Rome" if one else "Oslo" for one in group[:59]]}
    known = with_task_attributes(labels, table)
    model = GroupConfusion(task_group="city", group_strength=5.0).fit(known)
    assert model.groups_ == ["Oslo", "Rome", ""]  # one task has no city
    with pytest.raises(ParameterError, match="no attribute 'town'"):
        GroupConfusion(task_group="town").fit(known)
    with pytest.raises(ParameterError, match="without labels"):
        GroupConfusion(task_group={0: "a", 1: "b", 999: "a"}).fit(known)
