"""BradleyTerry: closed forms, logistic regression, intervals against the bootstrap."""

from __future__ import annotations

import numpy as np
import pytest
from tests.kinds.pairs.finite_differences import assert_gradient, random_votes

from wisecrowd.core.exceptions import DataError, ParameterError
from wisecrowd.kinds.pairs.container import CrowdPairs
from wisecrowd.kinds.pairs.methods import covariance as item_covariance
from wisecrowd.kinds.pairs.methods import intervals as item_intervals
from wisecrowd.kinds.pairs.methods.bradley_terry import BradleyTerry, BradleyTerryLaw
from wisecrowd.simulate import VoteWorkers, votes


def small(seed=0, n_votes=400, **options):
    return votes(8, 15, n_votes, VoteWorkers(**options), random_state=seed)


@pytest.mark.parametrize(("wins", "losses"), [(3, 1), (10, 30), (1, 99)])
def test_two_items_have_the_log_odds_of_the_share(wins, losses):
    data = (["x"] * 2, ["y"] * 2, ["left", "right"])
    pairs = CrowdPairs.from_arrays(None, None, *data, weight=[wins, losses])
    fit = BradleyTerry(prior=0).fit(pairs)
    assert fit.scores_[0] - fit.scores_[1] == pytest.approx(np.log(wins / losses), abs=1e-8)


def test_a_cycle_with_equal_counts_is_a_tie():
    fit = BradleyTerry(prior=0).fit((list("xyz"), list("yzx"), ["left"] * 3))
    assert np.allclose(fit.scores_, 0, atol=1e-9)
    assert fit.rank_.tolist() == [1, 1, 1]


def test_equals_logistic_regression():
    """Newton's method on the design matrix, with the virtual item as two rows per item."""
    made = small(3).pairs
    prior = 0.7
    n = made.n_items
    design = np.zeros((made.n_annotations, n))
    rows = np.arange(made.n_annotations)
    design[rows, made.left] = 1
    design[rows, made.right] = -1
    X = np.vstack([design, np.eye(n), np.eye(n)])
    y = np.concatenate([made.outcome == 0, np.ones(n), np.zeros(n)])
    w = np.concatenate([np.ones(made.n_annotations), np.full(2 * n, prior)])
    b = np.zeros(n)
    for _ in range(30):
        p = 1 / (1 + np.exp(-X @ b))
        b += np.linalg.solve((X * (w * p * (1 - p))[:, None]).T @ X, X.T @ (w * (y - p)))
    fit = BradleyTerry(prior=prior).fit(made)
    assert np.allclose(fit.scores_, b - b.mean(), atol=1e-8)


def test_maximum_of_fixed_point_iteration():
    """The MM update of the literature has the same fixed point."""
    made = small(5).pairs
    n, prior = made.n_items, 0.5
    winner = np.where(made.outcome == 0, made.left, made.right)
    won = np.bincount(winner, minlength=n) + prior
    count = np.zeros((n, n))
    np.add.at(count, (made.left, made.right), 1)
    count += count.T
    strength = np.ones(n)
    for _ in range(5000):
        below = count / (strength[:, None] + strength[None, :])
        strength = won / (below.sum(axis=1) + 2 * prior / (strength + 1))
    expected = np.log(strength)
    fit = BradleyTerry(prior=prior).fit(made)
    assert np.allclose(fit.scores_, expected - expected.mean(), atol=1e-6)


def test_population_shares_return_the_scores():
    true = np.array([1.0, 0.2, -0.4, -0.8])
    left, right = np.triu_indices(4, 1)
    share = 1 / (1 + np.exp(true[right] - true[left]))
    pairs = CrowdPairs.from_arrays(
        None, None, np.tile(left, 2), np.tile(right, 2), ["left"] * 6 + ["right"] * 6,
        weight=1e6 * np.concatenate([share, 1 - share]),
    )  # fmt: skip
    assert np.allclose(BradleyTerry(prior=0).fit(pairs).scores_, true, atol=1e-7)


