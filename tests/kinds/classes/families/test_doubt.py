"""Doubt about posteriors: oracles of its three signs, and unsupported classes."""

from __future__ import annotations

import numpy as np
import pytest

import wisecrowd as wc
from wisecrowd import simulate
from wisecrowd.aggregation import HierarchicalDawidSkene, OneCoin
from wisecrowd.inference.held_out import HeldOutScore, scoring_plan
from wisecrowd.kinds.classes.families.doubt import (
    Doubt,
    Foresight,
    dependence,
    explained_share,
    instability,
    measured_doubt,
    unsupported_classes,
    within_votes,
)
from wisecrowd.kinds.classes.families.held_out_labels import fit_judge

pytestmark = pytest.mark.filterwarnings("ignore::wisecrowd.core.exceptions.FindingWarning")

WORKERS = {
    "one-coin": 30 * simulate.OneCoinWorkers(8, 2),
    "spammers": 20 * simulate.OneCoinWorkers(8, 2) + 10 * simulate.Spammers(),
    "dirichlet": 30 * simulate.DirichletWorkers(5.0),
}


@pytest.mark.parametrize("name", WORKERS)
def test_independent_workers_show_no_dependence(name):
    crowd = simulate.crowd(300, WORKERS[name], simulate.PerTask(8), n_classes=2, random_state=4)
    found = min(
        dependence(crowd.labels, method().fit(crowd.labels).probas_)
        for method in (HierarchicalDawidSkene, OneCoin)
    )
    assert abs(found) < 0.035


def test_tasks_that_are_hard_for_everybody_show_dependence():
    rng = np.random.default_rng(5)
    truth = rng.integers(0, 2, 300)
    right = np.where(rng.random(300) < 0.4, 0.5, 0.9)[:, None]
    answers = np.where(rng.random((300, 8)) < right, truth[:, None], 1 - truth[:, None])
    labels = wc.CrowdLabels.from_matrix(answers, classes=[0, 1])
    assert dependence(labels, OneCoin().fit(labels).probas_) > 0.05


def test_dependence_is_its_equation():
    crowd = simulate.crowd(
        20, 5 * simulate.DirichletWorkers(5.0), simulate.PerTask(3), n_classes=3, random_state=0
    )
    labels = crowd.labels
    q = np.random.default_rng(1).dirichlet(np.ones(3), 20)
    judge = fit_judge(labels, q)
    above = below = 0.0
    for i in range(20):
        rows = np.flatnonzero(labels.task == i)
        for k in range(3):
            theta = [
                (judge.counts[j, k, k] + judge.strength * judge.right[j])
                / (judge.counts[j, k].sum() + judge.strength)
                for j in labels.worker[rows]
            ]
            theta = np.clip(theta, 0.001, 0.999)
            variance = (theta * (1 - theta)).sum()
            seen = (labels.label[rows] == k).sum()
            above += q[i, k] * ((seen - theta.sum()) ** 2 - variance)
            below += q[i, k] * (np.sqrt(theta * (1 - theta)).sum() ** 2 - variance)
    assert dependence(labels, q) == pytest.approx(above / below, rel=1e-9)


def test_dependence_does_not_depend_on_names():
    crowd = simulate.crowd(
        60, 10 * simulate.DirichletWorkers(5.0), simulate.PerTask(4), n_classes=3, random_state=2
    )
    labels, q = crowd.labels, np.random.default_rng(1).dirichlet(np.ones(3), 60)
    order = np.array([2, 0, 1])
    renamed = wc.CrowdLabels.from_arrays(
        labels.task, 9 - labels.worker, order[labels.label], classes=range(3)
    )
    swapped = np.empty_like(q)
    swapped[:, order] = q
    assert dependence(renamed, swapped) == pytest.approx(dependence(labels, q), abs=1e-12)


def test_explained_share_compares_with_the_shares_of_the_labels():
    labels = wc.CrowdLabels.from_matrix([[0, 0, 1]] * 20, classes=[0, 1])
    plan = scoring_plan(labels)
    scored = plan.folds >= 0
    shares = (labels.class_totals + 1) / (60 + 2)
    as_shares = HeldOutScore(np.log(shares[labels.label[scored]]), labels.task[scored])
    assert explained_share(as_shares, plan) == pytest.approx(0, abs=1e-12)
    half = HeldOutScore(as_shares.per_label / 2, as_shares.task)
    assert explained_share(half, plan) == pytest.approx(0.5)
    worse = HeldOutScore(as_shares.per_label * 2, as_shares.task)
    assert explained_share(worse, plan) == 0


def test_instability_is_the_lost_share_of_confidence_above_a_guess():
    seen = Foresight(np.array([0, 1]), np.array([0, 1]), np.array([0.9, 0.9]))
    stays = np.array([[0.9, 0.1], [0.1, 0.9]])
    falls = np.array([[0.7, 0.3], [0.3, 0.7]])
    assert instability([seen], stays) == 0
    assert instability([seen, seen], falls) == pytest.approx(0.2 / 0.4)
    assert instability([seen], np.array([[1.0, 0.0], [0.0, 1.0]])) == 0


@pytest.mark.parametrize(("rho", "least"), [(0.0, 0.1), (0.05, 0.3), (1.0, 0.8)])
def test_the_doubt_is_its_equation(rho, least):
    labels = wc.CrowdLabels.from_matrix([[0, 1, 1]] * 75, classes=[0, 1])
    plan = scoring_plan(labels)
    scored = plan.folds >= 0
    score = HeldOutScore(np.full(scored.sum(), -0.4), labels.task[scored])
    task = np.arange(75, dtype=np.int32)
    seen = [Foresight(task, np.ones(75, np.int32), np.full(75, 0.8))]
    probas = np.tile([0.26, 0.74], (75, 1))
    explained, unstable = explained_share(score, plan), 0.06 / 0.3
    most = 1 - (1 - least * (1 - explained) ** 2) * (1 - 2 * unstable)
    found = measured_doubt(score, seen, plan, probas, rho)
    assert found.amount == pytest.approx(0.05 + (most - 0.05) * 75 / 100)
    assert found[:3] == pytest.approx((explained, rho, unstable))
    assert Doubt().amount == 0.05


def test_a_class_is_unsupported_if_another_label_is_twice_as_frequent_on_its_tasks():
    votes = np.array([[4, 4, 2], [5, 4, 1], [1, 8, 1], [8, 1, 1]], dtype=float)
    given = np.array([[0, 0, 1.0], [0, 0, 1.0], [0, 1.0, 0], [1.0, 0, 0]])
    assert unsupported_classes(given, votes).tolist() == [False, False, True]
    half = np.array([[4, 2, 0], [0, 1, 0]], dtype=float)  # exactly half is enough
    given = np.array([[0, 1.0, 0], [0, 0, 0]])
    assert unsupported_classes(given, half).tolist() == [False, False, False]


def test_an_unsupported_class_has_at_most_its_share_of_the_votes():
    votes = np.array([[3.0, 1.0], [3.0, 1.0], [0.0, 0.0], [1.0, 0.0]])
    probas = np.array([[0.1, 0.9], [0.1, 0.9], [0.2, 0.8], [0.0, 1.0]])
    fixed = np.array([False, True, False, False])
    found = within_votes(probas, votes, np.array([False, True]), fixed)
    np.testing.assert_allclose(found[0], [0.1 / 0.35, 0.25 / 0.35])
    np.testing.assert_array_equal(found[1:], probas[1:])  # fixed, unlabelled, nothing else left
