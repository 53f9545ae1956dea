"""CrowdBT with integrated reliabilities: enumeration, finite differences, scale, clusters."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import beta

from wisecrowd.aggregation import BradleyTerry, CrowdBT
from wisecrowd.kinds.pairs.methods import vote_laws
from wisecrowd.kinds.pairs.methods.comparisons import centred, single_votes
from wisecrowd.kinds.pairs.methods.integrated_reliability import (
    EDGES,
    ETA,
    Fitted,
    ReliabilityMixture,
    cells,
    shape_prior,
)
from wisecrowd.simulate import VoteWorkers, votes

SHAPE = np.array([1.0, 0.3])


def tiny():
    return votes(4, 5, 40, VoteWorkers(tie_level=0.0), random_state=0).pairs


def likelihood(pairs):
    return ReliabilityMixture.of(single_votes(pairs), 0.5)


def by_enumeration(pairs, scores, shape):
    """Return the penalised log-likelihood, vote by vote and cell by cell."""
    a, b = np.exp(shape)
    mass = beta(a, b).cdf(EDGES[1:]) - beta(a, b).cdf(EDGES[:-1])
    total = 8 * np.log(a / (a + b)) - 0.5 * (np.log(a + b) - np.log(10)) ** 2
    for score in scores:
        total -= 0.5 * (np.logaddexp(0, score) + np.logaddexp(0, -score))
    for j in range(pairs.n_workers):
        worker = 0.0
        for share, eta in zip(mass, ETA, strict=True):
            product = share
            for e in np.flatnonzero(pairs.worker == j):
                p = 1 / (1 + np.exp(scores[pairs.right[e]] - scores[pairs.left[e]]))
                left, right = eta * p + (1 - eta) * (1 - p), eta * (1 - p) + (1 - eta) * p
                product *= [left, right, np.sqrt(left * right)][pairs.outcome[e]]
            worker += product
        total += np.log(worker)
    return total


def test_likelihood_by_enumeration():
    pairs, scores = tiny(), np.array([0.4, -1.2, 0.9, 0.1])
    found = likelihood(pairs).evaluate(scores, SHAPE)[0]
    assert found == pytest.approx(by_enumeration(pairs, scores, SHAPE), abs=1e-9)


def test_masses_are_those_of_the_beta_distribution():
    for shape in ([0.0, 0.0], [3.0, -4.0], [-2.0, 3.0], [6.0, 4.0]):
        a, b = np.exp(shape)
        expected = beta(a, b).cdf(EDGES[1:]) - beta(a, b).cdf(EDGES[:-1])
        assert np.allclose(cells(np.array(shape)), expected, atol=1e-12)


def test_gradient_and_hessian_by_finite_differences():
    law, step = likelihood(tiny()), 1e-5
    x = np.append([0.4, -1.2, 0.9, 0.1], SHAPE)
    moves = step * np.eye(6)

    def slopes(at):
        return np.concatenate(law.evaluate(at[:4], at[4:])[1:3])

    def value(at):
        return law.evaluate(at[:4], at[4:])[0]

    numeric = [(value(x + move) - value(x - move)) / (2 * step) for move in moves]
    assert np.allclose(slopes(x), numeric, atol=1e-7)
    curvature = [(slopes(x - move) - slopes(x + move)) / (2 * step) for move in moves]
    at = Fitted(x[:4], x[4:], law.evaluate(x[:4], x[4:])[3], (), 0, True)
    assert np.allclose(law.hessian(at), curvature, atol=2e-5)


def test_prior_of_the_shape_has_its_gradient():
    step, moves = 1e-6, 1e-6 * np.eye(2)
    numeric = [(shape_prior(SHAPE + m)[0] - shape_prior(SHAPE - m)[0]) / (2 * step) for m in moves]
    assert np.allclose(shape_prior(SHAPE)[1], numeric, atol=1e-8)


def test_covariance_is_the_inverse_of_the_numeric_hessian():
    pairs = votes(4, 20, 400, VoteWorkers(adversaries=0.2), random_state=1).pairs
    fit, law = CrowdBT(tol=1e-10).fit(pairs), likelihood(pairs)
    found = law.maximise(BradleyTerry().fit(pairs).scores_, 500, 1e-10)
    x, step = np.concatenate([found.scores, found.shape]), 1e-4

    def slopes(at):
        return np.concatenate(law.evaluate(at[:4], at[4:])[1:3])

    hessian = np.array([
        (slopes(x - step * e) - slopes(x + step * e)) / (2 * step) for e in np.eye(6)
    ])  # fmt: skip
    inverse = np.linalg.inv(hessian)[:4, :4]
    centre = np.eye(4) - 0.25
    assert np.allclose(fit.covariance_, centre @ inverse @ centre, rtol=1e-3, atol=1e-5)
    assert np.allclose(fit.scores_, centred(found.scores, np.ones(4, bool)), atol=1e-5)


def test_scores_of_honest_workers_with_few_votes_keep_their_scale():
    slopes, wide = [], []
    for seed in range(3):
        made = votes(8, 100, 1000, random_state=seed)
        size = made.scores @ made.scores
        for prior, kept in ((0.5, slopes), ("wide", wide)):
            kept.append(CrowdBT(prior=prior).fit(made.pairs).scores_ @ made.scores / size)
    assert 0.8 < np.mean(slopes) < 1.25
    assert np.mean(wide) > 1.3


def test_adversaries_and_random_voters_are_told_apart():
    made = votes(12, 30, 3000, VoteWorkers(adversaries=0.2), random_state=2)
    fit = CrowdBT().fit(made.pairs)
    assert fit.reliability_[made.is_adversary].max() < 0.4
    assert fit.reliability_[~made.is_adversary].min() > 0.6
    assert fit.reliability_prior_.shape == (2,)
    slope = fit.scores_ @ made.scores / (made.scores @ made.scores)
    assert 0.8 < slope < 1.3


def test_a_worker_without_votes_has_the_reliability_of_the_prior():
    made = votes(6, 10, 300, random_state=0).pairs
    more = replace(made, workers=np.append(made.workers, ["zed"]).astype(object))
    fit = CrowdBT().fit(more)
    assert fit.reliability_[-1] == pytest.approx(fit.mean_reliability_[0])
    assert np.allclose(fit.scores_, CrowdBT().fit(made).scores_, atol=1e-5)


def test_named_clusters_never_narrow_the_intervals():
    made = votes(6, 30, 600, VoteWorkers(taste=1.5), random_state=0).pairs
    plain = CrowdBT().fit(made)
    for cluster in ("workers", "tasks"):
        wider = CrowdBT(cluster=cluster).fit(made)
        assert (np.diag(wider.covariance_) >= np.diag(plain.covariance_) * (1 - 1e-6)).all()


def test_many_items_have_draws_instead_of_a_covariance(monkeypatch):
    from wisecrowd.kinds.pairs.methods import integrated_reliability

    made = votes(8, 20, 800, VoteWorkers(flips=0.1), random_state=0).pairs
    dense = CrowdBT().fit(made)
    for module in (integrated_reliability, vote_laws):
        monkeypatch.setattr(module, "MOST_DENSE", 5)
    for cluster in ("auto", "workers"):
        many = CrowdBT(cluster=cluster).fit(made)
        assert not hasattr(many, "covariance_")
        ratio = (many.high_ - many.low_).mean() / (dense.high_ - dense.low_).mean()
        assert 0.6 < ratio < 1.5
