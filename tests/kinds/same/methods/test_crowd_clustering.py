"""CrowdClustering: enumeration of all clusters, special cases, recovery of rates."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy.special import betaln

from wisecrowd.aggregation import CrowdClustering, SignedSpectral
from wisecrowd.kinds.same import kernels
from wisecrowd.kinds.same.container import CrowdSame
from wisecrowd.kinds.same.methods.mean_field import ClusterModel, SameVotes, starting_posterior
from wisecrowd.simulate import same_votes


def model_of(data, strength=20.0):
    return ClusterModel(SameVotes.of(data), strength, kernels)


def log_evidence(data, run, strength):
    """Return log p(votes, clusters) of every assignment of two clusters, rates integrated out."""
    found = []
    for clusters in product(range(2), repeat=data.n_items):
        z = np.array(clusters)
        same = z[data.left] == z[data.right]
        total = float(np.log(run.share)[z].sum() + np.log(run.share).sum())
        for rate, mine in zip(run.rates.common, (same, ~same), strict=True):
            right = mine & (data.is_same == same)
            a = strength * rate + np.bincount(data.worker, right, data.n_workers)
            b = strength * (1 - rate) + np.bincount(data.worker, mine & ~right, data.n_workers)
            total += float((betaln(a, b) - betaln(strength * rate, strength * (1 - rate))).sum())
        found.append(total)
    return np.array(found)


@pytest.mark.parametrize("seed", range(3))
def test_enumeration_of_all_clusters_of_seven_items(seed):
    data = same_votes(7, 4, 60, 2, random_state=seed).data
    model = model_of(data)
    starts = [starting_posterior(model.votes, code, 2) for code in (
        np.arange(7) % 2, np.arange(7) // 4, (np.arange(7) * 3 % 7) // 4)]  # fmt: skip
    run = max((model.run(start, 200, 1e-10) for start in starts), key=lambda run: run.objective)
    logs = log_evidence(data, run, 20.0)
    evidence = float(np.logaddexp.reduce(logs))
    # Both numberings of the clusters are in the evidence; the mean field is at one of them.
    assert evidence - 1.0 - np.log(2) <= run.objective <= evidence + 1e-9
    best = np.array(list(product(range(2), repeat=7)))[int(np.argmax(logs))]
    found = run.q.argmax(axis=1)
    assert np.array_equal(found, best) or np.array_equal(1 - found, best)
    posterior = np.exp(logs - evidence)
    together = run.q @ run.q.T
    states = np.array(list(product(range(2), repeat=7)))
    exact = np.einsum("s,sa,sb->ab", posterior, states, states) + np.einsum(
        "s,sa,sb->ab", posterior, 1 - states, 1 - states
    )
    away = ~np.eye(7, dtype=bool)
    assert np.abs(together - exact)[away].max() < 0.1


def test_objective_rises_in_every_block():
    data = same_votes(9, 5, 80, 3, random_state=3).data
    model = model_of(data)
    rng = np.random.default_rng(0)
    q = rng.dirichlet(np.ones(3), 9)
    rates, share = model.rate_step(q, None), model.share_step(q)
    last = model.objective(q, share, rates)
    for _ in range(5):
        share = model.share_step(q)
        rates = model.rate_step(q, rates.common)
        between = model.objective(q, share, rates)
        model.item_step(q, share, rates)
        now = model.objective(q, share, rates)
        assert last - 1e-9 <= between <= now + 1e-9
        last = now


def test_noiseless_votes_of_connected_clusters_are_exact():
    left, right = np.triu_indices(12, 1)
    truth = np.array([0] * 5 + [1] * 4 + [2] * 3)
    rng = np.random.default_rng(0)
    use = rng.random(len(left)) < 0.7
    votes = (rng.integers(0, 3, use.sum()), left[use], right[use],
             (truth[left] == truth[right])[use].astype(int))  # fmt: skip
    fitted = CrowdClustering(n_clusters=3).fit(votes)
    assert np.array_equal(fitted.cluster_, truth)
    assert fitted.score(votes, truth) == 1.0


def test_votes_without_information_leave_the_shares():
    data = same_votes(8, 3, 60, 2, random_state=0).data
    model = model_of(data)
    n = data.n_workers
    even = model.usual_rates()._replace(same=np.full((n, 2), 5.0), different=np.full((n, 2), 5.0))
    q = starting_posterior(model.votes, np.arange(8) % 2, 2)
    model.item_step(q, np.array([0.5, 0.5]), even)
    assert np.allclose(q, 0.5)
    random = same_votes(30, 5, 300, 3, same_rate=0.5, different_rate=0.5, random_state=1).data
    with pytest.warns(UserWarning, match="as well without clusters"):
        fitted = CrowdClustering(n_clusters=3).fit(random)
    assert fitted.probability_.mean() < 0.7


def test_a_worker_who_always_says_different_has_no_influence():
    made = same_votes(15, 6, 500, 3, random_state=2)
    table = made.data.to_dict()
    rng = np.random.default_rng(5)
    left = rng.integers(0, 15, 1500)
    right = (left + rng.integers(1, 15, 1500)) % 15
    worker = np.append(table["worker"], np.full(1500, 6))
    more = CrowdSame.from_arrays(
        None, worker, np.append(table["left"], left), np.append(table["right"], right),
        np.append(table["outcome"], np.full(1500, "different")),
    )  # fmt: skip
    plain, fitted = (CrowdClustering(n_clusters=3).fit(data) for data in (made.data, more))
    assert fitted.same_rate_[6] < 0.1
    assert fitted.different_rate_[6] > 0.95
    assert np.array_equal(plain.cluster_, fitted.cluster_)
    assert np.abs(plain.model_probas_ - fitted.model_probas_).max() < 0.05


def test_too_many_clusters_are_empty():
    made = same_votes(24, 5, 900, 2, same_rate=0.9, different_rate=0.9, random_state=0)
    fitted = CrowdClustering(n_clusters=6).fit(made.data)
    assert len(np.unique(fitted.cluster_)) == 2
    assert fitted.score(made.data, made.truth) == 1.0
    assert CrowdClustering().fit(made.data).item_probas_.shape[1] == 2


def test_rates_of_the_simulator_are_recovered():
    made = same_votes(40, 12, 6000, 4, random_state=1)
    fitted = CrowdClustering(n_clusters=4, n_init=2).fit(made.data)
    assert fitted.score(made.data, made.truth) == 1.0
    assert np.abs(fitted.same_rate_ - made.same_rate).mean() < 0.05
    assert np.abs(fitted.different_rate_ - made.different_rate).mean() < 0.03


def test_claims_of_hard_crowds_are_not_too_high():
    claimed, right = [], []
    for seed in range(2):
        made = same_votes(60, 20, 350, 3, random_state=seed)
        fitted = CrowdClustering(n_clusters=3, n_init=4).fit(made.data)
        claimed.append(fitted.probability_.mean())
        right.append(fitted.score(made.data, made.truth))
    assert np.mean(claimed) - np.mean(right) < 0.1


def test_spectral_baseline_has_common_rates():
    made = same_votes(30, 8, 900, 3, random_state=0)
    fitted = SignedSpectral().fit(made.data)
    assert fitted.score(made.data, made.truth) > 0.9
    assert np.ptp(fitted.same_rate_) < 1e-3


def test_eight_clusters_of_a_hundred_items_are_not_merged():
    made = same_votes(100, 20, 2500, 8, random_state=1)
    fit = CrowdClustering(n_init=2).fit(made.data)
    assert fit.item_probas_.shape[1] == 8
    assert np.argmax(fit.curve_[:, 2]) == 6  # numbers of clusters begin with 2
