"""Intervals, ranges of ranks and P(best), against exact answers and numerical integration."""

from __future__ import annotations

from statistics import NormalDist

import numpy as np
import pytest

from wisecrowd.aggregation import BradleyTerry, CrowdBT, Davidson, RaoKupper, WorkerTies
from wisecrowd.core.registry import get_method, method_names
from wisecrowd.kinds.pairs.methods.base import fit_tie_layer, tie_log_probas
from wisecrowd.kinds.pairs.methods.comparisons import Votes, parts
from wisecrowd.kinds.pairs.methods.covariance import (
    cluster_meat,
    conjugate_gradients,
    humble,
    inverse,
    laplacian,
    sandwich,
    sparse_laplacian,
)
from wisecrowd.kinds.pairs.methods.intervals import (
    WIDTHS,
    best_chances,
    best_chances_of_draws,
    error_draws,
    normal_draws,
    rank_ranges,
    ranks,
    within_prior,
)


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
    from wisecrowd.kinds.pairs.methods import covariance

    monkeypatch.setattr(covariance, "BLOCK", block)
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
    """The difference of two independent scores is normal, and its sign is not certain."""
    covariance = np.diag([0.3, 0.5])
    low, high = rank_ranges(np.array([0.4, 0.0]), error_draws(covariance))
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
    fitted = CrowdBT(prior="wide").fit(votes)
    assert fitted.scores_.tolist() == [0, 0]
    assert fitted.high_.max() < 7
    finding = next(one for one in fitted.findings_ if one.id == "not-comparable")
    assert finding.severity == "medium"
    assert finding.affected == ("x", "y")
    assert "not comparable yet" in finding.explanation


@pytest.mark.parametrize("name", method_names(type="pairs"))
def test_two_opposite_votes_have_no_endless_interval(name):
    method = get_method(name)()
    if getattr(method, "needs_timestamps", False):
        return
    fitted = method.fit((["ann", "bob"], ["x", "x"], ["y", "y"], ["left", "right"]))
    assert np.abs(fitted.scores_).max() < 1e-6
    assert (fitted.high_ - fitted.low_).max() < 20
    assert fitted.tied_with_best_.all()
    assert fitted.p_best_.tolist() == [0.5, 0.5]
    assert [finding.id for finding in fitted.findings_].count("not-comparable") == 1
    assert "not comparable yet" in " ".join(fitted.warnings_)


def test_items_that_votes_tell_apart_are_comparable():
    votes = (list(range(40)), ["x"] * 40, ["y"] * 40, ["left"] * 38 + ["right"] * 2)
    fitted = BradleyTerry().fit(votes)
    assert fitted.rank_high_.tolist() == [1, 2]
    assert "not-comparable" not in {finding.id for finding in fitted.findings_}


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


BOTH = np.ones(2, bool)


def random_covariance(n, seed):
    A = np.random.default_rng(seed).normal(size=(n, n))
    centre = np.eye(n) - 1 / n
    return centre @ A @ A.T @ centre


@pytest.mark.parametrize("method", [BradleyTerry, Davidson, RaoKupper, WorkerTies])
@pytest.mark.parametrize("v", [1, 20])
def test_equal_votes_leave_two_items_equal(method, v):
    rows = [(["ann", "bob"][k % 2], "x", "y", ["left", "right"][k % 2]) for k in range(2 * v)]
    fit = method().fit(tuple(zip(*rows, strict=True)))
    assert fit.p_best_.tolist() == [0.5, 0.5]


def test_a_wide_prior_is_no_shrinkage():
    covariance, scores = random_covariance(5, 0), np.array([0.9, 0.2, 0.0, -0.5, -0.6])
    normal = normal_draws(5)
    found = best_chances(scores, covariance, normal, np.ones(5, bool), np.array([1e6]))
    values, axes = np.linalg.eigh(covariance)
    root = axes @ np.diag(np.sqrt(np.maximum(values, 0))) @ axes.T
    plain = np.bincount((scores + normal @ root).argmax(axis=1), minlength=5) / len(normal)
    assert np.allclose(found, plain, atol=0.005)


def test_two_items_by_numerical_integration():
    """The difference of two items has one axis, for which all is in closed form."""
    covariance = 0.2 * np.array([[1.0, -1.0], [-1.0, 1.0]])
    scores = np.array([0.3, -0.3])
    at, variance, total, weight = 0.6 / np.sqrt(2), 0.4, 0.0, 0.0
    for k in WIDTHS:
        spread = np.sqrt(variance + k**2)
        mass = np.exp(-(at**2) / 2 / spread**2 - np.log(k) ** 2 / 2) / spread
        mean = k**2 / (k**2 + variance) * at
        total += mass * NormalDist(mean, np.sqrt(k**2 * variance / (k**2 + variance))).cdf(0)
        weight += mass
    found = best_chances(scores, covariance, normal_draws(2), BOTH)
    assert found[0] == pytest.approx(1 - total / weight, abs=0.02)


def test_names_do_not_matter():
    covariance, scores = random_covariance(6, 1), np.random.default_rng(2).normal(size=6)
    normal, order = normal_draws(6), np.random.default_rng(3).permutation(6)
    every = np.ones(6, bool)
    first = best_chances(scores, covariance, normal, every)
    second = best_chances(scores[order], covariance[np.ix_(order, order)], normal[:, order], every)
    assert second.tolist() == first[order].tolist()


def test_the_level_of_the_scores_does_not_matter():
    covariance, scores = random_covariance(4, 4), np.array([0.5, 0.1, -0.2, -0.4])
    normal, every = normal_draws(4), np.ones(4, bool)
    plain = best_chances(scores, covariance, normal, every)
    moved = best_chances(scores + 3, covariance + 2.0, normal, every)
    assert np.allclose(moved, plain, atol=0.002)


def test_the_winner_of_many_equal_items_is_doubted():
    """The largest of 20 scores that are noise is not the best with certainty."""
    rng = np.random.default_rng(5)
    scores = rng.normal(size=20)
    scores -= scores.mean()
    covariance = np.eye(20) - 1 / 20
    every = np.ones(20, bool)
    shrunk = best_chances(scores, covariance, normal_draws(20), every).max()
    plain = best_chances(scores, covariance, normal_draws(20), every, np.array([1e6])).max()
    assert shrunk < 0.8 * plain


def test_draws_of_independent_errors_agree():
    variance, scores = np.array([0.2, 0.3, 0.5, 0.4]), np.array([0.7, 0.3, -0.4, -0.6])
    normal = np.random.default_rng(6).standard_normal((20_000, 4))
    draws = np.concatenate([normal, -normal]) * np.sqrt(variance)
    found = best_chances_of_draws(scores, draws)
    exact = best_chances(scores, np.diag(variance), np.concatenate([normal, -normal]),
                         np.ones(4, bool))  # fmt: skip
    assert np.allclose(found, exact, atol=0.05)
    assert found.sum() == pytest.approx(1)
