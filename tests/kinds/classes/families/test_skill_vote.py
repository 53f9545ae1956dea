"""What the agreement methods share: the scale of probabilities, signs, parts of a crowd."""

from __future__ import annotations

import numpy as np
import pytest

from wisecrowd.inference.engine import in_memory
from wisecrowd.kinds.classes.container import CrowdLabels
from wisecrowd.kinds.classes.families.skill_vote import (
    PSEUDO,
    CoinVotes,
    certain_classes,
    clipped_log_odds,
    fill_in,
    orient,
    pair_agreement,
    signed_labels,
    vote_agreement,
)
from wisecrowd.kinds.classes.prior import TaskPrior, as_task_prior
from wisecrowd.simulate import OneCoinWorkers, PerTask, crowd


def likelihood(labels: CrowdLabels, log_odds: np.ndarray, prior: np.ndarray) -> float:
    """Return the penalised log-likelihood of one-coin workers, one annotation at a time."""
    K = labels.n_classes
    p = np.exp(log_odds) / (np.exp(log_odds) + K - 1)
    scores = np.tile(np.log(prior), (labels.n_tasks, 1))
    for i, j, label in zip(labels.task, labels.worker, labels.label, strict=True):
        row = np.full(K, (1 - p[j]) / (K - 1))
        row[label] = p[j]
        scores[i] += np.log(row)
    value = np.log(np.exp(scores).sum(axis=1)).sum()
    return float(value + PSEUDO[0] * np.log(p).sum() + PSEUDO[1] * np.log(1 - p).sum())


@pytest.mark.parametrize("n_classes", [2, 4])
def test_the_best_scale_maximises_the_likelihood(n_classes):
    made = crowd(80, 6 * OneCoinWorkers(6, 3), PerTask(4), n_classes=n_classes, random_state=1)
    votes = CoinVotes(in_memory(made.labels, TaskPrior(np.zeros((1, n_classes)))))
    weight = np.array([1.0, 0.5, 2.0, 0.1, -0.3, 1.5])
    offset = np.linspace(0.2, -0.1, n_classes)
    best = votes.best_scale(weight, offset)

    def value(scale: float) -> float:
        prior = np.exp(scale * offset)
        return likelihood(made.labels, scale * weight, prior / prior.sum())

    around = [value(best * (1 + x)) for x in (-0.3, -0.01, 0.0, 0.01, 0.3)]
    assert int(np.argmax(around)) == 2
    assert max(value(x) for x in np.geomspace(0.01, 5, 60)) <= around[2] + 1e-9


def test_the_scale_of_true_log_odds_is_about_one():
    made = crowd(3000, 12 * OneCoinWorkers(6, 3), PerTask(5), n_classes=2, random_state=2)
    p = made.worker_accuracy
    votes = CoinVotes(in_memory(made.labels, TaskPrior(np.zeros((1, 2)))))
    assert votes.best_scale(np.log(p / (1 - p)), np.zeros(2)) == pytest.approx(1.0, abs=0.1)
    half = votes.best_scale(0.5 * np.log(p / (1 - p)), np.zeros(2))
    assert half == pytest.approx(2 * votes.best_scale(np.log(p / (1 - p)), np.zeros(2)))


def test_weights_of_zero_have_no_scale():
    labels = CrowdLabels.from_matrix([[0, 1], [1, 0]])
    votes = CoinVotes(in_memory(labels, TaskPrior(np.zeros((1, 2)))))
    assert votes.best_scale(np.zeros(2), np.zeros(2)) == 1.0


def test_known_classes_are_gold_and_certain_priors():
    labels = CrowdLabels.from_matrix([[0, 1], [1, 1], [0, 0]])
    gold = as_task_prior(None, np.array([-1, 1, -1], dtype=np.int32), labels)
    assert certain_classes(gold, 3).tolist() == [-1, 1, -1]
    certain = as_task_prior([[1, 1], [1, 1], [1, 0]], None, labels)
    assert certain_classes(certain, 3).tolist() == [-1, -1, 0]
    one_class = CrowdLabels.from_arrays([0], ["w"], ["x"])
    assert certain_classes(as_task_prior(None, None, one_class), 1).tolist() == [-1]


def test_each_part_is_turned_for_itself():
    skill = np.array([1.0, 2.0, -3.0, 1.0])
    turned = orient(skill, np.array([1.0, 1.0, 1.0, 0.5]), np.array([0, 0, 1, 1]), 2)
    assert turned.tolist() == [1.0, 2.0, 3.0, -1.0]


def test_vote_agreement_by_hand():
    labels = CrowdLabels.from_matrix([[0, 0, 1], [1, 1, 1]])
    found = vote_agreement(labels, np.full(2, -1))
    np.testing.assert_allclose(found, [2 / 3, 2 / 3, 1 / 3])
    found = vote_agreement(labels, np.array([1, -1]))  # gold in place of the vote
    np.testing.assert_allclose(found, [0.0, 0.0, 1.0])


def test_signed_labels_add_up_repeated_ones_and_find_the_parts():
    labels = CrowdLabels.from_arrays(
        [0, 0, 0, 1, 2], ["a", "a", "b", "b", "c"], [1, 1, 0, 1, 0], duplicates="keep",
        weight=[1, 1, 1, 0, 1],
    )  # fmt: skip
    matrix = signed_labels(labels, np.array([-1, -1, 1]))
    assert list(zip(matrix.task.tolist(), matrix.worker.tolist(), matrix.signed, strict=True)) == [
        (0, 0, 2.0), (0, 1, -1.0), (2, 2, -1.0), (2, 3, 1.0),
    ]  # fmt: skip
    assert matrix.worker_part[0] == matrix.worker_part[1] == matrix.task_part[0]
    assert matrix.worker_part[2] == matrix.worker_part[3] != matrix.worker_part[0]
    assert matrix.task_part[1] not in matrix.worker_part.tolist()


def test_accuracies_are_no_surer_than_their_labels():
    accuracy, log_odds = clipped_log_odds(np.array([1.0, 0.0, 0.6]), np.array([8.0, 2.0, 5.0]), 3)
    np.testing.assert_allclose(accuracy, [0.9, 0.125, 0.6])
    np.testing.assert_allclose(log_odds, np.log(2 * accuracy / (1 - accuracy)))


def test_workers_who_meet_nobody():
    known = np.array([True, True, False])
    skill = fill_in(np.array([0.8, 0.2, 0.0]), known, np.array([1.0, 3.0, 5.0]))
    np.testing.assert_allclose(skill, [0.8, 0.2, 0.35])
    assert fill_in(np.zeros(1), np.array([False]), np.ones(1)).tolist() == [0.5]


def test_agreement_of_pairs_is_zero_by_chance_and_one_at_best():
    matrix = np.array([[0, 0, 1], [1, 1, 2], [2, 2, 0], [0, 1, 1]])
    pairs = pair_agreement(CrowdLabels.from_matrix(matrix), np.full(4, -1))
    found = dict(zip(zip(pairs.first, pairs.second, strict=True), pairs.agreement, strict=True))
    for (i, j), value in found.items():
        share = np.mean(matrix[:, i] == matrix[:, j])
        assert value == pytest.approx((3 * share - 1) / 2)  # K share - 1 over K - 1
    assert len(found) == 6
