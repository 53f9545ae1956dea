from __future__ import annotations

import numpy as np
import pytest
from scipy import integrate, stats

from wisecrowd import simulate
from wisecrowd.core.exceptions import ParameterError
from wisecrowd.kinds.classes.container import CrowdLabels
from wisecrowd.kinds.classes.methods.bwa import BWA


def small_crowd(n_tasks=30, n_workers=6, seed=0, n_classes=3):
    workers = n_workers * simulate.DirichletWorkers(5, 1)
    prior = np.arange(n_classes, 0, -1) / np.arange(n_classes + 1).sum()
    return simulate.crowd(n_tasks, workers, simulate.PerTask(4), class_prior=prior,
                          random_state=seed)  # fmt: skip


def plain_bwa(labels, n_iter, a=15.0, strength=1.0):
    """One regression per class on dense arrays, as the paper's update rules read."""
    N, J, K = labels.n_tasks, labels.n_workers, labels.n_classes
    seen = np.zeros((N, J))
    seen[labels.task, labels.worker] = 1
    found = np.empty((N, K))
    for k in range(K):
        y = np.zeros((N, J))
        y[labels.task, labels.worker] = labels.label == k
        x = y.sum(axis=1) / seen.sum(axis=1)
        spread = (seen.sum(axis=1) * x * (1 - x)).sum() / seen.sum()
        b = a * spread * 4 * (1 - 1 / K)
        for _ in range(n_iter):
            mu = x.mean()
            v = (a + seen.sum(axis=0)) / (b + (seen * (x[:, None] - y) ** 2).sum(axis=0))
            x = (strength * mu + y @ v) / (strength + seen @ v)
        found[:, k] = x
    return found / found.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("n_iter", [1, 2, 9])
def test_updates_repeat_the_plain_formulas(n_iter):
    labels = small_crowd().labels
    model = BWA(max_iter=n_iter, tol=0.0).fit(labels)
    np.testing.assert_allclose(model.probas_, plain_bwa(labels, n_iter), atol=1e-12)
    np.testing.assert_allclose(model.predict_proba(labels), model.probas_, atol=1e-12)
    other = BWA(max_iter=n_iter, tol=0.0, strength=3.0, task_strength=0.2).fit(labels)
    np.testing.assert_allclose(other.probas_, plain_bwa(labels, n_iter, 3.0, 0.2), atol=1e-12)


def test_history_is_the_log_posterior_with_precisions_integrated_out():
    """Up to one constant: its gain between two passes is that of a numerical integral."""
    labels = small_crowd(8, 4, n_classes=2).labels
    values = []
    for n_iter in (1, 4):
        model = BWA(max_iter=n_iter, tol=0.0).fit(labels)
        x, total = model.probas_, 0.0  # two classes: the truths already sum to one
        for k in range(2):
            total += stats.norm(model.class_mean_[k], 1.0).logpdf(x[:, k]).sum()
            a, b = 15.0, 15.0 / model.prior_precision_[k]
            for j in range(labels.n_workers):
                here = labels.worker == j
                gap = (labels.label[here] == k) - x[labels.task[here], k]
                prior = stats.gamma(a / 2, scale=2 / b)

                def joint(v, gap=gap, prior=prior):
                    return np.exp(stats.norm(0, v**-0.5).logpdf(gap).sum()) * prior.pdf(v)

                total += np.log(integrate.quad(joint, 1e-9, 400, limit=300)[0])
        values.append((total, model.history_[-1]))
    (first, mine), (second, ours) = values
    assert second > first
    assert ours - mine == pytest.approx(second - first, abs=1e-6)


def test_objective_never_falls_in_many_random_runs():
    rng = np.random.default_rng(0)
    for seed in range(40):
        K, J, N = rng.integers(2, 5), rng.integers(1, 7), rng.integers(1, 30)
        task, worker = np.nonzero(rng.random((N, J)) < 0.6)
        labels = CrowdLabels.from_arrays(
            np.append(task, 0), np.append(worker, 0), rng.integers(0, K, len(task) + 1),
            classes=np.arange(K), duplicates="keep",
            weight=rng.uniform(0.1, 3, len(task) + 1) if seed % 2 else None,
        )  # fmt: skip
        given = rng.dirichlet(np.ones(K), labels.n_tasks)
        for options in ({}, {"task_prior": given}, {"init": given}, {"gold": {0: 0}}):
            for class_prior in ("auto", "estimate"):
                model = BWA(max_iter=80, tol=0.0, class_prior=class_prior).fit(labels, **options)
                fall = -np.diff(model.history_).min(initial=0.0)
                assert fall <= 1e-9 * max(1.0, abs(model.history_[-1]))


def test_equal_workers_are_a_vote():
    """Four equal rows of labels: all workers weigh the same, so the shares are the vote's."""
    rng = np.random.default_rng(0)
    votes = rng.integers(0, 3, (40, 1)).repeat(4, axis=1)
    model = BWA().fit(CrowdLabels.from_matrix(votes))
    np.testing.assert_array_equal(model.labels_, votes[:, 0])
    np.testing.assert_allclose(model.precision_ - model.precision_[:1], 0, atol=1e-6)


