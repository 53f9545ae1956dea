"""MaxMarginVote: the machine against a quadratic program, the vote as a special case, monotony."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

from wisecrowd.core.exceptions import ParameterError
from wisecrowd.kinds.classes.container import CrowdLabels
from wisecrowd.kinds.classes.methods.majority_vote import MajorityVote
from wisecrowd.kinds.classes.methods.max_margin_vote import MarginMachine, MaxMarginVote
from wisecrowd.simulate import HammerSpammers, OneCoinWorkers, PerTask, crowd

NOTHING_KNOWN = -1


def small_crowd(seed: int, n_classes: int = 3) -> CrowdLabels:
    workers = 5 * OneCoinWorkers(6, 3)
    return crowd(15, workers, PerTask(4), n_classes=n_classes, random_state=seed).labels


def votes_of(labels: CrowdLabels, weight: np.ndarray) -> np.ndarray:
    votes = np.zeros((labels.n_tasks, labels.n_classes))
    counts = np.ones(labels.n_annotations) if labels.weight is None else labels.weight
    np.add.at(votes, (labels.task, labels.label), counts * weight[labels.worker])
    return votes


def objective(labels: CrowdLabels, weight: np.ndarray, classes: np.ndarray, cost: float) -> float:
    votes = votes_of(labels, weight)
    rows = np.arange(labels.n_tasks)
    lead = 1.0 + votes
    lead[rows, classes] = votes[rows, classes]
    return float(0.5 * weight @ weight + cost * (lead.max(axis=1) - votes[rows, classes]).sum())


def unknown(labels: CrowdLabels) -> np.ndarray:
    return np.full(labels.n_tasks, NOTHING_KNOWN)


def test_equal_weights_give_the_majority_vote():
    labels = small_crowd(0)
    machine = MarginMachine.build(labels, 1.0)
    chosen = machine.choose(machine.votes(np.ones(5)), unknown(labels))
    expected = MajorityVote().fit(labels).labels_
    np.testing.assert_array_equal(labels.classes[machine.label[chosen]], expected)


@pytest.mark.parametrize("n_classes", [2, 3, 7])
@pytest.mark.parametrize("cost", [0.01, 0.3, 5.0])
def test_weights_solve_the_quadratic_program(n_classes, cost):
    labels = small_crowd(1, n_classes)
    machine = MarginMachine.build(labels, cost)
    chosen = machine.choose(machine.votes(np.ones(5)), unknown(labels))
    classes = machine.label[chosen]
    weight, _ = machine.solve(chosen, np.zeros(5), None)
    value = machine.objective(weight, chosen)
    assert value == pytest.approx(objective(labels, weight, classes, cost))
    best = min(
        minimize(
            lambda eta: objective(labels, eta, classes, cost),
            weight + shift,
            method="Nelder-Mead",
            options={"maxiter": 20_000, "xatol": 1e-10, "fatol": 1e-12},
        ).fun
        for shift in (0.0, 0.05)
    )
    assert value <= best * (1 + 1e-4)


def test_weighted_annotations_count_as_often():
    labels = small_crowd(2)
    times = np.random.default_rng(0).integers(1, 4, labels.n_annotations).astype(float)
    weighted = CrowdLabels.from_arrays(labels.task, labels.worker, labels.label, weight=times)
    machine = MarginMachine.build(weighted, 0.2)
    eta = np.array([0.3, -0.2, 0.5, 0.1, 0.4])
    chosen = machine.choose(machine.votes(eta), unknown(labels))
    expected = objective(weighted, eta, machine.label[chosen], 0.2)
    assert machine.objective(eta, chosen) == pytest.approx(expected)


@pytest.mark.parametrize("cost", ["auto", 0.001, 1.0])
def test_the_objective_never_gets_worse(cost):
    for seed in range(6):
        labels = crowd(80, 12 * HammerSpammers(0.5), PerTask(5), n_classes=3, random_state=seed)
        model = MaxMarginVote(C=cost, max_iter=30, tol=0.0).fit(labels.labels)
        assert (np.diff(model.history_) >= -1e-12).all()
        value = objective(
            labels.labels, model.margin_weight_, np.searchsorted([0, 1, 2], model.labels_), model.C_
        )
        assert -model.history_[-1] == pytest.approx(value)


def test_classes_are_those_of_the_weighted_vote():
    labels = small_crowd(3)
    model = MaxMarginVote().fit(labels)
    votes = votes_of(labels, model.margin_weight_)
    best = votes[np.arange(15), np.searchsorted(labels.classes, model.labels_)]
    np.testing.assert_allclose(best, votes.max(axis=1), atol=1e-9)
    weight = model.margin_weight_ + 1e-3 * model.margin_weight_.max()
    scale = model.vote_weight_ @ weight / (weight**2).sum()
    assert scale > 0
    np.testing.assert_allclose(model.vote_weight_, scale * weight)


def test_not_below_the_vote_among_spammers():
    ours, vote = [], []
    for seed in range(5):
        made = crowd(400, 30 * HammerSpammers(0.5), PerTask(7), n_classes=2, random_state=seed)
        ours.append(np.mean(MaxMarginVote().fit(made.labels).labels_ == made.truth))
        vote.append(np.mean(MajorityVote().fit(made.labels).labels_ == made.truth))
    assert np.mean(ours) > np.mean(vote) + 0.01


def test_gold_that_nobody_gave_is_kept_and_teaches():
    votes = [[0, 0, 1], [1, 1, 0], [0, 0, 1], [1, 1, 2], [2, 2, 0], [1, 1, 0], [0, 0, 2]]
    labels = CrowdLabels.from_matrix(votes, classes=[0, 1, 2, 3])
    model = MaxMarginVote().fit(labels, gold={0: 3, 1: 0, 2: 1, 3: 2, 4: 0, 5: 0})
    assert model.labels_.tolist() == [3, 0, 1, 2, 0, 0, 2]
    assert model.margin_weight_[2] > model.margin_weight_[0]


@pytest.mark.parametrize("cost", [0.0, -1, "much", float("nan")])
def test_bad_cost(cost):
    with pytest.raises(ParameterError, match="C is"):
        MaxMarginVote(C=cost).fit(small_crowd(0))


# ---------------------------------------------------------------------------------------- real data


@pytest.mark.parametrize(("name", "bar"), [("bluebird", 0.78), ("dog", 0.81), ("rte", 0.89)])
def test_real_crowds(real_crowd, name, bar):
    labels, truth = real_crowd(name)
    assert MaxMarginVote().fit(labels).score(labels, truth) >= bar


def test_workers_without_weight_decide_where_the_others_balance():
    votes = np.tile([[0] * 4, [1] * 4], (6, 1))
    for task, worker in ((0, 3), (3, 2), (5, 3), (8, 0)):
        votes[task, worker] = 1 - votes[task, worker]
    # By gold the first three workers err on task 0, and the machine rests on workers 1 and 3 alone.
    model = MaxMarginVote().fit(CrowdLabels.from_matrix(votes), gold={0: 1, 1: 1})
    np.testing.assert_allclose(model.margin_weight_, [0, 0.5, 0, 0.5], atol=1e-3)
    # These two disagree on task 5, and the two without weight both say 1.
    assert model.labels_.tolist() == [1, 1, *[0, 1] * 5]
