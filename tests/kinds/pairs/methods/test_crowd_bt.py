"""CrowdBT with prior="wide": special cases, symmetries, adversaries, EM as a reference."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tests.kinds.pairs.finite_differences import assert_gradient, random_votes

from wisecrowd.kinds.pairs.methods.bradley_terry import BradleyTerry
from wisecrowd.kinds.pairs.methods.comparisons import single_votes
from wisecrowd.kinds.pairs.methods.crowd_bt import CrowdBT, CrowdBTLaw, compiled_objective
from wisecrowd.kinds.pairs.methods.vote_laws import objective
from wisecrowd.kinds.pairs.outcomes import LEFT, RIGHT
from wisecrowd.simulate import VoteWorkers, votes


def turned(pairs, workers):
    """Return the votes with those of some workers turned around."""
    flip = np.isin(pairs.worker, workers) & (pairs.outcome < 2)
    outcome = np.where(flip, np.where(pairs.outcome == LEFT, RIGHT, LEFT), pairs.outcome)
    return replace(pairs, outcome=outcome.astype(np.int8))


def test_certain_workers_are_bradley_terry():
    pairs = votes(8, 10, 800, random_state=0).pairs
    plain = BradleyTerry().fit(pairs)
    crowd = CrowdBT(prior="wide", alpha=1e6, beta=0).fit(pairs)
    assert np.allclose(crowd.reliability_, 1, atol=1e-3)
    assert np.allclose(plain.scores_, crowd.scores_, atol=5e-3)


def test_a_worker_at_one_half_has_no_gradient():
    law = CrowdBTLaw(0.5, 1.0, 1.0)
    rows = random_votes()
    gap, own = rows.gap(np.random.default_rng(0).normal(size=5)), np.zeros((len(rows.left), 1))
    slope = law.terms(gap, np.zeros(0), own, rows.counts)[1]
    assert np.allclose(slope[:, 0], 0)


def test_turning_the_votes_of_one_worker_turns_the_reliability():
    pairs = votes(8, 10, 1500, random_state=1).pairs
    method = CrowdBT(prior="wide", alpha=1.0, beta=1.0, tol=1e-10)  # a symmetric prior
    plain, mirrored = method._for_refit().fit(pairs), method._for_refit().fit(turned(pairs, [3]))
    expected = plain.reliability_.copy()
    expected[3] = 1 - expected[3]
    assert np.allclose(mirrored.scores_, plain.scores_, atol=1e-5)
    assert np.allclose(mirrored.reliability_, expected, atol=1e-5)


def test_adversaries_are_found():
    made = votes(20, 30, 3000, VoteWorkers(adversaries=0.3), random_state=2)
    fit = CrowdBT(prior="wide").fit(made.pairs)
    assert (fit.reliability_[made.is_adversary] < 0.4).all()
    assert (fit.reliability_[~made.is_adversary] > 0.6).all()
    assert (fit.worker_accuracy_[made.is_adversary] < 0.5).all()
    plain = BradleyTerry().fit(made.pairs)
    gain = fit.score(made.pairs, made.truth) - plain.score(made.pairs, made.truth)
    assert gain > 0.05


def test_most_votes_follow_the_scores():
    """The scores are those of the majority even if a fit starts near the reversed ones."""
    made = votes(10, 20, 2000, VoteWorkers(adversaries=0.45), random_state=3)
    fit = CrowdBT(prior="wide").fit(made.pairs)
    weight = made.pairs.labels_per_worker
    assert weight @ fit.reliability_ >= 0.5 * weight.sum()


def test_flip_rates_are_recovered():
    made = votes(15, 12, 12000, VoteWorkers(flips=0.2), spread=2.0, random_state=4)
    fit = CrowdBT(prior="wide", tol=1e-9).fit(made.pairs)
    assert abs(fit.reliability_.mean() - 0.8) < 0.03
    assert np.abs(fit.scores_ - made.scores).max() < 0.5


def test_gradient():
    assert_gradient(CrowdBTLaw(0.5, 1.0, 2.0), random_votes(), 0, 1)


@pytest.mark.parametrize("compiled", [False, True])
def test_kernels_compute_the_objective(monkeypatch, compiled):
    from wisecrowd import kernels

    monkeypatch.setattr(kernels, "COMPILE_FROM", 1 if compiled else 10**9)
    pairs = votes(8, 10, 800, VoteWorkers(tie_level=0.0), random_state=5).pairs
    rows, law, rng = single_votes(pairs), CrowdBTLaw(0.5, 1.0, 1.0), np.random.default_rng(0)
    at = 3 * rng.normal(size=8), np.zeros(0), rng.normal(size=(10, 1))
    expected = objective(law, rows, *at)
    for one, other in zip(expected, compiled_objective(law, rows)(*at), strict=True):
        assert np.allclose(one, other, rtol=1e-10, atol=1e-10)


def test_joint_optimum_is_that_of_em():
    """EM: q is the probability that a worker was right; monotone, and it ends at the same point."""
    pairs = votes(6, 8, 600, VoteWorkers(adversaries=0.2), random_state=6).pairs
    rows, law = single_votes(pairs), CrowdBTLaw(0.5, 1.0, 1.0)
    fit = CrowdBT(prior="wide", alpha=1.0, beta=1.0, tol=1e-10).fit(pairs)
    s, eta, values = fit.scores_ + 0.1, np.full(8, 0.8), []
    sign = np.where(pairs.outcome == LEFT, 1.0, -1.0)
    weight = np.bincount(pairs.worker, minlength=8)
    for _ in range(400):
        values.append(objective(law, rows, s, np.zeros(0), np.log(eta / (1 - eta))[:, None])[0])
        d = sign * (s[pairs.left] - s[pairs.right])
        p = 1 / (1 + np.exp(-d))
        e = eta[pairs.worker]
        q = e * p / (e * p + (1 - e) * (1 - p))
        eta = (np.bincount(pairs.worker, q, 8) + 1) / (weight + 2)
        for _ in range(5):  # Newton steps on the expected log-likelihood of the scores
            gap = s[pairs.left] - s[pairs.right]
            p = 1 / (1 + np.exp(-gap))
            right = np.where(pairs.outcome == LEFT, q, 1 - q)
            prior = 1 / (1 + np.exp(-s))
            slope = rows.item_sums(right - p) + 0.5 * (1 - 2 * prior)
            w = p * (1 - p)
            hessian = np.zeros((6, 6))
            np.add.at(hessian, (pairs.left, pairs.left), w)
            np.add.at(hessian, (pairs.right, pairs.right), w)
            np.add.at(hessian, (pairs.left, pairs.right), -w)
            np.add.at(hessian, (pairs.right, pairs.left), -w)
            hessian += np.diag(prior * (1 - prior))
            s = s + np.linalg.solve(hessian, slope)
    assert (np.diff(values) >= -1e-8).all()
    assert abs(values[-1] - fit.history_[-1]) < 1e-4
    assert np.allclose(s - s.mean(), fit.scores_, atol=1e-2)


def test_ties_are_half_a_vote_for_each_side():
    left, right = ["x", "x", "y"] * 4, ["y", "z", "z"] * 4
    worker = ["ann"] * 6 + ["bob"] * 6
    outcome = ["left", "tie", "right", "left", "left", "tie"] * 2
    fit = CrowdBT(prior="wide", tol=1e-10).fit((worker, left, right, outcome))
    split = [(w, a, b, o, 1.0) for w, a, b, o in zip(worker, left, right, outcome, strict=True)
             if o != "tie"]  # fmt: skip
    for w, a, b, o in zip(worker, left, right, outcome, strict=True):
        if o == "tie":
            split += [(w, a, b, "left", 0.5), (w, a, b, "right", 0.5)]
    from wisecrowd.kinds.pairs.container import CrowdPairs

    columns = list(zip(*split, strict=True))
    pairs = CrowdPairs.from_arrays(None, *columns[:4], weight=columns[4])
    assert np.allclose(fit.scores_, CrowdBT(prior="wide", tol=1e-10).fit(pairs).scores_, atol=1e-6)


def test_covariance_profiles_the_reliabilities():
    """Simulated repetitions spread as much as the covariance says."""
    workers = VoteWorkers(flips=0.15)
    scores = np.linspace(-1, 1, 6)
    fits = [
        CrowdBT(prior="wide").fit(
            votes(6, 20, 2000, workers, scores=scores, random_state=seed).pairs
        )
        for seed in range(60)
    ]
    spread = np.std([fit.scores_ for fit in fits], axis=0).mean()
    claimed = np.mean([np.sqrt(np.diag(fit.covariance_)).mean() for fit in fits])
    assert 0.85 < claimed / spread < 1.3


@pytest.mark.data
def test_reading_difficulty(data_directory):
    import csv

    from wisecrowd.kinds.pairs.container import CrowdPairs

    with (data_directory / "reading_difficulty" / "answers.csv").open() as file:
        rows = [row for row in csv.DictReader(file) if row["left"] != row["right"]]
    with (data_directory / "reading_difficulty" / "truth.csv").open() as file:
        truth = {row["item"]: float(row["score"]) for row in csv.DictReader(file)}
    words = {"0": "left", "1": "right"}
    pairs = CrowdPairs.from_arrays(
        *([row[name] for row in rows] for name in ("task", "worker", "left", "right")),
        [words[row["label"]] for row in rows],
    )
    assert CrowdBT(prior="wide").fit(pairs).score(pairs, truth) >= 0.370


def test_two_votes_say_little_and_their_order():
    fit = CrowdBT(prior="wide").fit((["ann", "bob"], ["a", "b"], ["b", "c"], ["left", "left"]))
    assert fit.rank_.tolist() == [1, 2, 3]
    assert np.abs(fit.scores_).max() < 2
    assert (fit.high_ - fit.low_ > 4).all()
    assert (fit.high_ - fit.low_ < 40).all()
    assert fit.p_best_.max() < 0.9


def test_scores_of_honest_workers_are_not_much_too_wide():
    scores, slopes, covered = np.array([1.5, 0.7, 0.0, -0.6, -1.6]), [], []
    for seed in range(3):
        made = votes(5, 15, 2000, VoteWorkers(), scores=scores, random_state=seed)
        fit = CrowdBT(prior="wide").fit(made.pairs)
        slopes.append(fit.scores_ @ scores / (scores @ scores))
        covered.append((fit.low_ <= scores) & (scores <= fit.high_))
    assert 0.95 < np.mean(slopes) < 1.3
    assert np.mean(covered) > 0.5