def test_weighs_workers_by_what_they_know():
    accuracy = np.array([0.95, 0.9, 0.85, 0.6, 0.55, 0.5, 0.5])
    theta = np.stack([np.where(np.eye(3, dtype=bool), p, (1 - p) / 2) for p in accuracy])
    made = simulate.crowd(1500, 7 * simulate.FixedConfusion(theta), simulate.Dense(),
                          class_prior=[0.5, 0.3, 0.2])  # fmt: skip
    model = BWA().fit(made.labels)
    assert (np.diff(model.precision_[:5], axis=0) < 0).all()
    votes = np.zeros((1500, 3))
    np.add.at(votes, (made.labels.task, made.labels.label), 1)
    vote = np.mean(votes.argmax(axis=1) == made.truth_codes)
    assert np.mean(model.labels_ == made.truth) > vote
    np.testing.assert_allclose(model.worker_accuracy_, accuracy, atol=0.05)
    np.testing.assert_allclose(model.class_prior_, [0.5, 0.3, 0.2], atol=0.06)


def test_a_task_prior_is_the_mean_of_its_task():
    labels = small_crowd().labels
    prior = np.random.default_rng(1).dirichlet(np.ones(3), labels.n_tasks)
    strong = BWA(task_strength=1e9).fit(labels, task_prior=prior)
    np.testing.assert_allclose(strong.probas_, prior, atol=1e-6)
    weak = BWA(task_strength=1e-9).fit(labels, task_prior=prior)
    none = BWA(task_strength=1e-9).fit(labels)
    given = np.zeros((labels.n_tasks, 3), bool)
    given[labels.task, labels.label] = True
    np.testing.assert_allclose(weak.probas_[~given], 0, atol=1e-6)
    assert np.mean(weak.labels_ == none.labels_) >= 0.9


def test_gold_and_impossible_classes_are_exact_and_teach():
    truth = np.arange(60) % 2
    rng = np.random.default_rng(0)
    wrong = np.where(rng.random((60, 2)) < 0.45, 1 - truth[:, None], truth[:, None])
    labels = CrowdLabels.from_matrix(np.column_stack([truth, wrong]))
    gold = {i: int(truth[i]) for i in range(40)}
    model = BWA().fit(labels, gold=gold)
    np.testing.assert_array_equal(model.probas_[:40], np.eye(2)[truth[:40]])
    plain = BWA().fit(labels)
    assert (
        model.precision_[0, 0] / model.precision_[1, 0]
        > plain.precision_[0, 0] / (plain.precision_[1, 0])
    )
    prior = np.ones((60, 2))
    prior[0] = [0, 1]
    assert BWA().fit(labels, task_prior=prior).probas_[0].tolist() == [0, 1]


def test_unanimous_crowds_have_finite_precisions():
    labels = CrowdLabels.from_matrix(np.zeros((5, 3), int), classes=[0, 1])
    model = BWA().fit(labels)
    assert np.isfinite(model.precision_).all()
    np.testing.assert_allclose(model.probas_, np.tile([1, 0], (5, 1)), atol=1e-9)


@pytest.mark.filterwarnings("ignore:.*were not in the fit")
def test_unknown_workers_weigh_as_one_without_labels():
    made = small_crowd().labels
    declared = CrowdLabels.from_arrays(
        made.task, made.worker, made.label, workers=np.arange(7), classes=np.arange(3)
    )
    model = BWA().fit(declared)
    np.testing.assert_allclose(model.precision_[6], model.prior_precision_)
    stranger = model.predict_proba((["a"], [99], [1]))
    silent = model.predict_proba((["a"], [6], [1]))
    np.testing.assert_allclose(stranger, silent, atol=1e-12)


def test_more_starts_never_lower_the_objective():
    labels = small_crowd(60).labels
    values = [BWA(n_init=n).fit(labels).history_[-1] for n in (1, 4, 8)]
    assert values[0] <= values[1] <= values[2]


@pytest.mark.parametrize("bad", [
    {"strength": 0.0}, {"strength": "much"}, {"task_strength": 0.0}, {"task_strength": np.inf},
])  # fmt: skip
def test_bad_parameters(bad):
    with pytest.raises(ParameterError):
        BWA(**bad).fit(small_crowd().labels)


@pytest.mark.parametrize(("name", "published"), [
    ("bluebird", 0.759259), ("dog", 0.831475), ("rte", 0.9275), ("trec", 0.604396),
    ("cf", 0.893333), ("music_genre", 0.785714), ("sentiment_polarity", 0.916983),
    ("sp_amt", 0.946), ("product", 0.919423), ("face", 0.618151),
])  # fmt: skip
def test_published_accuracies(real_crowd, name, published):
    labels, truth = real_crowd(name)
    reached = BWA().fit(labels).score(labels, truth)
    assert reached == pytest.approx(published, abs=0.001)
