"""Fair decisions: brute force, no condition, small groups, several classes, bad input."""

import itertools

import numpy as np
import pytest

from wisecrowd.aggregation import MajorityVote
from wisecrowd.core.exceptions import DataError, ParameterError
from wisecrowd.fairness import decide, frontier, vote_scores
from wisecrowd.kinds.classes.container import CrowdLabels


def best_by_hand(score, group, epsilon):
    """Return the best expected number of right decisions over all thresholds of two groups."""
    best = -np.inf
    for a, b in itertools.product(range((group == 0).sum() + 1), range((group == 1).sum() + 1)):
        chosen = np.zeros(len(score), bool)
        for number, n in ((0, a), (1, b)):
            rows = np.flatnonzero(group == number)
            chosen[rows[np.argsort(-score[rows], kind="stable")][:n]] = True
        rates = [chosen[group == number].mean() for number in (0, 1)]
        if abs(rates[0] - rates[1]) <= epsilon + 1e-12:
            best = max(best, np.where(chosen, score, 1 - score).sum())
    return best


@pytest.mark.parametrize("epsilon", [0.0, 0.1, 0.5, 1.0])
def test_as_good_as_all_pairs_of_thresholds(epsilon):
    rng = np.random.default_rng(0)
    for _ in range(20):
        n = int(rng.integers(4, 13))
        score, group = np.round(rng.random(n), 2), np.arange(n) % 2
        found = decide(score, group, epsilon=epsilon, min_group=1)
        assert found.expected_accuracy * n == pytest.approx(best_by_hand(score, group, epsilon))
        rates = [(found.labels[group == number] == 1).mean() for number in (0, 1)]
        assert abs(rates[0] - rates[1]) <= epsilon + 1 / min(np.bincount(group))


def test_three_groups_are_inside_the_band():
    rng = np.random.default_rng(1)
    group = rng.integers(3, size=600)
    score = np.clip(rng.random(600) + 0.2 * group - 0.2, 0, 1)
    for epsilon in (0.3, 0.1, 0.02):
        found = decide(score, group, epsilon=epsilon)
        rates = [(found.labels[group == number] == 1).mean() for number in range(3)]
        assert max(rates) - min(rates) == pytest.approx(found.gap)
        assert found.gap <= epsilon + 1 / min(np.bincount(group))


def test_without_a_condition_nothing_changes():
    rng = np.random.default_rng(2)
    score = rng.random(50)
    found = decide(score, rng.integers(2, size=50), epsilon=1.0, min_group=1)
    np.testing.assert_array_equal(found.labels == 1, score > 0.5)
    assert not found.changed.any()
    assert found.expected_accuracy == found.free_accuracy


def test_equal_opportunity_uses_the_truth():
    rng = np.random.default_rng(3)
    group, truth = rng.integers(2, size=400), rng.integers(2, size=400)
    score = np.clip(0.5 + 0.2 * (2 * truth - 1) * (1 + group) / 2 + rng.normal(0, 0.2, 400), 0, 1)
    found = decide(score, group, constraint="equal-opportunity", epsilon=0.02, truth=truth)
    rates = [(found.labels[(group == g) & (truth == 1)] == 1).mean() for g in (0, 1)]
    assert abs(rates[0] - rates[1]) <= 0.02 + 1e-9
    with pytest.raises(ParameterError, match="needs true classes"):
        decide(score, group, constraint="equal-opportunity")


def test_several_classes_share_their_rates():
    rng = np.random.default_rng(4)
    group = rng.integers(2, size=200)
    table = rng.dirichlet(np.ones(3), 200)
    table[group == 1, 2] += 0.5
    table /= table.sum(axis=1, keepdims=True)
    found = decide(table, group, epsilon=0.05, classes=["a", "b", "c"])
    assert found.gap <= 0.05 + 2 / min(np.bincount(group))
    assert decide(table, group, epsilon=1.0).changed.sum() == 0
    assert found.expected_accuracy <= found.free_accuracy


def test_the_price_of_parity():
    rng = np.random.default_rng(5)
    group, truth = rng.integers(2, size=500), rng.integers(2, size=500)
    score = np.clip(0.3 * truth + 0.2 * group + rng.random(500) / 2, 0, 1)
    found = frontier(score, group, truth=truth.tolist())
    assert np.all(np.diff(found["expected_accuracy"]) <= 1e-12)
    assert np.all(np.diff(found["gap"]) <= 1e-12)
    assert set(found) == {"epsilon", "gap", "expected_accuracy", "accuracy"}


def test_a_gap_that_small_groups_do_not_allow():
    found = decide([0.9, 0.9, 0.1, 0.9], ["a", "a", "a", "b"], epsilon=0.0, min_group=1)
    assert found.gap == 0.0
    uneven = decide([0.9, 0.8, 0.7, 0.2, 0.1], ["a", "a", "a", "b", "b"], epsilon=0.4, min_group=1)
    assert uneven.gap <= 0.4


def test_small_groups_keep_their_decisions():
    rng = np.random.default_rng(6)
    score = np.append(rng.random(200), 0.9)
    group = np.append(rng.integers(2, size=200), 2)
    found = decide(score, group, epsilon=0.05)
    assert found.labels[-1] == 1
    assert "keep their decisions: 2" in found.notes[-1]
    with pytest.raises(DataError, match="Fewer than two groups have 30 tasks"):
        decide(score[:20], group[:20])


def test_ties_are_said():
    found = decide([0.6, 0.6, 0.6, 0.6, 0.1, 0.1], list("aaaabb"), epsilon=0.5, min_group=1)
    assert "equal scores" in found.notes[0]


def test_vote_scores_weigh_workers():
    labels = CrowdLabels.from_matrix([[0, 0, 1], [1, 1, 0], [0, 0, 0], [1, 1, 1]])
    scores = vote_scores(labels, MajorityVote().fit(labels))
    np.testing.assert_allclose(scores.sum(axis=1), 1.0)
    assert scores[0, 0] > 2 / 3


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"epsilon": 2.0}, "epsilon"),
        ({"constraint": "parity"}, "demographic-parity"),
        ({"groups": ["a", "a"]}, "one group only"),
        ({"groups": list("abab")}, "one per task"),
        ({"probas": [0.5, 2.0]}, "between 0 and 1"),
        ({"positive": 7}, "not among the classes"),
    ],
)
def test_bad_input(change, message):
    given = {"probas": [0.2, 0.7], "groups": ["a", "b"], "min_group": 1} | change
    with pytest.raises((ParameterError, DataError), match=message):
        decide(given.pop("probas"), given.pop("groups"), **given)
