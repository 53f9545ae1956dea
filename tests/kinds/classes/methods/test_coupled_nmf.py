"""CoupledNMF on labels."""

from __future__ import annotations

import numpy as np
import pytest

from wisecrowd import simulate
from wisecrowd.aggregation import CoupledNMF, DawidSkene, MajorityVote
from wisecrowd.core.exceptions import ParameterError
from wisecrowd.kinds.classes.families.moments.moment_method import inner_start
from wisecrowd.kinds.classes.families.moments.pair_moments import PairMoments, population_moments
from wisecrowd.kinds.classes.methods.coupled_nmf import fit_pairs
from wisecrowd.simulate import Dense, FixedConfusion, crowd


def mostly_spammers(seed=0, n_tasks=2000):
    """Return a crowd of 24 of whom 17 say anything, and the matrices it has."""
    rng = np.random.default_rng(seed)
    right = np.where(np.arange(24) < 7, rng.uniform(0.75, 0.9, 24), 1 / 3)
    confusion = np.full((24, 3, 3), 0.0) + ((1 - right) / 2)[:, None, None]
    confusion[:, np.arange(3), np.arange(3)] = right[:, None]
    made = crowd(n_tasks, 24 * FixedConfusion(confusion), Dense(), n_classes=3, random_state=seed)
    seen = rng.random(made.labels.n_annotations) < 0.4
    return made.labels.select_annotations(seen), made.truth, confusion


def test_skills_are_found_where_most_workers_say_anything():
    labels, truth, confusion = mostly_spammers()
    model = CoupledNMF().fit(labels)
    vote = MajorityVote().fit(labels)
    assert model.converged_
    assert model.score(labels, truth) >= vote.score(labels, truth) + 0.1
    assert np.abs(model.confusion_ - confusion).max() < 0.12
    assert (np.diff(model.history_) >= -1e-12).all()
    assert model.history_[-1] <= 0


def test_a_given_start_counts():
    labels, _, _ = mostly_spammers(n_tasks=60)
    start = np.random.default_rng(0).dirichlet(np.ones(3), labels.n_tasks)
    elsewhere = CoupledNMF(max_iter=1).fit(labels, init=start)
    plain = CoupledNMF(max_iter=1).fit(labels)
    assert np.abs(elsewhere.confusion_ - plain.confusion_).max() > 0.05


def test_equal_weights_are_another_fit():
    labels, _, _ = mostly_spammers(n_tasks=80)
    shared = CoupledNMF().fit(labels).confusion_
    equal = CoupledNMF(weights="equal").fit(labels).confusion_
    assert np.abs(shared - equal).max() > 1e-6


def test_wrong_parameters_are_refused():
    labels, _, _ = mostly_spammers(n_tasks=20)
    with pytest.raises(ParameterError, match="weights"):
        CoupledNMF(weights="few").fit(labels)


@pytest.mark.parametrize(("name", "bar"), [("bluebird", 0.1297), ("dog", 0.1747), ("rte", 0.0875)])
def test_published_errors(real_crowd, name, bar):
    labels, truth = real_crowd(name)
    model = CoupledNMF().fit(labels)
    assert 1 - model.score(labels, truth) <= bar
    after = DawidSkene().fit(labels, init=model)
    assert 1 - after.score(labels, truth) <= {"bluebird": 0.1112, "dog": 0.169, "rte": 0.08}[name]


def test_the_default_converges_on_a_good_dense_crowd():
    """EM is slow here: 500 steps left confusion matrices half a percent away."""
    made = simulate.crowd(
        300, 6 * simulate.OneCoinWorkers(17, 3), simulate.PerTask(6), n_classes=4, random_state=1
    )
    model = CoupledNMF().fit(made.labels)
    assert model.converged_
    assert model.n_iter_ > 500


def cold_start(n_workers, n_classes):
    """Return workers who are all alike and a little better than chance."""
    one = inner_start(np.eye(n_classes), 0.4)
    return np.repeat(one[None], n_workers, axis=0), np.full(n_classes, 1 / n_classes)


@pytest.mark.parametrize("n_classes", [2, 3, 5])
@pytest.mark.parametrize("share", [1.0, 0.3])
def test_a_cold_start_finds_everybody(experts, error, n_classes, share):
    J = 3 * n_classes
    confusion, prior = experts(J, n_classes, seed=n_classes)
    seen = np.triu(np.random.default_rng(0).random((J, J)) <= share, 1)
    seen[: 2 * n_classes] = np.triu(np.ones((J, J), bool), 1)[: 2 * n_classes]  # of experts: all
    pairs = population_moments(confusion, prior, n_shared=(seen + seen.T).astype(float))
    fit = fit_pairs(pairs, *cold_start(J, n_classes), max_iter=4000)
    assert error(fit.confusion, confusion) < 1e-6
    np.testing.assert_allclose(np.sort(fit.class_prior), np.sort(prior), atol=1e-6)
    assert fit.divergence[-1] < 1e-12


