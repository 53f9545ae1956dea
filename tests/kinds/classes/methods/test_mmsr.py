"""MMSR: exact recovery, robustness, agreement counted by hand, real crowds."""

from __future__ import annotations

import numpy as np
import pytest

from wisecrowd.core.exceptions import ParameterError
from wisecrowd.kinds.classes.container import CrowdLabels
from wisecrowd.kinds.classes.families.skill_vote import Pairs, pair_agreement
from wisecrowd.kinds.classes.methods.majority_vote import MajorityVote
from wisecrowd.kinds.classes.methods.mmsr import MMSR, robust_rank_one
from wisecrowd.simulate import HammerSpammers, OneCoinWorkers, PerTask, crowd

SKILL = np.array([0.9, 0.7, 0.5, 0.3, 0.8, 0.6, 0.4, 0.55, 0.65, 0.2])


def exact_pairs(skill: np.ndarray, meets: np.ndarray) -> Pairs:
    first, second = np.nonzero(meets & ~np.eye(len(skill), dtype=bool))
    return Pairs(first, second, skill[first] * skill[second], np.full(len(first), 20.0), len(skill))


@pytest.mark.parametrize("trim", [0.0, 0.1, 0.3])
def test_exact_agreement_gives_exact_skills_also_where_few_meet(trim):
    skill = np.append(SKILL, -0.5)
    n = len(skill)
    ring = np.abs(np.subtract.outer(np.arange(n), np.arange(n)))
    meets = (ring <= 3) | (ring >= n - 3)
    pairs = exact_pairs(skill, meets)
    found, history, _ = robust_rank_one(pairs, np.full(n, 0.5), trim, 5000, 1e-13)
    np.testing.assert_allclose(found, skill, atol=1e-5)
    assert history[-1] < 1e-9


def test_lies_about_agreement_are_left_out():
    n = 20
    skill = np.resize(SKILL, n)
    pairs = exact_pairs(skill, np.ones((n, n), dtype=bool))
    false = np.random.default_rng(0).uniform(-1, 1, len(pairs.first))
    liars = (pairs.first < 2) | (pairs.second < 2)  # two of twenty may say anything
    lied = Pairs(
        pairs.first, pairs.second, np.where(liars, false, pairs.agreement), pairs.common, n
    )
    robust, _, _ = robust_rank_one(lied, np.full(n, 0.5), 0.15, 500, 1e-10)
    plain, _, _ = robust_rank_one(lied, np.full(n, 0.5), 0.0, 500, 1e-10)
    worst = np.abs(robust - skill)[2:].max()
    assert worst < 0.02
    assert worst < 0.2 * np.abs(plain - skill)[2:].max()


def test_without_trimming_it_is_weighted_least_squares():
    rng = np.random.default_rng(1)
    pairs = exact_pairs(SKILL, np.ones((10, 10), dtype=bool))
    noise = rng.normal(0, 0.1, (10, 10))
    noise = (noise + noise.T)[pairs.first, pairs.second]
    noisy = Pairs(pairs.first, pairs.second, pairs.agreement + noise, pairs.common, 10)
    found, _, _ = robust_rank_one(noisy, np.full(10, 0.5), 0.0, 5000, 1e-14)

    def misfit(skill: np.ndarray) -> float:
        return float(((noisy.agreement - skill[pairs.first] * skill[pairs.second]) ** 2).sum())

    best = misfit(found)
    for _ in range(200):
        assert misfit(found + rng.normal(0, 1e-3, 10)) >= best - 1e-12


@pytest.mark.parametrize("weighted", [False, True])
def test_agreement_of_pairs_counted_by_hand(weighted):
    rng = np.random.default_rng(2)
    matrix = rng.integers(-1, 3, (30, 5))  # three classes, -1 is missing
    task, worker = np.nonzero(matrix >= 0)
    weight = rng.uniform(0.5, 2, len(task)) if weighted else None
    labels = CrowdLabels.from_arrays(task, worker, matrix[task, worker], weight=weight)
    pairs = pair_agreement(labels, np.full(30, -1))
    w = np.zeros((30, 5))
    w[task, worker] = 1.0 if weight is None else weight
    for j, k, agreement, common in zip(
        pairs.first, pairs.second, pairs.agreement, pairs.common, strict=True
    ):
        both = w[:, j] * w[:, k]
        share = (both * (matrix[:, j] == matrix[:, k])).sum() / both.sum()
        assert common == pytest.approx(both.sum())
        assert agreement == pytest.approx((3 * share - 1) / 2)
    assert len(pairs.first) == 20