def test_half_won_ties_and_dropped_ties():
    votes = (["x"] * 4, ["y"] * 4, ["left", "left", "right", "tie"])
    half = BradleyTerry(prior=0).fit(votes)
    assert half.scores_[0] - half.scores_[1] == pytest.approx(np.log(2.5 / 1.5), abs=1e-8)
    drop = BradleyTerry(prior=0, ties="drop").fit(votes)
    assert drop.scores_[0] - drop.scores_[1] == pytest.approx(np.log(2), abs=1e-8)


def test_side_and_style_are_recovered():
    rng = np.random.default_rng(2)
    true = np.array([1.0, 0.0, -1.0])
    left = rng.integers(0, 3, 8000)
    right = (left + rng.integers(1, 3, 8000)) % 3
    length = rng.normal(size=8000)
    x = true[left] - true[right] + 0.5 + 0.8 * length
    outcome = np.where(rng.random(8000) < 1 / (1 + np.exp(-x)), "left", "right")
    pairs = CrowdPairs.from_arrays(
        None, rng.integers(0, 50, 8000), left, right, outcome, style={"length": length}
    )
    fit = BradleyTerry(side=True, style=True).fit(pairs)
    assert abs(fit.side_bias_ - 0.5) < 4 * fit.side_bias_error_ < 0.2
    assert abs(fit.style_[0] - 0.8) < 4 * fit.style_error_[0] < 0.2
    assert np.allclose(fit.scores_, true, atol=0.1)
    turned = BradleyTerry(side=True, style=True).fit(pairs.mirrored())
    assert turned.side_bias_ == pytest.approx(-fit.side_bias_, abs=1e-5)
    assert np.allclose(turned.style_, fit.style_, atol=1e-5)
    assert fit.score(pairs) > BradleyTerry().fit(pairs).score(pairs) + 0.02


def test_without_covariates_the_law_is_the_same_model():
    made = small(7).pairs
    plain = BradleyTerry().fit(made)
    sided = BradleyTerry(side=True).fit(made)
    assert np.allclose(plain.scores_, sided.scores_, atol=0.1)
    widths = plain.high_ - plain.low_, sided.high_ - sided.low_
    assert np.allclose(*widths, rtol=0.05)


def test_gradient():
    votes = random_votes()
    design = np.random.default_rng(3).normal(size=(len(votes.left), 2))
    assert_gradient(BradleyTerryLaw(0.5, design), votes, 2, 0)


def test_sandwich_by_votes_is_the_spread_of_the_bootstrap():
    made = small(11, n_votes=1500).pairs
    fit = BradleyTerry(cluster="votes").fit(made)
    rng, draws = np.random.default_rng(0), []
    for _ in range(300):
        weight = np.bincount(rng.integers(0, 1500, 1500), minlength=1500).astype(float)
        draws.append(BradleyTerry(cluster="votes").fit(_reweighted(made, weight)).scores_)
    ratio = np.sqrt(np.diag(fit.covariance_)) / np.std(draws, axis=0)
    assert abs(ratio.mean() - 1) < 0.05
    assert np.abs(ratio - 1).max() < 0.2


def test_sandwich_by_workers_is_the_spread_of_the_bootstrap_over_workers():
    made = votes(8, 60, 3000, VoteWorkers(taste=1.0), random_state=4).pairs
    fit = BradleyTerry().fit(made)
    rng, draws = np.random.default_rng(0), []
    for _ in range(300):
        times = np.bincount(rng.integers(0, 60, 60), minlength=60)
        weight = times[made.worker].astype(float)
        draws.append(BradleyTerry(cluster="votes").fit(_reweighted(made, weight)).scores_)
    ratio = np.sqrt(np.diag(fit.covariance_)).mean() / np.std(draws, axis=0).mean()
    assert abs(ratio - 1) < 0.1
    by_votes = BradleyTerry(cluster="votes").fit(made)
    assert (fit.high_ - fit.low_).mean() > 1.2 * (by_votes.high_ - by_votes.low_).mean()


