"""RewardMixture: EM by hand, monotone objective, recovered groups, choice of their number."""

from __future__ import annotations

import numpy as np
import pytest

from wisecrowd.core.exceptions import DataError, ParameterError
from wisecrowd.kinds.pairs.container import CrowdPairs
from wisecrowd.learning import PreferenceNet, RewardMixture
from wisecrowd.learning.pairs.reward_mixture import _EM, folds_by_worker
from wisecrowd.testing.learners import items_and_votes


def two_groups(seed=0, n_items=100, n_votes=2500, n_workers=20, n_minority=5):
    """Return features, votes of two groups with their own weights, weights and groups."""
    rng = np.random.default_rng(seed)
    X, W = rng.normal(size=(n_items, 6)), 1.5 * rng.normal(size=(2, 6))
    group = (np.arange(n_workers) >= n_workers - n_minority).astype(int)
    left = rng.integers(0, n_items, n_votes)
    right = (left + rng.integers(1, n_items, n_votes)) % n_items
    worker = rng.integers(0, n_workers, n_votes)
    margin = ((X[left] - X[right]) * W[group[worker]]).sum(axis=1)
    won = rng.random(n_votes) < 1 / (1 + np.exp(-margin))
    votes = CrowdPairs.from_arrays(
        None, worker, left, right, np.where(won, 0, 1), items=range(n_items)
    )
    return X, votes, W, group


def alike(one, other):
    return one @ other / np.linalg.norm(one) / np.linalg.norm(other)


@pytest.mark.filterwarnings("ignore:.*have no votes")
def test_it_finds_the_groups_their_number_and_their_rewards():
    X, votes, W, group = two_groups()
    fit = RewardMixture().fit(X, votes, items=range(len(X)))
    assert fit.coef_.shape == (2, 6)
    assert (fit.membership_.argmax(axis=1) == group).all()
    assert min(alike(fit.coef_[g], W[g]) for g in (0, 1)) > 0.97
    np.testing.assert_allclose(
        fit.group_share_, [16 / 22, 6 / 22], atol=1e-6
    )  # (n_g + 1) / (J + G)
    one = RewardMixture(n_groups=1).fit(X, votes, items=range(len(X)))
    assert alike(one.coef_[0], W[1]) < 0.8


@pytest.mark.filterwarnings("ignore:.*have no votes")
def test_one_group_stays_one():
    X, votes, _, _ = two_groups(1, n_minority=0)
    assert RewardMixture().fit(X, votes, items=range(len(X))).coef_.shape == (1, 6)


@pytest.mark.filterwarnings("ignore:.*have no votes")
def test_one_group_is_plain_preference_learning():
    X, votes, _, _ = two_groups(1, n_minority=0)
    one = RewardMixture(n_groups=1, l2=1e-6).fit(X, votes, items=range(len(X)))
    options = {"batch_size": 2500, "epochs": 800, "lr": 0.3, "weight_decay": 0.0}
    net = PreferenceNet(loss="plain", **options).fit(X, votes, items=range(len(X)))
    np.testing.assert_allclose(one.group_scores_[:, 0], net.scores_, atol=0.05)


def test_the_objective_never_decreases_and_is_that_of_the_docstring():
    X, votes = items_and_votes()
    fit = RewardMixture(n_groups=3, n_init=1, tol=0.0, max_iter=30).fit(X, votes)
    objective = np.array([record["objective"] for record in fit.history_])
    assert (np.diff(objective) >= -1e-9 * np.abs(objective[:-1])).all()
    standard = (X - X.mean(axis=0)) / X.std(axis=0)
    em = _EM(standard, votes, 1.0)
    weights = fit.coef_ * X.std(axis=0)
    _, value = em.memberships(weights, fit.group_share_)
    margin = (standard[votes.left] - standard[votes.right]) @ weights.T
    won = np.select([votes.outcome == 0, votes.outcome == 1], [1.0, 0.0], 0.5)[:, None]
    logs = won * -np.log1p(np.exp(-margin)) + (1 - won) * -np.log1p(np.exp(margin))
    by_hand = 0.0
    for j in range(votes.n_workers):
        total = logs[votes.worker == j].sum(axis=0)
        by_hand += np.log((fit.group_share_ * np.exp(total)).sum())
    by_hand += np.log(fit.group_share_).sum() - 0.5 * (weights**2).sum()
    assert value == pytest.approx(by_hand, rel=1e-10)


