"""Gibbs sampling: marginals by enumeration, the prior without data, calibration, diagnostics."""

from __future__ import annotations

import itertools
import warnings

import numpy as np
import pytest

from wisecrowd import kernels, simulate
from wisecrowd.core.exceptions import ParameterError, WisecrowdWarning
from wisecrowd.inference.priors import DirichletRows, Discrete, OneCoinPrior, TwoCoin
from wisecrowd.kinds.classes.container import CrowdLabels
from wisecrowd.kinds.classes.kernels import gibbs as reference
from wisecrowd.kinds.classes.methods.gibbs_dawid_skene import (
    CollapsedChains,
    Collapsible,
    GibbsDawidSkene,
    draw_classes,
    earlier_labels,
)
from wisecrowd.kinds.classes.methods.mean_field import MeanField
from wisecrowd.kinds.classes.prior import TaskPrior


def random_labels(n_tasks, n_workers, n_classes, seed, weighted=False, repeated=False):
    rng = np.random.default_rng(seed)
    task, worker = np.nonzero(rng.random((n_tasks, n_workers)) < 0.75)
    if repeated:
        again = rng.integers(0, len(task), 4)
        task, worker = np.append(task, task[again]), np.append(worker, worker[again])
    label = rng.integers(0, n_classes, len(task))
    return CrowdLabels.from_arrays(
        task, worker, label, classes=range(n_classes), tasks=range(n_tasks),
        workers=range(n_workers), duplicates="keep",
        weight=rng.uniform(0.3, 2.5, len(task)) if weighted else None,
    )  # fmt: skip


def enumerated(labels, prior, h, class_alpha=None):
    """Return exact marginals (N, K) and posterior means of the confusion matrices (J, K, K)."""
    from scipy.special import gammaln

    (N, K), J = h.shape, labels.n_workers
    weight = np.ones(labels.n_annotations) if labels.weight is None else labels.weight
    labelled = labels.labels_per_task > 0
    total, marginals, confusion = 0.0, np.zeros((N, K)), np.zeros((J, K, K))
    for z in itertools.product(range(K), repeat=N):
        counts = np.zeros((J, K, K))
        np.add.at(counts, (labels.worker, np.array(z)[labels.task], labels.label), weight)
        found = prior.posterior(counts)
        log_p = found.log_evidence.sum() + np.log(h[np.arange(N), z][labelled]).sum()
        if class_alpha is not None:
            n = np.bincount(np.array(z)[labelled], minlength=K)
            log_p += gammaln(n + class_alpha).sum()
        total += np.exp(log_p)
        marginals += np.exp(log_p) * np.eye(K)[list(z)]
        confusion += np.exp(log_p) * found.mean
    return marginals / total, confusion / total


def rows(n_classes, seed=0):
    rng = np.random.default_rng(seed)
    return DirichletRows(rng.uniform(0.8, 1.5, (n_classes, n_classes)) + 2 * np.eye(n_classes))


CASES = [
    (OneCoinPrior(3, 1.5), 2, {}),
    (OneCoinPrior(3, 1.0), 3, {}),
    (TwoCoin(3, 1, 2, 1), 2, {}),
    (rows(2), 2, {}),
    (rows(3), 3, {}),
    (rows(2), 2, {"weighted": True}),
    (OneCoinPrior(3, 1), 3, {"weighted": True, "repeated": True}),
    (rows(2), 2, {"repeated": True}),
    (OneCoinPrior(3, 1), 2, {"repeated": True}),
]


@pytest.mark.parametrize("compiled", [False, True], ids=["reference", "compiled"])
@pytest.mark.parametrize(("prior", "n_classes", "options"), CASES, ids=repr)
def test_marginals_equal_enumeration(monkeypatch, prior, n_classes, options, compiled):
    monkeypatch.setattr(kernels, "COMPILE_FROM", 0 if compiled else 10**12)
    n_tasks = 6 if n_classes == 2 else 4
    labels = random_labels(n_tasks, 4, n_classes, seed=n_classes, **options)
    h = np.random.default_rng(5).dirichlet(np.full(n_classes, 6.0), n_tasks)
    model = GibbsDawidSkene(prior=prior, n_chains=100, n_sweeps=200, n_burn_in=40)
    fitted = model.fit(labels, task_prior=h)
    exact, confusion = enumerated(labels, prior, h)
    assert 0.5 * np.abs(fitted.probas_ - exact).sum(axis=1).max() < 0.02
    assert np.abs(fitted.confusion_ - confusion).max() < 0.02