def sampled(confusion, prior, n, seed):
    exact = population_moments(confusion, prior)
    J, K = confusion.shape[:2]
    counts = np.random.default_rng(seed).multinomial(n, exact.tables.reshape(-1, K * K))
    counts = counts.reshape(-1, K, K).astype(float)
    shared = np.full(len(counts), float(n))
    return PairMoments(exact.first, exact.second, counts, shared, J, K, exact.marginals)


def test_a_step_is_em_with_a_hidden_class_for_every_pair(experts):
    confusion, prior = experts(5, 3, n_experts=0)
    pairs = sampled(confusion, prior, 60, seed=4)
    rng = np.random.default_rng(0)
    start, shares = rng.dirichlet(np.ones(3), (5, 3)), np.array([0.2, 0.3, 0.5])
    counts, mass = np.zeros((5, 3, 3)), np.zeros(3)
    for p in range(pairs.n_pairs):
        a, b = pairs.first[p], pairs.second[p]
        for x in range(3):
            for y in range(3):
                weights = shares * start[a, :, x] * start[b, :, y]
                expected = pairs.counts[p, x, y] * weights / weights.sum()
                counts[a, :, x] += expected
                counts[b, :, y] += expected
                mass += expected
    fit = fit_pairs(pairs, start, shares, max_iter=1)
    np.testing.assert_allclose(fit.confusion, counts / counts.sum(axis=2, keepdims=True), 1e-10)
    np.testing.assert_allclose(fit.class_prior, mass / mass.sum(), 1e-10)


@pytest.mark.parametrize("equal", [False, True])
def test_the_divergence_never_rises_and_is_the_divergence(experts, equal):
    confusion, prior = experts(8, 3)
    pairs = sampled(confusion, prior, 40, seed=0).select(np.arange(28) % 3 > 0)
    weight = np.random.default_rng(1).uniform(1, 9, pairs.n_pairs) if equal else None
    fit = fit_pairs(pairs, *cold_start(8, 3), weight=weight, max_iter=80, tol=0.0)
    assert (np.diff(fit.divergence) <= 1e-14).all()
    share = pairs.n_shared if weight is None else weight
    total = 0.0
    for p in range(pairs.n_pairs):
        one, two = fit.confusion[pairs.first[p]], fit.confusion[pairs.second[p]]
        model = sum(fit.class_prior[k] * np.outer(one[k], two[k]) for k in range(3))
        table = pairs.tables[p]
        seen = table > 0
        total += share[p] * np.sum(table[seen] * np.log(table[seen] / model[seen]))
    assert fit.divergence[-1] == pytest.approx(total / share.sum(), rel=1e-10)


def test_renaming_classes_renames_the_fit(experts):
    confusion, prior = experts(7, 3, seed=3)
    pairs = sampled(confusion, prior, 500, seed=2)
    start = np.random.default_rng(0).dirichlet(np.ones(3), (7, 3)), np.array([0.2, 0.3, 0.5])
    order = [2, 0, 1]
    renamed = PairMoments(
        pairs.first, pairs.second, pairs.counts[:, order][:, :, order], pairs.n_shared, 7, 3,
        pairs.marginals[:, order],
    )  # fmt: skip
    plain = fit_pairs(pairs, *start, max_iter=30)
    again = fit_pairs(renamed, start[0][:, order][:, :, order], start[1][order], max_iter=30)
    np.testing.assert_allclose(again.confusion, plain.confusion[:, order][:, :, order], atol=1e-12)


def test_without_pairs_the_start_stays(experts):
    confusion, prior = experts(4, 2, n_experts=1)
    pairs = population_moments(confusion, prior, n_shared=np.zeros((4, 4)))
    fit = fit_pairs(pairs, confusion, prior)
    np.testing.assert_array_equal(fit.confusion, confusion)
    assert fit.converged


def test_an_exact_fit_has_converged():
    """The divergence fell to 1e-300, and its gain was never a small share of it."""
    made = simulate.crowd(
        1000, 200 * simulate.OneCoinWorkers(8, 2), simulate.PerTask(3), n_classes=4,
        random_state=1004,
    )  # fmt: skip
    model = CoupledNMF(max_iter=500).fit(made.labels)
    assert model.converged_
    assert -1e-12 < model.history_[-1] <= 0
