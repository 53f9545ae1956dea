"""PlackettLuce: pairs are Bradley-Terry, enumeration, gradient, its own simulator."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

from wisecrowd.kinds.pairs.methods.bradley_terry import BradleyTerry
from wisecrowd.kinds.rankings.container import CrowdRankings
from wisecrowd.kinds.rankings.methods import plackett_luce
from wisecrowd.kinds.rankings.methods.plackett_luce import (
    Curvature,
    Group,
    PlackettLuce,
    _second_order,
    slopes,
    stages,
)
from wisecrowd.simulate import votes

SCORES = np.array([0.7, -0.2, 0.1, -0.6])


def drawn(n, length, seed=0, n_workers=20):
    rng = np.random.default_rng(seed)
    rows = []
    for _ in range(n):
        chosen = rng.permutation(4)[:length]
        rows.append(chosen[np.argsort(-(SCORES[chosen] + rng.gumbel(size=length)))].tolist())
    return CrowdRankings.from_arrays(None, rng.integers(0, n_workers, n), rows)


def test_rankings_of_two_items_are_bradley_terry():
    pairs = votes(5, 15, 400, random_state=0).pairs
    better = np.where(pairs.outcome == 0, pairs.left, pairs.right)
    worse = np.where(pairs.outcome == 0, pairs.right, pairs.left)
    rankings = CrowdRankings.from_arrays(
        None, pairs.worker, np.column_stack([better, worse]).tolist()
    )
    ours, plain = PlackettLuce(tol=1e-10).fit(rankings), BradleyTerry().fit(pairs)
    assert np.allclose(ours.scores_, plain.scores_, atol=1e-6)
    assert np.allclose(ours.covariance_, plain.covariance_, atol=1e-6)


def test_probabilities_of_all_orders_sum_to_one():
    table = np.array(list(permutations(range(4))))
    p = np.exp(stages(SCORES, table).value)
    assert p.sum() == pytest.approx(1)
    first = p[table[:, 0] == 0].sum()
    assert first == pytest.approx(np.exp(SCORES[0]) / np.exp(SCORES).sum())


def test_derivatives_by_finite_differences():
    table = np.array([[0, 2, 1], [3, 1, 0]])
    group, step = Group(np.arange(2), table, np.array([1.0, 2.0])), 1e-5

    def gradient(scores):
        pull = group.weight[:, None] * slopes(stages(scores, table))
        return np.bincount(table.ravel(), pull.ravel(), 4)

    hessian = _second_order([group], SCORES, 4)[0]
    for a in range(4):
        move = step * np.eye(4)[a]
        values = [group.weight @ stages(SCORES + sign * move, table).value for sign in (1, -1)]
        assert gradient(SCORES)[a] == pytest.approx((values[0] - values[1]) / (2 * step), abs=1e-8)
        numeric = (gradient(SCORES - move) - gradient(SCORES + move)) / (2 * step)
        assert np.allclose(hessian[a], numeric, atol=1e-8)


def test_population_of_all_orders_returns_the_scores():
    table = list(permutations(range(4)))
    weight = 1e5 * np.exp(stages(SCORES, np.array(table)).value)
    rankings = CrowdRankings.from_arrays(None, None, [list(one) for one in table], weight=weight)
    fit = PlackettLuce(prior=1e-6, tol=1e-10).fit(rankings)
    assert np.allclose(fit.scores_, SCORES - SCORES.mean(), atol=1e-5)


def test_recovers_scores_and_covers_them():
    inside = []
    for seed in range(30):
        fit = PlackettLuce().fit(drawn(300, 3, seed))
        true = SCORES - SCORES.mean()
        inside.append((fit.low_ <= true) & (true <= fit.high_))
    assert 0.88 <= np.mean(inside) <= 1.0


def test_rankings_tell_more_than_their_winners():
    whole, top = drawn(400, 4, 1), drawn(400, 2, 1)
    widths = [np.mean(f.high_ - f.low_) for f in (PlackettLuce().fit(d) for d in (whole, top))]
    assert widths[0] < widths[1]


def test_score_is_the_mean_log_likelihood():
    data = drawn(50, 3)
    fit = PlackettLuce().fit(data)
    table = data.ranking.reshape(-1, 3)
    assert fit.score(data) == pytest.approx(stages(fit.scores_, table).value.mean())
    assert fit.score(data, dict(enumerate(SCORES.tolist()))) > 0
    assert fit.item_table("pyarrow").num_rows == 4


def test_products_with_the_second_derivatives_are_those_of_the_table():
    rng = np.random.default_rng(0)
    groups = [
        Group(np.arange(n), np.array([rng.permutation(9)[:m] for _ in range(n)]), rng.random(n))
        for n, m in ((1, 9), (5, 4))
    ]
    scores, prior, vectors = rng.normal(size=9), rng.random(9), rng.normal(size=(9, 3))
    table = _second_order(groups, scores, 9)[0] + np.diag(prior)
    matrix = Curvature(groups, scores, prior)
    assert np.allclose(matrix @ vectors, table @ vectors, rtol=1e-12)
    assert np.allclose(matrix.diagonal(), np.diag(table), rtol=1e-12)


@pytest.mark.parametrize("n_workers", [4, 40])  # below and above the number that makes clusters
def test_drawn_intervals_of_very_many_items_are_those_of_the_covariance(monkeypatch, n_workers):
    data = drawn(300, 3, n_workers=n_workers)
    exact = PlackettLuce().fit(data)
    monkeypatch.setattr(plackett_luce, "MOST_DENSE", 3)
    monkeypatch.setattr(plackett_luce, "FEW_DRAWS", 4000)
    many = PlackettLuce().fit(data)
    assert np.array_equal(many.scores_, exact.scores_)
    assert not hasattr(many, "covariance_")
    assert np.allclose(many.high_ - many.low_, exact.high_ - exact.low_, rtol=0.06)
    assert np.array_equal(many.rank_high_, exact.rank_high_)


def test_a_thousand_items():
    rng = np.random.default_rng(0)
    fit = PlackettLuce().fit(([1, 2, 3], [rng.permutation(1000).tolist() for _ in range(3)]))
    assert fit.converged_
    assert (fit.low_ < fit.scores_).all()