@pytest.mark.parametrize("prior", [OneCoinPrior(3, 1.5), rows(2)], ids=repr)
def test_marginals_with_the_class_prior_integrated_out(prior):
    labels = random_labels(6, 4, 2, seed=1)
    fitted = GibbsDawidSkene(
        prior=prior, class_alpha=1.3, n_chains=100, n_sweeps=200, n_burn_in=40
    ).fit(labels)
    exact, _ = enumerated(labels, prior, np.ones((6, 2)), class_alpha=1.3)
    assert 0.5 * np.abs(fitted.probas_ - exact).sum(axis=1).max() < 0.02
    expected = (1.3 + exact.sum(axis=0)) / (2.6 + 6)
    np.testing.assert_allclose(fitted.class_prior_, expected, atol=0.01)


@pytest.mark.parametrize("coin", [False, True])
@pytest.mark.parametrize("options", [{}, {"weighted": True}, {"repeated": True}])
def test_both_kernels_draw_the_same(monkeypatch, coin, options):
    labels = random_labels(12, 5, 3, seed=2, **options)
    busy = CrowdLabels.from_arrays(np.zeros(40, int), np.arange(40), np.arange(40) % 3)
    prior = OneCoinPrior(3, 1) if coin else "weak"
    for data in (labels, busy):  # more labels on a task than are multiplied at once
        found = []
        for limit in (10**12, 0):
            monkeypatch.setattr(kernels, "COMPILE_FROM", limit)
            model = GibbsDawidSkene(prior=prior, n_chains=5, n_sweeps=60, n_burn_in=10)
            model.set_params(class_prior="estimate")
            found.append(quietly(model, data, gold={0: 1}))
        np.testing.assert_allclose(found[0].probas_, found[1].probas_, atol=1e-10)
        np.testing.assert_allclose(found[0].r_hat_, found[1].r_hat_, atol=1e-7)
        np.testing.assert_allclose(found[0].accuracy_draws_, found[1].accuracy_draws_, atol=1e-9)


def test_without_labels_the_prior_comes_back():
    from scipy.stats import beta, kstest

    labels = CrowdLabels.from_arrays(
        ["a", "b"], ["x", "x"], [0, 1], tasks=["a", "b", "c"], workers=["x", "y"]
    )
    fitted = GibbsDawidSkene(prior=OneCoinPrior(3, 2), class_prior=[0.8, 0.2]).fit(labels)
    np.testing.assert_allclose(fitted.confusion_[1], [[0.6, 0.4], [0.4, 0.6]], atol=1e-12)
    np.testing.assert_allclose(fitted.probas_[2], [0.8, 0.2], atol=1e-12)
    draws = fitted.accuracy_draws_[:, :, 1].ravel()
    assert kstest(draws, beta(3, 2).cdf).pvalue > 0.01
    np.testing.assert_allclose(
        fitted.accuracy_interval_[1], beta(3, 2).ppf([0.025, 0.975]), atol=0.05
    )
    rows = GibbsDawidSkene(prior=[[5, 1], [2, 2]]).fit(labels)
    np.testing.assert_allclose(rows.confusion_[1], [[5 / 6, 1 / 6], [0.5, 0.5]], atol=1e-12)