def test_the_posterior_is_the_one_coin_posterior_by_hand():
    made = crowd(60, 6 * OneCoinWorkers(6, 3), n_classes=3, random_state=0)
    model = MMSR().fit(made.labels)
    p = model.worker_accuracy_
    scores = np.zeros((60, 3))
    for i, j, label in zip(made.labels.task, made.labels.worker, made.labels.label, strict=True):
        likelihood = np.full(3, (1 - p[j]) / 2)
        likelihood[label] = p[j]
        scores[i] += np.log(likelihood)
    expected = np.exp(scores - scores.max(axis=1, keepdims=True))
    np.testing.assert_allclose(model.probas_, expected / expected.sum(axis=1, keepdims=True))


def test_recovers_accuracies_and_is_calibrated():
    made = crowd(3000, 30 * OneCoinWorkers(6, 3), PerTask(8), n_classes=4, random_state=3)
    model = MMSR().fit(made.labels)
    assert np.abs(model.worker_accuracy_ - made.worker_accuracy).mean() < 0.03
    assert abs(model.confidence_.mean() - np.mean(model.labels_ == made.truth)) < 0.02
    within = np.abs(model.worker_accuracy_ - made.worker_accuracy)
    assert np.mean(within <= 3 * model.worker_accuracy_error_ + 0.01) > 0.8


def test_better_than_the_vote_among_spammers():
    made = crowd(600, 60 * HammerSpammers(0.4), PerTask(9), n_classes=2, random_state=4)
    model, vote = MMSR().fit(made.labels), MajorityVote().fit(made.labels)
    assert np.mean(model.labels_ == made.truth) > np.mean(vote.labels_ == made.truth) + 0.01


def test_swapping_the_classes_swaps_the_result():
    made = crowd(200, 10 * OneCoinWorkers(6, 3), PerTask(5), n_classes=2, random_state=5)
    labels = made.labels
    turned = CrowdLabels.from_arrays(labels.task, labels.worker, 1 - labels.label)
    first, second = MMSR().fit(labels), MMSR().fit(turned)
    np.testing.assert_allclose(first.probas_, second.probas_[:, ::-1], atol=1e-9)


def test_a_worker_who_meets_nobody_has_the_mean_skill():
    labels = CrowdLabels.from_arrays(
        ["a", "a", "b", "b", "c"], [1, 2, 1, 2, 3], ["x", "x", "y", "y", "y"]
    )
    model = MMSR().fit(labels)
    assert model.identified_.tolist() == [True, True, False]
    assert model.skill_[2] == pytest.approx(model.skill_[:2].mean())
    assert model.labels_.tolist() == ["x", "y", "y"]


@pytest.mark.parametrize("trim", [-0.1, 0.5, "x"])
def test_bad_trim(trim):
    with pytest.raises(ParameterError, match="trim"):
        MMSR(trim=trim).fit(CrowdLabels.from_matrix([[0, 1], [1, 1]]))


# ---------------------------------------------------------------------------------------- real data

PUBLISHED = {  # accuracy of crowd-kit 1.4.2
    "bluebird": 0.713, "dog": 0.828, "rte": 0.858, "temp": 0.924, "trec": 0.584, "face": 0.630,
    "cf": 0.773, "zc_us": 0.868, "leaves9": 0.908, "music_genre": 0.743, "sp_amt": 0.944,
    "sentiment_polarity": 0.901,
}  # fmt: skip


@pytest.mark.filterwarnings("ignore:.*repeat a .task, worker. pair")
@pytest.mark.parametrize("name", PUBLISHED)
def test_not_below_the_published_implementation(real_crowd, name):
    labels, truth = real_crowd(name)
    assert MMSR().fit(labels).score(labels, truth) >= PUBLISHED[name] - 0.005


@pytest.mark.parametrize(
    ("n_tasks", "n_workers", "accuracy", "per_task", "n_classes", "seed"),
    [(500, 100, (9, 1), 5, 3, 504), (1000, 30, (17, 3), 8, 4, 1004)],
)
def test_the_choice_of_extremes_does_not_go_round_in_circles(
    n_tasks, n_workers, accuracy, per_task, n_classes, seed
):
    """Two ratios that are nearly equal took turns at being left out, without end."""
    made = crowd(
        n_tasks, n_workers * OneCoinWorkers(*accuracy), PerTask(per_task),
        n_classes=n_classes, random_state=seed,
    )  # fmt: skip
    model = MMSR().fit(made.labels)
    assert model.converged_
    assert model.n_iter_ < 200
    assert np.mean(model.labels_ == made.truth) > 0.99
