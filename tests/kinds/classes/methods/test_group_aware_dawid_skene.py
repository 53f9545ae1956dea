from __future__ import annotations

import itertools

import numpy as np
import pytest

from wisecrowd import simulate
from wisecrowd.core.exceptions import ParameterError
from wisecrowd.inference.priors import History
from wisecrowd.kinds.classes.container import CrowdLabels
from wisecrowd.kinds.classes.methods.dawid_skene import DawidSkene
from wisecrowd.kinds.classes.methods.group_aware_dawid_skene import GroupAwareDawidSkene
from wisecrowd.testing import CHECKS, maker
from wisecrowd.testing.crowds import crowd_of_groups, simulated


def brute_force(model, labels, group):
    """Posterior and log-likelihood, every class and every opinion of every group enumerated."""
    K, total = labels.n_classes, 0.0
    probas = np.zeros((labels.n_tasks, K))
    for i in range(labels.n_tasks):
        rows = np.flatnonzero(labels.task == i)
        here = sorted({int(group[j]) for j in labels.worker[rows]} - {-1})
        for k in range(K):
            for opinion in itertools.product(range(K), repeat=len(here)):
                value = model.class_prior_[k]
                said = dict(zip(here, opinion, strict=True))
                for g, c in said.items():
                    value *= model.group_confusion_[g, k, c]
                for e in rows:
                    j = labels.worker[e]
                    heard = said.get(int(group[j]), k)
                    value *= model.member_confusion_[j, heard, labels.label[e]]
                probas[i, k] += value
        total += np.log(probas[i].sum())
    return probas / probas.sum(axis=1, keepdims=True), total


def grouped_labels(n_tasks=30):
    made = simulated(n_tasks, 7, 3, 5)
    return made.labels, np.array([0, -1, 0, 1, 1, -1, 0])


def test_posterior_and_likelihood_by_enumeration():
    labels, group = grouped_labels()
    given = np.where(group >= 0, group, 10 + np.arange(7))
    model = GroupAwareDawidSkene(groups=given, max_iter=7, tol=0.0).fit(labels)
    np.testing.assert_array_equal(model.group_, group)
    probas, log_likelihood = brute_force(model, labels, group)
    np.testing.assert_allclose(model.probas_, probas, atol=1e-10)
    assert model.score(labels) * labels.n_annotations == pytest.approx(log_likelihood, rel=1e-10)


def test_one_em_step_by_enumeration():
    """Expected counts of the last step, all opinions enumerated, are those of the next matrices."""
    labels, group = grouped_labels(12)
    given = np.where(group >= 0, group, 10 + np.arange(7))
    old = GroupAwareDawidSkene(groups=given, max_iter=3, tol=0.0).fit(labels)
    new = GroupAwareDawidSkene(groups=given, max_iter=4, tol=0.0).fit(labels)
    transfer = np.full((2, 3, 3), 2 / 3) + (2 - 2 / 3) * np.eye(3)
    member = np.full((7, 3, 3), 2 / 3) + (2 - 2 / 3) * np.eye(3)
    for i in range(12):
        rows = np.flatnonzero(labels.task == i)
        here = sorted({int(group[j]) for j in labels.worker[rows]} - {-1})
        states, weights = [], []
        for k in range(3):
            for opinion in itertools.product(range(3), repeat=len(here)):
                said = dict(zip(here, opinion, strict=True))
                value = old.class_prior_[k]
                value *= np.prod([old.group_confusion_[g, k, c] for g, c in said.items()])
                for e in rows:
                    j = labels.worker[e]
                    heard = said.get(int(group[j]), k)
                    value *= old.member_confusion_[j, heard, labels.label[e]]
                states.append((k, said))
                weights.append(value)
        for (k, said), weight in zip(states, np.array(weights) / np.sum(weights), strict=True):
            for g, c in said.items():
                transfer[g, k, c] += weight
            for e in rows:
                j = labels.worker[e]
                member[j, said.get(int(group[j]), k), labels.label[e]] += weight
    np.testing.assert_allclose(
        new.group_confusion_, transfer / transfer.sum(axis=2, keepdims=True), atol=1e-9
    )
    np.testing.assert_allclose(
        new.member_confusion_, member / member.sum(axis=2, keepdims=True), atol=1e-9
    )
    np.testing.assert_allclose(
        new.confusion_[0], new.group_confusion_[0] @ new.member_confusion_[0]
    )
    np.testing.assert_array_equal(new.confusion_[1], new.member_confusion_[1])


def test_everybody_alone_is_dawid_skene():
    labels = simulated(60, 7, 3, 4).labels
    plain = DawidSkene(accelerate=False, max_iter=9, tol=0.0).fit(labels)
    for groups in (np.arange(7), {}, "auto"):
        model = GroupAwareDawidSkene(groups=groups, max_iter=9, tol=0.0).fit(labels)
        np.testing.assert_allclose(model.probas_, plain.probas_, atol=1e-12)
        np.testing.assert_allclose(model.confusion_, plain.confusion_, atol=1e-12)
        np.testing.assert_allclose(model.history_, plain.history_, rtol=1e-12)
        assert (model.group_ == -1).all()
        assert model.group_confusion_.shape == (0, 3, 3)