def test_simulation_based_calibration():
    """Ranks of true worker accuracies among independent draws are uniform."""
    from scipy.stats import chisquare

    n_chains, prior, ranks = 19, OneCoinPrior(3, 1.5), []
    for seed in range(60):
        rng = np.random.default_rng(seed)
        theta = prior.sample(6, 2, rng)
        truth = rng.integers(0, 2, 8)
        task, worker = simulate.Regular(3, 4).assign(8, 6, rng)
        label = (rng.random(24) > theta[worker, truth[task], 0]).astype(int)
        labels = CrowdLabels.from_arrays(task, worker, label, classes=[0, 1])
        model = GibbsDawidSkene(
            prior=prior, class_prior="uniform", n_chains=n_chains, n_sweeps=4, n_burn_in=60
        )
        # Four sweeps say nothing about convergence; the last ones of all chains are the draws.
        fitted = quietly(model, labels)
        ranks.append((fitted.accuracy_draws_[-1] < theta[:, 0, 0]).sum(axis=0))
    table = np.bincount(np.concatenate(ranks) // 4, minlength=5)
    assert chisquare(table).pvalue > 0.01, table


def quietly(model, labels, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", WisecrowdWarning)
        return model.fit(labels, **options)


def test_near_mean_field_on_easy_data():
    made = simulate.crowd(
        150, 8 * simulate.OneCoinWorkers(8, 2), simulate.PerTask(5), n_classes=3, random_state=0
    )
    gibbs, mean_field = GibbsDawidSkene().fit(made.labels), MeanField().fit(made.labels)
    assert np.abs(gibbs.probas_ - mean_field.probas_).mean() < 0.03
    np.testing.assert_allclose(gibbs.confusion_, mean_field.confusion_, atol=0.1)
    true = np.diagonal(made.confusion, axis1=1, axis2=2).mean(axis=1)
    low, high = gibbs.accuracy_interval_.T
    assert ((low < true) & (true < high)).mean() >= 0.75
    assert (gibbs.effective_size_ > 100).all()
    assert gibbs.converged_


def test_chains_that_disagree_are_told():
    # One worker against another on every task, and a prior that knows nothing: two stories.
    n = 60
    task = np.repeat(np.arange(n), 2)
    label = np.stack([np.arange(n) % 2, 1 - np.arange(n) % 2], axis=1).ravel()
    labels = CrowdLabels.from_arrays(task, np.tile([0, 1], n), label)
    model = GibbsDawidSkene(prior=OneCoinPrior(0.1, 0.1), n_sweeps=50, class_prior="uniform")
    with pytest.warns(WisecrowdWarning, match="R-hat"):
        fitted = model.fit(labels)
    assert not fitted.converged_
    assert fitted.r_hat_.max() > 1.05


def test_seeds_and_starts():
    labels = random_labels(10, 4, 2, seed=3)
    first, again, other = (
        quietly(GibbsDawidSkene(random_state=seed), labels).probas_ for seed in (1, 1, 2)
    )
    np.testing.assert_array_equal(first, again)
    assert np.abs(first - other).max() > 0
    starts = [
        quietly(GibbsDawidSkene(n_sweeps=4, n_burn_in=0), labels, init=np.eye(2)[np.full(10, k)])
        for k in (0, 1)
    ]
    assert np.abs(starts[0].probas_ - starts[1].probas_).max() > 0.01


@pytest.mark.parametrize(
    "bad",
    [{"prior": Discrete([0.9])}, {"prior": OneCoinPrior(0, 1)}, {"prior": "strong"},
     {"n_chains": 0},
     {"n_sweeps": 3}, {"n_burn_in": -1}, {"class_alpha": 0.0}, {"prior": DirichletRows(0.0)}],
    ids=repr,
)  # fmt: skip
def test_bad_parameters(bad):
    with pytest.raises(ParameterError):
        GibbsDawidSkene(**bad).fit(random_labels(4, 3, 2, seed=0))


def repeated_labels(weighted):
    """Workers label a task up to four times, and others in between."""
    rng = np.random.default_rng(0)
    task, worker = rng.integers(0, 5, 60), rng.integers(0, 3, 60)
    return CrowdLabels.from_arrays(
        task, worker, rng.integers(0, 3, 60), weight=rng.uniform(0.2, 2, 60) if weighted else None,
        duplicates="keep",
    )  # fmt: skip


@pytest.mark.parametrize("coin", [True, False])
@pytest.mark.parametrize("weighted", [True, False])
def testearlier_labels_by_looking_at_all_pairs(coin, weighted):
    labels = repeated_labels(weighted)
    E, K = labels.n_annotations, labels.n_classes
    weight = np.ones(E) if labels.weight is None else labels.weight
    expected, total = np.zeros((E, K)), np.zeros(E)
    for e in range(E):
        for f in range(e):
            if labels.task[e] == labels.task[f] and labels.worker[e] == labels.worker[f]:
                total[e] += weight[f]
                for k in range(K):
                    one, other = labels.label[e], labels.label[f]
                    same = (one == k) == (other == k) if coin else one == other
                    expected[e, k] += weight[f] * same
    assert total.max() > 2  # some worker labels some task more than twice
    found, found_total = earlier_labels(labels, coin)
    np.testing.assert_allclose(found, expected)
    np.testing.assert_allclose(found_total, total)


def test_nothing_is_earlier_where_every_label_counts_once():
    labels = CrowdLabels.from_matrix([[0, 1, 1], [1, 1, 0]])
    assert earlier_labels(labels, True) is None


@pytest.mark.parametrize("coin", [True, False])
def test_counts_do_not_drift(coin):
    """What sweeps add and take away is what counting anew gives, weights included."""
    labels = repeated_labels(weighted=True)
    K = labels.n_classes
    parameters = np.array([3.0, 1.0]) if coin else 1 + 3 * np.eye(K)[None]
    rng = np.random.default_rng(1)
    state = draw_classes(np.full((labels.n_tasks, K), 1 / K), 2, rng)
    chains = CollapsedChains(
        labels, TaskPrior(np.zeros((1, K))), Collapsible(coin, parameters), None, 0.5, state
    )
    for _ in range(5):
        chains.sweep(reference, rng, keep=False)
    for before, after in zip(chains.now, chains.counted(chains.now.state), strict=True):
        np.testing.assert_allclose(before, after, atol=1e-12)
    assert chains.now.class_counts.sum() == pytest.approx(2 * (labels.n_tasks + K * 0.5))
