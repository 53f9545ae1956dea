"""Intervals and ranges of ranks against exact answers."""

from __future__ import annotations

import numpy as np
import pytest

from wisecrowd.aggregation import BradleyTerry, CrowdBT
from wisecrowd.families.comparisons import Votes, parts
from wisecrowd.families.item_intervals import (
    cluster_meat,
    error_draws,
    humble,
    inverse,
    laplacian,
    rank_ranges,
    ranks,
    sandwich,
    sparse_laplacian,
    within_prior,
)
from wisecrowd.families.large_covariance import conjugate_gradients
from wisecrowd.families.tie_layer import fit_tie_layer, tie_log_probas


def some_votes(n=6, rows=40, seed=0):
    rng = np.random.default_rng(seed)
    left = rng.integers(0, n, rows)
    right = (left + rng.integers(1, n, rows)) % n
    return Votes(left, right, None, rng.uniform(0, 1, (rows, 3)), n, 1)


def test_laplacians_by_their_definition():
    votes, rng = some_votes(), np.random.default_rng(1)
    weight = rng.uniform(0, 1, 40)
    expected = np.zeros((6, 6))
    for a, b, w in zip(votes.left, votes.right, weight, strict=True):
        e = np.eye(6)[a] - np.eye(6)[b]
        expected += w * np.outer(e, e)
    assert np.allclose(laplacian(votes, weight), expected)
    assert np.allclose(sparse_laplacian(votes, weight).toarray(), expected)


@pytest.mark.parametrize("block", [1 << 22, 10])
def test_cluster_meat_by_its_definition(monkeypatch, block):
    from wisecrowd.families import item_intervals

    monkeypatch.setattr(item_intervals, "BLOCK", block)
    votes, rng = some_votes(), np.random.default_rng(2)
    pull, code, extra = rng.normal(size=40), rng.integers(0, 9, 40) * 2, rng.normal(size=(40, 2))
    expected = np.zeros((8, 8))
    for cluster in range(20):
        g = np.zeros(8)
        for e in np.flatnonzero(code == cluster):
            g[votes.left[e]] += pull[e]
            g[votes.right[e]] -= pull[e]
            g[6:] += extra[e]
        expected += np.outer(g, g)
    assert np.allclose(cluster_meat(votes.left, votes.right, pull, code, extra, 6), expected)


def test_sandwich_is_projected_and_keeps_lonely_items_apart():
    rng = np.random.default_rng(3)
    A, B = rng.normal(size=(5, 5)), rng.normal(size=(5, 5))
    bread, meat = A @ A.T, B @ B.T
    everyone = np.ones(5, dtype=bool)
    P = np.eye(5) - 1 / 5
    assert np.allclose(sandwich(bread, meat, everyone), P @ bread @ meat @ bread @ P)
    found = sandwich(bread, meat, np.array([True] * 4 + [False]))
    assert found[4, 4] == pytest.approx((bread @ meat @ bread)[4, 4])
    assert (found[4, :4] == 0).all()


def test_inverse_of_flat_directions_is_finite():
    matrix = np.diag([1.0, 2.0])
    assert np.allclose(inverse(matrix), np.diag([1.0, 0.5]))
    assert np.isfinite(inverse(np.ones((2, 2)))).all()


def test_humble_covariance_is_never_narrower_than_by_votes():
    votes, clusters = np.diag([1.0, 4.0]), np.diag([4.0, 1.0])
    many = humble(votes, clusters, 1000)
    assert np.allclose(np.diag(many), [4.0, 4.0], rtol=0.01)
    few = humble(votes, clusters, 4)
    assert np.allclose(few, votes * 4 / 3)


def test_ranks_of_two_items_by_the_normal_distribution():
    """The difference of two independent scores is normal: P(best) has a closed form."""
    from statistics import NormalDist

    covariance = np.diag([0.3, 0.5])
    low, high, p_best = rank_ranges(np.array([0.4, 0.0]), error_draws(covariance))
    assert p_best[0] == pytest.approx(NormalDist().cdf(0.4 / np.sqrt(0.8)), abs=0.03)
    assert low.tolist() == [1, 1]
    assert high.tolist() == [2, 2]
    sure = rank_ranges(np.array([9.0, 0.0]), error_draws(covariance))
    assert sure[0].tolist() == sure[1].tolist() == [1, 2]