def test_workers_on_their_own_beside_a_group_are_as_in_dawid_skene():
    """A group on tasks of its own leaves the others' fit alone, class prior aside."""
    one, two = simulated(40, 5, 2, 4).labels, simulated(30, 3, 2, 3).labels
    both = CrowdLabels.from_arrays(
        np.concatenate([one.task, two.task + 40]),
        np.concatenate([one.worker, two.worker + 5]),
        np.concatenate([one.label, two.label]),
    )
    options = {"class_prior": "uniform", "max_iter": 15, "tol": 0.0}
    plain = DawidSkene(accelerate=False, **options).fit(one)
    groups = [0, 1, 2, 3, 4, 9, 9, 9]
    model = GroupAwareDawidSkene(groups=groups, **options).fit(both)
    np.testing.assert_allclose(model.probas_[:40], plain.probas_, atol=1e-10)


def test_ten_identical_copies_count_once():
    made = simulated(400, 5, 3)
    votes = made.labels.label.reshape(400, 5)
    copied = np.hstack([votes, np.repeat(votes[:, :1], 9, axis=1)])
    groups = [0, 1, 2, 3, 4, *[0] * 9]
    once = GroupAwareDawidSkene(prior=None, max_iter=40, tol=0.0).fit(made.labels)
    model = GroupAwareDawidSkene(groups=groups, prior=None, max_iter=40, tol=0.0).fit(
        CrowdLabels.from_matrix(copied)
    )
    faithful = np.tile(np.eye(3), (10, 1, 1))
    np.testing.assert_allclose(model.member_confusion_[[0, *range(5, 14)]], faithful, atol=1e-9)
    np.testing.assert_allclose(model.probas_, once.probas_, atol=1e-8)
    np.testing.assert_allclose(model.confusion_[:5], once.confusion_, atol=1e-8)
    wrong = DawidSkene(prior=None).fit(CrowdLabels.from_matrix(copied))
    assert np.abs(wrong.probas_ - once.probas_).max() > 0.5  # ten votes do count in Dawid-Skene


def test_likelihood_never_falls():
    for seed in range(12):
        labels = simulated(40, 8, 3, 5, seed).labels
        groups = np.random.default_rng(seed).integers(0, 4, 8)
        model = GroupAwareDawidSkene(groups=groups, max_iter=60, tol=0.0).fit(labels)
        assert np.diff(model.history_).min() >= -1e-9 * abs(model.history_[-1])


@pytest.mark.parametrize("seed", [0, 1])
def test_finds_and_recovers_its_own_simulator(seed):
    made = crowd_of_groups(seed)
    model = GroupAwareDawidSkene().fit(made.labels)
    np.testing.assert_array_equal(model.group_, [-1] * 6 + [0] * 3 + [1] * 3)
    assert np.abs(model.confusion_ - made.confusion).max() < 0.1
    plain = DawidSkene().fit(made.labels)
    assert np.mean(model.labels_ == made.truth) >= np.mean(plain.labels_ == made.truth) - 0.005


def test_strong_groups_do_not_outvote_the_others():
    """Two loud groups of eight, both mediocre, beside five good workers."""
    loud = simulate.DependentGroup(simulate.OneCoinWorkers(12, 8), simulate.OneCoinWorkers(95, 5))
    crowd = 5 * simulate.OneCoinWorkers(80, 20) + 8 * loud + 8 * loud
    made = simulate.crowd(800, crowd, simulate.Dense(), n_classes=3)
    aware = np.mean(GroupAwareDawidSkene().fit(made.labels).labels_ == made.truth)
    plain = np.mean(DawidSkene().fit(made.labels).labels_ == made.truth)
    assert aware >= plain + 0.1


OWN_PATH = [check for check in CHECKS if check.__name__ not in (
    "check_disjoint_copy",  # three groups of twice the workers are other groups
    "check_busy_task",  # 2000 workers in three groups are a large tree
    "check_recovers_own_model", "check_registered_name", "check_docstring", "check_model_selection",
)]  # fmt: skip


@pytest.mark.parametrize("check", OWN_PATH, ids=lambda check: check.__name__)
def test_common_checks_with_groups(check):
    """Small clean crowds have no groups of themselves: ask for three."""
    check(maker(GroupAwareDawidSkene(groups=3)))


def test_a_history_is_of_workers_and_groups_start_weak():
    labels, _ = grouped_labels()
    former = DawidSkene().fit(labels)
    model = GroupAwareDawidSkene(groups=2, prior=History(former, 1e6)).fit(labels)
    np.testing.assert_allclose(model.member_confusion_, former.confusion_, atol=1e-3)


@pytest.mark.parametrize("bad", [{"groups": 0}, {"groups": "x"}, {"groups": [1]}, {"prior": "x"}])
def test_bad_parameters(bad):
    with pytest.raises(ParameterError):
        GroupAwareDawidSkene(**bad).fit(simulated(20, 4, 2).labels)
