"""CoupledTensor: recovery, what is identified, the budget of triples, real crowds."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from wisecrowd.core.exceptions import ParameterError, WisecrowdWarning
from wisecrowd.kinds.classes.container import CrowdLabels
from wisecrowd.kinds.classes.families.moments.pair_moments import pair_moments
from wisecrowd.kinds.classes.families.moments.third_moments import triple_moments
from wisecrowd.kinds.classes.methods.coupled_tensor import (
    CoupledTensor,
    JointTables,
    coupled_cpd,
    joint_tables,
)
from wisecrowd.kinds.classes.methods.dawid_skene import DawidSkene
from wisecrowd.simulate import Bernoulli, FixedConfusion, OneCoinWorkers, crowd
from wisecrowd.testing.crowds import asymmetric_confusions


def made_crowd(n_tasks, n_workers, n_classes=3, share=0.8, seed=0):
    return crowd(
        n_tasks,
        n_workers * FixedConfusion(asymmetric_confusions(n_workers, n_classes)),
        Bernoulli(share),
        class_prior={2: (0.6, 0.4), 3: (0.5, 0.3, 0.2)}[n_classes],
        random_state=seed,
    )


def test_error_of_the_confusion_matrices_falls_with_the_number_of_tasks():
    errors = []
    for n_tasks in (500, 8000):
        error = [
            np.abs(CoupledTensor().fit(made.labels).confusion_ - made.confusion).mean()
            for made in (made_crowd(n_tasks, 6, seed=seed) for seed in range(3))
        ]
        errors.append(np.mean(error))
    assert 2.5 < errors[0] / errors[1] < 6.5  # 4 for 16 times as many tasks


def test_objective_never_rises_and_stops_when_nothing_moves():
    made = made_crowd(300, 6)
    model = CoupledTensor(max_iter=300, tol=1e-7).fit(made.labels)
    assert model.converged_
    assert np.diff(model.history_).max() <= 1e-12
    assert model.n_iter_ == len(model.history_) < 300


def test_a_worker_in_no_triple_is_fitted_to_the_others():
    made = made_crowd(2000, 5, 3, share=1.0)
    labels = made.labels
    seldom = np.flatnonzero((labels.worker != 4) | (labels.task < 20))
    labels = CrowdLabels.from_arrays(*(x[seldom] for x in (labels.task, labels.worker,
                                                           labels.label)))  # fmt: skip
    everyone = CoupledTensor().fit(labels)
    assert everyone.identified_.all()
    with pytest.warns(WisecrowdWarning, match="1 of 5 workers"):
        model = CoupledTensor(min_shared=21).fit(labels)
    assert model.identified_.tolist() == [True] * 4 + [False]
    assert np.abs(model.confusion_[:4] - made.confusion[:4]).mean() < 0.05


def test_the_budget_of_triples_is_kept_and_said():
    made = made_crowd(400, 9, 2)
    with pytest.warns(WisecrowdWarning, match="Triples of workers are drawn"):
        model = CoupledTensor(max_triples=60).fit(made.labels)
    full = CoupledTensor().fit(made.labels)
    assert np.abs(model.confusion_ - full.confusion_).mean() < 0.05


def test_without_triples_it_warns_and_fits_pairs():
    task = np.repeat(np.arange(120), 2)
    pairs = np.array([(0, 1), (1, 2), (0, 2)])
    worker = pairs[np.arange(120) % 3].ravel()
    truth = np.arange(120) // 3 % 2
    label = np.repeat(truth, 2)
    label[::17] = 1 - label[::17]
    with pytest.warns(WisecrowdWarning, match="3 of 3 workers are in no triple"):
        model = CoupledTensor().fit(CrowdLabels.from_arrays(task, worker, label))
    assert np.isfinite(model.probas_).all()
    assert np.mean(model.labels_ == truth) > 0.9


def test_the_start_counts():
    made = made_crowd(200, 5)
    plain = CoupledTensor(max_iter=1).fit(made.labels)
    start = np.roll(plain.probas_, 1, axis=1)
    other = CoupledTensor(max_iter=1).fit(made.labels, init=start)
    assert np.abs(plain.probas_ - other.probas_).max() > 1e-3


def test_refuses_no_triples():
    with pytest.raises(ParameterError, match="max_triples"):
        CoupledTensor(max_triples=0).fit(CrowdLabels.from_matrix([[0, 1], [1, 1]]))


@pytest.mark.parametrize(("name", "bar"), [("bluebird", 0.1204), ("rte", 0.0813)])
def test_real_crowds(real_crowd, name, bar):
    labels, known = real_crowd(name)
    model = CoupledTensor(max_triples=10**5 if name == "bluebird" else 2000)
    if name == "rte":
        with pytest.warns(WisecrowdWarning, match="Triples"):
            model.fit(labels)
    else:
        model.fit(labels)
    assert 1 - model.score(labels, known) <= bar
    assert 1 - DawidSkene().fit(labels, init=model).score(labels, known) <= bar


def good_crowd(n_workers, n_classes, seed):
    """Return confusion matrices far from singular, nobody among them an expert, and a prior."""
    rng = np.random.default_rng(seed)
    right = rng.uniform(0.5, 0.95, (n_workers, n_classes, 1))
    wrong = rng.dirichlet(np.ones(n_classes), (n_workers, n_classes))
    return right * np.eye(n_classes) + (1 - right) * wrong, rng.dirichlet(np.full(n_classes, 5.0))


def population(confusion, prior, keep_triples=1.0, seed=0):
    """Return the exact tables of all pairs and of a share of all triples."""
    n = len(confusion)
    pairs = np.array(list(combinations(range(n), 2)))
    triples = np.array(list(combinations(range(n), 3)))
    rng = np.random.default_rng(seed)
    triples = triples[rng.random(len(triples)) <= keep_triples]
    a, b = confusion[pairs].swapaxes(0, 1)
    c, d, e = confusion[triples].swapaxes(0, 1)
    weights = tuple(rng.uniform(0.5, 1.5, size) for size in (n, len(pairs), len(triples)))
    return JointTables(
        prior @ confusion,
        pairs,
        np.einsum("k,pkl,pkm->plm", prior, a, b),
        triples,
        np.einsum("k,tkl,tkm,tkn->tlmn", prior, c, d, e),
        weights,
    )


def objective(moments, confusion, prior):
    """Return the objective, summed term by term."""
    single, pair, triple = moments.weights
    total = sum(w * ((m - prior @ t) ** 2).sum()
                for w, m, t in zip(single, moments.single, confusion, strict=True))  # fmt: skip
    for w, (a, b), table in zip(pair, moments.pair_workers, moments.pairs, strict=True):
        fitted = confusion[a].T @ np.diag(prior) @ confusion[b]
        total += w * ((table - fitted) ** 2).sum()
    for w, (a, b, c), table in zip(triple, moments.triple_workers, moments.triples, strict=True):
        fitted = np.einsum("k,kl,km,kn->lmn", prior, confusion[a], confusion[b], confusion[c])
        total += w * ((table - fitted) ** 2).sum()
    return 0.5 * total


def cold_start(n_workers, n_classes):
    diagonal = 0.6 * np.eye(n_classes) + 0.4 / n_classes
    return np.tile(diagonal, (n_workers, 1, 1)), np.full(n_classes, 1 / n_classes)


@pytest.mark.parametrize(
    ("n_workers", "n_classes", "kept"), [(4, 2, 1.0), (4, 3, 1.0), (6, 3, 0.5)]
)
def test_exact_tables_give_every_confusion_matrix(error, n_workers, n_classes, kept):
    for seed in range(2):
        confusion, prior = good_crowd(n_workers, n_classes, seed)
        moments = population(confusion, prior, kept, seed)
        start = cold_start(n_workers, n_classes)
        fit = coupled_cpd(moments, *start, max_iter=500, tol=1e-9)
        assert fit.converged
        assert error(fit.confusion, confusion) < 1e-6
        np.testing.assert_allclose(np.sort(fit.class_prior), np.sort(prior), atol=1e-6)


def test_objective_is_the_sum_of_all_misfits_and_never_rises():
    rng = np.random.default_rng(3)
    confusion, prior = good_crowd(5, 3, 3)
    exact = population(confusion, prior)
    noisy = JointTables(
        exact.single,
        exact.pair_workers,
        exact.pairs + rng.normal(0, 0.05, exact.pairs.shape),
        exact.triple_workers,
        exact.triples + rng.normal(0, 0.05, exact.triples.shape),
        exact.weights,
    )
    for rounds in (1, 2, 3, 30):
        fit = coupled_cpd(noisy, *cold_start(5, 3), max_iter=rounds, tol=0.0)
        expected = objective(noisy, fit.confusion, fit.class_prior)
        assert fit.history[-1] == pytest.approx(expected, rel=1e-9)
    assert len(fit.history) == 30
    assert np.diff(fit.history).max() <= 1e-12
    assert fit.history[-1] < fit.history[0]
    np.testing.assert_allclose(fit.confusion.sum(axis=2), 1, atol=1e-12)
    assert fit.confusion.min() >= 0
    assert fit.class_prior.sum() == pytest.approx(1, abs=1e-12)


def test_order_of_the_turns_does_not_change_where_it_ends():
    confusion, prior = good_crowd(5, 2, 1)
    moments = population(confusion, prior)
    one = coupled_cpd(moments, *cold_start(5, 2), max_iter=500, tol=1e-9)
    two = coupled_cpd(
        moments, *cold_start(5, 2), max_iter=500, tol=1e-9, order=np.array([4, 1, 3, 0, 2])
    )
    np.testing.assert_allclose(one.confusion, two.confusion, atol=1e-6)


def test_workers_without_tables_stay_as_they_are():
    confusion, prior = good_crowd(5, 2, 4)
    moments = population(confusion[:4], prior)
    alone = JointTables(
        np.vstack([moments.single, [[0.9, 0.1]]]),
        moments.pair_workers,
        moments.pairs,
        moments.triple_workers,
        moments.triples,
        (np.append(moments.weights[0], 1.0), *moments.weights[1:]),
    )
    start, uniform = cold_start(5, 2)
    fit = coupled_cpd(alone, start, uniform, max_iter=50, tol=0.0)
    expected = coupled_cpd(moments, start[:4], uniform, max_iter=50, tol=0.0)
    np.testing.assert_array_equal(fit.confusion[4], start[4])
    np.testing.assert_array_equal(fit.confusion[:4], expected.confusion)


def test_without_any_table_the_start_is_the_result():
    nothing = JointTables(
        np.full((2, 3), 1 / 3),
        np.empty((0, 2), dtype=int),
        np.empty((0, 3, 3)),
        np.empty((0, 3), dtype=int),
        np.empty((0, 3, 3, 3)),
        (np.ones(2), np.empty(0), np.empty(0)),
    )
    start, prior = cold_start(2, 3)
    fit = coupled_cpd(nothing, start, prior, max_iter=5, tol=1e-6)
    np.testing.assert_allclose(fit.confusion, start)
    np.testing.assert_allclose(fit.class_prior, prior, atol=1e-12)


def test_tables_of_a_crowd_count_by_what_they_rest_on():
    made = crowd(50, 5 * OneCoinWorkers(4, 2), Bernoulli(0.7), class_prior=[0.5, 0.5])
    labels = made.labels
    total = labels.labels_per_worker.astype(float)
    pairs, triples = pair_moments(labels), triple_moments(labels)
    tables = joint_tables(pairs, triples, total)
    np.testing.assert_allclose(tables.weights[0], total / total.max())
    np.testing.assert_allclose(tables.weights[1], pairs.n_shared / total.max())
    np.testing.assert_allclose(tables.weights[2], triples.n_shared / total.max())
    np.testing.assert_allclose(tables.pairs.sum(axis=(1, 2)), 1)