def test_draws_have_the_covariance():
    A = np.random.default_rng(4).normal(size=(4, 4))
    covariance = A @ A.T
    draws = error_draws(covariance)
    assert np.allclose(draws.T @ draws / len(draws), covariance, rtol=0.2, atol=0.4)
    assert np.allclose(draws.mean(axis=0), 0, atol=1e-12)


def test_equal_scores_share_a_rank():
    assert ranks(np.array([1.0, 2.0, 1.0 + 1e-12, 0.0])).tolist() == [2, 1, 2, 4]


def test_parts_are_numbered_by_size():
    assert parts(np.array([3, 4, 0]), np.array([4, 5, 1]), 7).tolist() == [1, 1, 2, 0, 0, 0, 3]


def test_conjugate_gradients_solve():
    from scipy import sparse

    A = np.random.default_rng(5).normal(size=(8, 8))
    matrix, sides = A @ A.T + np.eye(8), A[:, :3]
    found = conjugate_gradients(sparse.csr_matrix(matrix), sides)
    assert np.allclose(matrix @ found, sides, atol=1e-4)


def test_tie_layer_recovers_its_parameters():
    rng = np.random.default_rng(6)
    x = rng.normal(size=60000)
    p = np.exp(tie_log_probas(x, np.array([1.7, -0.4])))
    drawn = (rng.random((60000, 1)) > p.cumsum(axis=1)).sum(axis=1)
    found = fit_tie_layer(x, np.eye(3)[drawn])  # counted in bins
    assert np.allclose(found, [1.7, -0.4], atol=0.04)
    exact = fit_tie_layer(x[:15000], np.eye(3)[drawn[:15000]])
    assert np.allclose(exact, [1.7, -0.4], atol=0.08)


def test_tie_layer_without_ties_leaves_wins_alone():
    x = np.array([1.0, -2.0])
    layer = fit_tie_layer(x, np.array([[50.0, 20, 0], [10.0, 90, 0]]))
    p = np.exp(tie_log_probas(x, layer))
    assert np.allclose(p[:, 0] / (p[:, 0] + p[:, 1]), 1 / (1 + np.exp(-x)))
    assert (p[:, 2] < 0.01).all()


def test_two_opposite_votes_are_not_comparable_yet():
    votes = (["ann", "bob"], ["x", "x"], ["y", "y"], ["left", "right"])
    fitted = CrowdBT().fit(votes)
    assert fitted.scores_.tolist() == [0, 0]
    assert fitted.high_.max() < 7
    finding = next(one for one in fitted.findings_ if one.id == "not-comparable")
    assert finding.severity == "medium"
    assert finding.affected == ("x", "y")
    assert "not comparable yet" in finding.explanation


def test_errors_of_items_with_votes_stay():
    covariance = np.diag([1.0, 4.0, 30.0])
    same, unknown = within_prior(np.zeros(3), covariance)
    assert same is covariance
    assert not unknown.any()
    capped, unknown = within_prior(np.array([0.0, 8.0, 0.0]), np.diag([1.0, 1e6, 1e6]))
    assert unknown.tolist() == [False, True, True]
    assert np.sqrt(np.diag(capped)) == pytest.approx([1, 8, np.pi])


def test_names_of_items_do_not_matter():
    rng = np.random.default_rng(0)
    n = 12
    left, right = rng.integers(0, n, (2, 200))
    left, right = left[left != right], right[left != right]
    better = rng.random(len(left)) < 1 / (1 + np.exp(0.3 * (left - right)))
    outcome = np.where(better, "left", "right")
    worker = rng.integers(0, 15, len(left))
    first = CrowdBT().fit((worker, left, right, outcome))
    name = rng.permutation(n)
    second = CrowdBT().fit((worker, name[left], name[right], outcome))
    for one in ("rank_low_", "rank_high_", "p_best_"):
        assert getattr(second, one)[name].tolist() == getattr(first, one).tolist()


def test_items_that_only_names_distinguish_have_the_same_range():
    # a beats b and c, d loses to both: b and c are twins.
    rows = [("a", "b"), ("a", "c"), ("b", "d"), ("c", "d")] * 3
    left, right = zip(*rows, strict=True)
    fitted = BradleyTerry().fit((["w", "v", "u"] * 4, left, right, ["left"] * 12))
    assert fitted.p_best_[1] == fitted.p_best_[2]
    for ends in (fitted.rank_low_, fitted.rank_high_):
        assert ends[1] == ends[2]
