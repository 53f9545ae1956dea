"""Mean field: the bound by brute force, its climb, what it reduces to, and published behaviour."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
import pytest

from wisecrowd import kernels, simulate
from wisecrowd.core.exceptions import ParameterError
from wisecrowd.inference.priors import (
    DirichletRows,
    Discrete,
    History,
    MixturePrior,
    OneCoinPrior,
    TwoCoin,
)
from wisecrowd.kinds.classes.container import CrowdLabels
from wisecrowd.kinds.classes.families.worker_prior import WorkerPosterior
from wisecrowd.kinds.classes.methods.belief_propagation import BeliefPropagation
from wisecrowd.kinds.classes.methods.dawid_skene import DawidSkene
from wisecrowd.kinds.classes.methods.gibbs_dawid_skene import GibbsDawidSkene
from wisecrowd.kinds.classes.methods.mean_field import MeanField


def tied(diagonal, elsewhere, n_classes):
    same = np.eye(n_classes, dtype=bool)
    return DirichletRows(np.where(same, float(diagonal), float(elsewhere)))


def random_labels(n_tasks, n_workers, n_classes, seed, weighted=False, density=0.7):
    rng = np.random.default_rng(seed)
    task, worker = np.nonzero(rng.random((n_tasks, n_workers)) < density)
    task, worker = np.append(task, 0), np.append(worker, n_workers - 1)
    label = rng.integers(0, n_classes, len(task))
    weight = rng.uniform(0.2, 2.5, len(task)) if weighted else None
    return CrowdLabels.from_arrays(
        task, worker, label, classes=range(n_classes), weight=weight, duplicates="keep"
    )


def expected_counts(labels, probas):
    counts = np.zeros((labels.n_workers, labels.n_classes, labels.n_classes))
    weight = np.ones(labels.n_annotations) if labels.weight is None else labels.weight
    for i, j, given, w in zip(labels.task, labels.worker, labels.label, weight, strict=True):
        counts[j, :, given] += w * probas[i]
    return counts


def log_evidence_and_marginals(labels, prior, h):
    """Sum over all classes of all tasks; workers are integrated out in closed form."""
    N, K = h.shape
    total, marginals = 0.0, np.zeros((N, K))
    for z in itertools.product(range(K), repeat=N):
        one_hot = np.eye(K)[list(z)]
        p = np.exp(prior.posterior(expected_counts(labels, one_hot)).log_evidence.sum())
        p *= np.prod(h[np.arange(N), z])
        total += p
        marginals += p * one_hot
    return np.log(total), marginals / total


# ------------------------------------------------------------------------------- the bound, exact


def bound_of_rows(labels, probas, before, alpha, class_alpha):
    """Return the ELBO term by term, from entropies that scipy has."""
    from scipy.special import psi, xlogy
    from scipy.stats import dirichlet

    K = labels.n_classes
    shape = alpha + expected_counts(labels, before)
    logs = psi(shape) - psi(shape.sum(axis=2, keepdims=True))
    labelled = labels.labels_per_task > 0
    class_shape = class_alpha + before[labelled].sum(axis=0)
    class_logs = psi(class_shape) - psi(class_shape.sum())
    value = (expected_counts(labels, probas) * logs).sum() + probas.sum(axis=0) @ class_logs
    value -= xlogy(probas, probas).sum()

    def gain(prior, posterior, log):  # E log p - E log q of one Dirichlet
        uniform = np.full(K, 1 / K)
        constant = dirichlet.logpdf(uniform, prior) - (prior - 1) @ np.log(uniform)
        return constant + (prior - 1) @ log + dirichlet.entropy(posterior)

    value += gain(np.full(K, class_alpha), class_shape, class_logs)
    for j in range(labels.n_workers):
        value += sum(gain(alpha[k], shape[j, k], logs[j, k]) for k in range(K))
    return value


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n_iter", [2, 3, 6])
def test_bound_equals_its_definition(n_classes, weighted, n_iter):
    labels = random_labels(6, 4, n_classes, seed=n_iter, weighted=weighted)
    alpha = np.random.default_rng(n_iter).uniform(0.5, 4, (n_classes, n_classes))
    options = {"prior": alpha, "class_alpha": 1.7, "tol": 0.0, "accelerate": False}
    before = MeanField(max_iter=n_iter - 1, **options).fit(labels).probas_
    fitted = MeanField(max_iter=n_iter, **options).fit(labels)
    brute = bound_of_rows(labels, fitted.probas_, before, alpha, 1.7)
    assert fitted.history_[-1] == pytest.approx(brute, rel=1e-10)


def test_bound_of_one_coin_by_numerical_integration():
    from scipy.integrate import quad
    from scipy.special import xlogy
    from scipy.stats import beta

    labels = random_labels(5, 3, 3, seed=1)
    options = {"prior": OneCoinPrior(2.0, 1.5), "class_prior": "uniform"}
    options |= {"tol": 0.0, "accelerate": False}
    before = MeanField(max_iter=2, **options).fit(labels).probas_
    fitted = MeanField(max_iter=3, **options).fit(labels)
    q = fitted.probas_
    value = -xlogy(q, q).sum() + q.sum() * np.log(1 / 3)
    now, then = expected_counts(labels, q), expected_counts(labels, before)
    for j in range(3):
        right, total = np.trace(then[j]), then[j].sum()
        posterior, prior = beta(2 + right, 1.5 + total - right), beta(2.0, 1.5)

        def gain(p, j=j, posterior=posterior, prior=prior):
            right_now, total_now = np.trace(now[j]), now[j].sum()
            log_labels = right_now * np.log(p) + (total_now - right_now) * np.log((1 - p) / 2)
            return posterior.pdf(p) * (log_labels + prior.logpdf(p) - posterior.logpdf(p))

        value += quad(gain, 0, 1)[0]
    assert fitted.history_[-1] == pytest.approx(value, rel=1e-7)


PRIORS = [
    OneCoinPrior(2, 1),
    OneCoinPrior(0.3, 0.2),
    TwoCoin(3, 1, 2, 2),
    tied(4, 1, 2),
    Discrete([0.9, 0.5, 0.1], [0.6, 0.3, 0.1]),
    MixturePrior([OneCoinPrior(9, 1), Discrete([0.5])], [0.7, 0.3]),
    MixturePrior([tied(5, 1, 2), OneCoinPrior(2, 2)]),
]


@pytest.mark.parametrize("prior", PRIORS, ids=repr)
def test_bound_is_below_the_evidence_and_near_it(prior):
    for seed in range(4):
        labels = random_labels(6, 3, 2, seed)
        fitted = MeanField(prior=prior, class_prior="uniform").fit(labels)
        h = np.full((labels.n_tasks, 2), 0.5)
        exact, _ = log_evidence_and_marginals(labels, prior, h)
        assert exact - 5 < fitted.history_[-1] <= exact + 1e-9


@pytest.mark.parametrize("prior", PRIORS, ids=repr)
@pytest.mark.parametrize("fit_prior", [False, True])
def test_bound_never_falls(prior, fit_prior):
    for seed in range(5):
        labels = random_labels(12, 5, 2, seed, weighted=seed % 2 == 1, density=0.5)
        for accelerate in (False, True):
            fitted = MeanField(
                prior=prior, fit_prior=fit_prior, accelerate=accelerate, max_iter=40, tol=0.0
            ).fit(labels)
            steps = np.diff(fitted.history_)
            assert steps.min(initial=0.0) >= -1e-9 * abs(fitted.history_[0])


def test_the_best_start_has_the_best_bound():
    labels = random_labels(15, 6, 2, seed=3)
    one = MeanField(prior=OneCoinPrior(0.5, 0.4)).fit(labels)
    many = MeanField(prior=OneCoinPrior(0.5, 0.4), n_init=15).fit(labels)
    assert many.history_[-1] >= one.history_[-1]


# ------------------------------------------------------------------------- what it is the same as


@dataclass(frozen=True, eq=False)
class LogOfMean(DirichletRows):
    """Dirichlet rows whose expected logarithm is replaced by the logarithm of the mean."""

    def posterior(self, counts):
        found = super().posterior(counts)
        return WorkerPosterior(np.log(found.mean), found.mean, found.log_evidence)


@pytest.mark.parametrize("n_iter", [1, 2, 5])
def test_is_dawid_skene_with_logs_of_means(n_iter):
    labels = random_labels(30, 6, 3, seed=0, weighted=True)
    alpha = np.random.default_rng(0).uniform(0.3, 3, (3, 3))
    options = {"class_prior": "uniform", "max_iter": n_iter, "tol": 0.0, "accelerate": False}
    ours = MeanField(prior=LogOfMean(alpha), **options).fit(labels)
    theirs = DawidSkene(prior=alpha, **options).fit(labels)
    np.testing.assert_allclose(ours.probas_, theirs.probas_, atol=1e-12)
    np.testing.assert_allclose(ours.confusion_, theirs.confusion_, atol=1e-12)


def test_two_coins_are_dirichlet_rows():
    labels = random_labels(20, 5, 2, seed=2)
    coins = MeanField(prior=TwoCoin(3, 1, 2, 1.5)).fit(labels)
    rows = MeanField(prior=[[3, 1], [1.5, 2]]).fit(labels)
    np.testing.assert_allclose(coins.probas_, rows.probas_, atol=1e-12)


def test_certain_workers_are_a_vote():
    labels = random_labels(25, 5, 3, seed=4)
    fitted = MeanField(prior=tied(3e8, 1e8, 3), class_prior="uniform").fit(labels)
    votes = np.zeros((25, 3))
    np.add.at(votes, (labels.task, labels.label), 1.0)
    expected = 3.0**votes / (3.0**votes).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(fitted.probas_, expected, atol=1e-5)


def test_class_posterior_is_its_dirichlets_mean():
    labels = random_labels(30, 5, 3, seed=5)
    fitted = MeanField(class_alpha=2.0, tol=1e-13, max_iter=2000).fit(labels)
    expected = (2 + fitted.probas_.sum(axis=0)) / (6 + labels.n_tasks)
    np.testing.assert_allclose(fitted.class_prior_, expected, atol=1e-6)


def test_a_worker_without_labels_keeps_the_prior():
    labels = CrowdLabels.from_arrays([0, 1], ["a", "a"], [0, 1], workers=["a", "b"])
    fitted = MeanField(prior=[[5, 1], [2, 2]]).fit(labels)
    np.testing.assert_allclose(fitted.confusion_[1], [[5 / 6, 1 / 6], [0.5, 0.5]])


def test_compiled_and_reference_kernels_agree(monkeypatch):
    labels = random_labels(40, 6, 4, seed=6)
    monkeypatch.setattr(kernels, "COMPILE_FROM", 10**12)
    reference = MeanField(max_iter=20, tol=0.0).fit(labels)
    monkeypatch.setattr(kernels, "COMPILE_FROM", 0)
    fast = MeanField(max_iter=20, tol=0.0).fit(labels)
    np.testing.assert_allclose(fast.probas_, reference.probas_, atol=1e-10)
    np.testing.assert_allclose(fast.history_, reference.history_, rtol=1e-12)


# ------------------------------------------------------------------------------ priors and options


def test_a_former_fit_as_prior():
    labels = random_labels(30, 5, 2, seed=7)
    former = MeanField().fit(labels)
    fitted = MeanField(prior=History(former, strength=1e6)).fit(labels)
    np.testing.assert_allclose(fitted.confusion_, former.confusion_, atol=1e-4)


@pytest.mark.parametrize("bad", [None, "strong", 3, (0, 1), DirichletRows(0.0), (1, 2, 3)])
def test_bad_priors(bad):
    with pytest.raises(ParameterError):
        MeanField(prior=bad).fit(random_labels(5, 3, 2, seed=0))


def test_two_coins_are_for_two_classes():
    with pytest.raises(ParameterError, match="two classes"):
        MeanField(prior=TwoCoin()).fit(random_labels(5, 3, 3, seed=0))


def test_fitted_prior_is_that_of_the_crowd():
    made = simulate.crowd(
        2000, 60 * simulate.OneCoinWorkers(5, 1.5), simulate.PerTask(4), n_classes=3, random_state=0
    )
    fitted = MeanField(prior=OneCoinPrior(1, 1), fit_prior=True).fit(made.labels)
    assert fitted.prior_.a / (fitted.prior_.a + fitted.prior_.b) == pytest.approx(0.77, abs=0.04)
    assert fitted.prior_.a == pytest.approx(5, rel=0.4)
    fixed = MeanField(prior=OneCoinPrior(1, 1)).fit(made.labels)
    assert fitted.history_[-1] > fixed.history_[-1]
    assert fixed.prior_ == OneCoinPrior(1, 1)


def test_a_sparse_crowd_does_not_make_the_fitted_prior_certain():
    made = regular_crowd(0.2, 0)
    fitted = MeanField(prior=OneCoinPrior(2, 1), fit_prior=True, class_prior="uniform").fit(
        made.labels
    )
    assert (fitted.prior_.a, fitted.prior_.b) == pytest.approx((0.2, 0.1), rel=0.5)


# ------------------------------------------------------------------------- the posterior, and BP's


def test_total_variation_to_the_enumerated_posterior_on_a_small_loopy_graph():
    prior = OneCoinPrior(3, 1)
    distances = {"bp": [], "mean field": [], "gibbs": []}
    for seed in range(8):
        made = simulate.crowd(
            8, 6 * simulate.OneCoinWorkers(3, 1), simulate.Regular(3, 4), random_state=seed
        )
        h = np.full((8, 2), 0.5)
        _, exact = log_evidence_and_marginals(made.labels, prior, h)
        options = {"prior": prior, "class_prior": "uniform"}
        methods = {
            "bp": BeliefPropagation(**options),
            "mean field": MeanField(**options),
            "gibbs": GibbsDawidSkene(n_chains=64, n_sweeps=600, n_burn_in=50, **options),
        }
        for name, method in methods.items():
            distances[name].append(
                0.5 * np.abs(method.fit(made.labels).probas_ - exact).sum(axis=1).mean()
            )
    mean = {name: float(np.mean(values)) for name, values in distances.items()}
    assert mean["gibbs"] < 0.02, mean
    assert mean["bp"] < 0.5 * mean["mean field"], mean


def regular_crowd(a, seed, *more):
    workers = 750 * simulate.OneCoinWorkers(a, a / 2)
    for part in more:
        workers = workers + part
    return simulate.crowd(1000, workers, simulate.Regular(3, 4), random_state=seed)


@pytest.mark.parametrize(("a", "expected"), [(0.2, 0.93), (0.5, 0.886), (1.0, 0.82), (2.0, 0.757)])
def test_accuracy_on_sparse_regular_graphs(a, expected):
    reached = []
    for seed in range(3):
        made = regular_crowd(a, seed)
        fitted = MeanField(prior=OneCoinPrior(a, a / 2), class_prior="uniform").fit(made.labels)
        reached.append(np.mean(fitted.labels_ == made.truth))
    assert np.mean(reached) == pytest.approx(expected, abs=0.025)


def test_an_extreme_spammer_and_a_pessimistic_prior_lead_to_chance():
    reached = []
    for seed in range(3):
        made = regular_crowd(2.0, seed, simulate.ExtremeSpammers())
        fitted = MeanField(prior=TwoCoin(2, 1.4, 2, 1.4), class_prior="uniform").fit(made.labels)
        reached.append(np.mean(fitted.labels_ == made.truth))
    assert np.mean(reached) < 0.6
    hopeful = MeanField(prior=TwoCoin(2, 0.8, 2, 0.8), class_prior="uniform").fit(made.labels)
    assert np.mean(hopeful.labels_ == made.truth) > 0.7


# -------------------------------------------------------------------- a classifier as task prior


@pytest.mark.parametrize("method", [MeanField(), GibbsDawidSkene(n_sweeps=400)])
def test_a_classifiers_output_as_task_prior(method):
    made = simulate.crowd(
        400, 20 * simulate.OneCoinWorkers(3, 2), simulate.PerTask(3), n_classes=3, random_state=0
    )
    rng = np.random.default_rng(0)
    logits = 2.0 * np.eye(3)[made.truth_codes] + rng.gumbel(size=(400, 3))
    classifier = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    alone = np.mean(classifier.argmax(axis=1) == made.truth_codes)
    without = np.mean(method.fit(made.labels).labels_ == made.truth)
    fitted = method.fit(made.labels, task_prior=classifier)
    together = np.mean(fitted.labels_ == made.truth)
    assert together > max(alone, without) + 0.02


def test_the_task_prior_multiplies_what_the_labels_say():
    labels = random_labels(12, 4, 3, seed=8)
    h = np.random.default_rng(8).dirichlet(np.ones(3), 12)
    fitted = MeanField(max_iter=4, tol=0.0).fit(labels, task_prior=h)
    scores = np.log(h)
    for i, j, given in zip(labels.task, labels.worker, labels.label, strict=True):
        scores[i] += fitted.expected_log_confusion_[j, :, given]
    expected = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(fitted.probas_, expected, atol=1e-12)


@pytest.mark.parametrize(
    ("name", "published"),
    [("bluebird", 0.889), ("dog", 0.839), ("rte", 0.928), ("sp_amt", 0.944), ("cf", 0.883),
     ("music_genre", 0.790)],
)  # fmt: skip
def test_accuracy_of_the_published_implementation(data_directory, name, published):
    task, worker, label = np.loadtxt(
        data_directory / name / "answers.csv", delimiter=",", skiprows=1, dtype=int, unpack=True
    )
    known = np.loadtxt(data_directory / name / "truth.csv", delimiter=",", skiprows=1, dtype=int)
    fitted = MeanField().fit((task, worker, label))
    truth = dict(known[np.isin(known[:, 0], task)].tolist())
    right = [truth[t] == given for t, given in zip(fitted.tasks_, fitted.labels_, strict=True)
             if t in truth]  # fmt: skip
    assert np.mean(right) >= published - 0.005