def _reweighted(pairs, weight):
    from dataclasses import replace

    return replace(pairs, weight=weight)


def test_covariance_is_that_of_centred_scores():
    fit = BradleyTerry(cluster="votes").fit(small(1).pairs)
    assert np.allclose(fit.covariance_.sum(axis=0), 0, atol=1e-10)
    assert np.allclose(fit.covariance_, fit.covariance_.T)


def test_many_items_have_the_same_scores_and_similar_intervals(monkeypatch):
    made = votes(40, 30, 4000, VoteWorkers(taste=0.5), random_state=2).pairs
    dense = BradleyTerry().fit(made)
    from wisecrowd.kinds.pairs.methods import bradley_terry, vote_laws

    for module in (bradley_terry, vote_laws):
        monkeypatch.setattr(module, "MOST_DENSE", 10)
    for cluster in ("auto", "votes"):
        dense = BradleyTerry(cluster=cluster).fit(made)
        drawn = BradleyTerry(cluster=cluster).fit(made)
        assert "covariance_" not in vars(drawn)
        assert np.allclose(dense.scores_, drawn.scores_, atol=1e-5)
    monkeypatch.undo()
    dense = BradleyTerry(cluster=cluster).fit(made)
    ratio = (drawn.high_ - drawn.low_) / (dense.high_ - dense.low_)
    assert abs(ratio.mean() - 1) < 0.05


def test_conjugate_gradient_steps_agree_with_factorised_ones(monkeypatch):
    from wisecrowd.kinds.pairs.methods import bradley_terry

    made = small(9).pairs
    dense = BradleyTerry().fit(made)
    monkeypatch.setattr(bradley_terry, "DENSE_STEP", 2)
    assert np.allclose(dense.scores_, BradleyTerry().fit(made).scores_, atol=1e-7)


def test_without_a_prior_infinite_scores_are_refused():
    with pytest.raises(DataError, match="infinite scores"):
        BradleyTerry(prior=0).fit((["x"], ["y"], ["left"]))


@pytest.mark.parametrize(
    "options", [{"prior": -1}, {"ties": "win"}, {"side": 1}, {"cluster": "people"}]
)
def test_bad_parameters_are_refused(options):
    with pytest.raises(ParameterError):
        BradleyTerry(**options).fit((["x"], ["y"], ["left"]))


def test_style_needs_covariates():
    with pytest.raises(DataError, match="style covariates"):
        BradleyTerry(style=True).fit((["x"], ["y"], ["left"]))


def test_single_precision_gives_the_same_ranges_of_ranks(monkeypatch):
    made = votes(60, 30, 6000, random_state=2).pairs
    double = BradleyTerry().fit(made)
    monkeypatch.setattr(item_covariance, "SINGLE", 10)
    monkeypatch.setattr(item_intervals, "SINGLE", 10)
    single = BradleyTerry().fit(made)
    assert np.allclose(double.low_, single.low_, atol=1e-5)
    assert np.abs(double.rank_low_ - single.rank_low_).max() <= 2
    assert np.abs(double.p_best_ - single.p_best_).max() < 0.05


@pytest.mark.data
def test_reading_difficulty(data_directory):
    import csv

    with (data_directory / "reading_difficulty" / "answers.csv").open() as file:
        rows = [row for row in csv.DictReader(file) if row["left"] != row["right"]]
    with (data_directory / "reading_difficulty" / "truth.csv").open() as file:
        truth = {row["item"]: float(row["score"]) for row in csv.DictReader(file)}
    words = {"0": "left", "1": "right"}
    pairs = CrowdPairs.from_arrays(
        *([row[name] for row in rows] for name in ("task", "worker", "left", "right")),
        [words[row["label"]] for row in rows],
    )
    assert BradleyTerry().fit(pairs).score(pairs, truth) >= 0.335
