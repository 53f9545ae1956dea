"""Plans of who is asked: bounded gaps, figures on gold set aside, gold of both groups."""

import numpy as np
import pytest

from wisecrowd.core.exceptions import DataError
from wisecrowd.fairness import fair_shares
from wisecrowd.kinds.classes.container import CrowdLabels


def biased_crowd(seed=0, n_tasks=400, n_workers=20):
    """Return labels of which half the workers accuse group b; truth and groups."""
    rng = np.random.default_rng(seed)
    truth, group = rng.integers(2, size=n_tasks), rng.integers(2, size=n_tasks)
    task, worker = np.nonzero(rng.random((n_tasks, n_workers)) < 0.5)
    p = np.where(truth[task] == 1, 0.8, 0.2)
    p = np.where((worker < 10) & (group[task] == 1), p + 0.15, p)
    label = (rng.random(len(task)) < p).astype(int)
    return CrowdLabels.from_arrays(task, worker, label), truth, group


def test_the_plan_prefers_the_unbiased():
    labels, truth, group = biased_crowd()
    plan = fair_shares(labels, truth, group, epsilon=0.02)
    assert plan.shares.sum() == pytest.approx(1.0)
    assert abs(plan.planned["false_positive_gap"]) <= 0.02 + 1e-6
    assert plan.shares.max() <= 1 / (0.2 * 20) + 1e-9
    assert plan.shares[10:].sum() > 0.6
    free = fair_shares(labels, truth, group, epsilon=1.0)
    assert abs(plan.held_out["false_positive_gap"]) < abs(plan.equal["false_positive_gap"])
    assert free.planned["accuracy"] >= plan.planned["accuracy"] - 1e-9


def test_an_impossible_bound_is_said():
    labels, truth, group = biased_crowd()
    everybody = labels.select_annotations(labels.worker < 10)
    plan = fair_shares(everybody, truth, group, epsilon=0.0, diversity=1.0)
    assert plan.epsilon > 0.02
    assert "not possible" in plan.notes[0]


def test_gold_of_both_groups_is_needed():
    labels, truth, group = biased_crowd()
    gold = {i: int(truth[i]) for i in range(400) if group[i] == 0}
    with pytest.raises(DataError, match="gold tasks"):
        fair_shares(labels, gold, group)
    with pytest.raises(DataError, match="two groups"):
        fair_shares(labels, truth, np.arange(400) % 3)