def test_memberships_follow_bayes_rule():
    X, votes = items_and_votes()
    em = _EM(X, votes, 1.0)
    weights, share = np.array([[1.0, 0, 0], [0, -1.0, 0.5]]), np.array([0.7, 0.3])
    membership, _ = em.memberships(weights, share)
    margin = (X[votes.left] - X[votes.right]) @ weights.T
    p = 1 / (1 + np.exp(-margin))
    each = np.where((votes.outcome == 2)[:, None], np.sqrt(p * (1 - p)),
                    np.where((votes.outcome == 0)[:, None], p, 1 - p))  # fmt: skip
    for j in range(votes.n_workers):
        joint = share * each[votes.worker == j].prod(axis=0)
        np.testing.assert_allclose(membership[j], joint / joint.sum(), rtol=1e-9)


def test_the_m_step_is_at_its_optimum():
    X, votes = items_and_votes()
    em, rng = _EM(X, votes, 2.0), np.random.default_rng(0)
    membership = rng.random(votes.n_workers)
    w = em.solve(membership, np.zeros(3))
    margin = (X[votes.left] - X[votes.right]) @ w
    slope = membership[votes.worker] * (1 / (1 + np.exp(-margin)) - em.won)
    gradient = (X[votes.left] - X[votes.right]).T @ slope + 2.0 * w
    np.testing.assert_allclose(gradient, 0, atol=1e-4)


@pytest.mark.filterwarnings("ignore:.*have no votes")
def test_the_egalitarian_score_is_the_smallest_standardised_reward():
    X, votes, _, _ = two_groups()
    fit = RewardMixture(n_groups=2).fit(X, votes, items=range(len(X)))
    scores = fit.group_scores_[votes.comparisons_per_item > 0]
    smallest = (fit.group_scores_ / scores.std(axis=0)).min(axis=1)
    np.testing.assert_allclose(fit.scores_ - fit.scores_[0], smallest - smallest[0], atol=1e-12)
    np.testing.assert_allclose(fit.predict(X), fit.scores_, atol=1e-12)
    np.testing.assert_allclose(fit.predict_groups(X), fit.group_scores_, atol=1e-12)
    assert list(fit.main_columns())[-2:] == ["score_group_0", "score_group_1"]
    assert fit.worker_columns()["group"].tolist() == [0] * 15 + [1] * 5


@pytest.mark.filterwarnings("ignore:.*have no votes")
def test_score_uses_the_group_of_known_workers():
    X, votes, _, _ = two_groups()
    two = RewardMixture(n_groups=2).fit(X, votes, items=range(len(X)))
    one = RewardMixture(n_groups=1).fit(X, votes, items=range(len(X)))
    assert two.score(X, votes, items=range(len(X))) > one.score(X, votes, items=range(len(X)))


def test_folds_are_spread_over_the_votes_of_each_worker():
    _, votes = items_and_votes()
    fold = folds_by_worker(votes, np.random.default_rng(0))
    counts = np.stack([np.bincount(fold[votes.worker == j], minlength=5) for j in range(6)])
    assert (np.ptp(counts, axis=1) <= 1).all()


def test_wrong_input():
    X, votes = items_and_votes()
    for options, words in (({"n_groups": 0}, "n_groups"), ({"n_groups": "many"}, "or 'auto'"),
                           ({"l2": 0}, "l2")):  # fmt: skip
        with pytest.raises(ParameterError, match=words):
            RewardMixture(**options).fit(X, votes)
    with pytest.raises(ParameterError, match="fit without resume"):
        RewardMixture().fit(X, votes, resume=True)
    fit = RewardMixture(n_groups=1).fit(X, votes)
    with pytest.raises(DataError, match="expecting 3"):
        fit.predict(np.zeros((2, 3, 2)))
    one = RewardMixture().fit(np.eye(2), (["ann"], [0], [1], ["left"]))
    assert one.rank_.tolist() == [1, 2]
