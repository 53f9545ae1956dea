"""Belief propagation against enumeration of all assignments, and the published behaviour."""

import itertools
import warnings

import numpy as np
import pytest

from wisecrowd import kernels, simulate
from wisecrowd.core.exceptions import DataError, ParameterError, WisecrowdWarning
from wisecrowd.datasets import anaesthetists
from wisecrowd.inference.priors import DirichletRows, Discrete, MixturePrior, OneCoinPrior, TwoCoin
from wisecrowd.kinds.classes.container import CrowdLabels
from wisecrowd.kinds.classes.methods.belief_propagation import BeliefPropagation

MATRICES = np.random.default_rng(5).dirichlet(np.ones(3), (4, 3))
PRIORS = {
    2: [
        OneCoinPrior(2, 1),
        OneCoinPrior(0.3, 0.2),
        TwoCoin(2, 1, 3, 1),
        DirichletRows([[2.0, 1.0], [1.0, 3.0]]),
        Discrete([0.9, 0.5, 0.1], [6, 3, 1]),
        MixturePrior([OneCoinPrior(9, 1), Discrete([0.5])], [7, 3]),
        MixturePrior([OneCoinPrior(9, 1), DirichletRows(2.0)], [7, 3]),
    ],
    3: [
        OneCoinPrior(2, 1),
        DirichletRows(np.ones((3, 3)) + np.eye(3)),
        Discrete(MATRICES),
        MixturePrior([OneCoinPrior(9, 1), DirichletRows(2.0)], [7, 3]),
    ],
}


def random_tree(n_tasks, n_classes, seed):
    """Each new worker joins one known task with one to three new ones; then three single labels."""
    rng = np.random.default_rng(seed)
    edges, known, worker = [], [0], 0
    while len(known) < n_tasks:
        new = range(len(known), min(n_tasks, len(known) + int(rng.integers(1, 4))))
        joined = [int(rng.choice(known)), *new]
        edges += [(task, worker, int(rng.integers(n_classes))) for task in joined]
        known += new
        worker += 1
    for _ in range(3):
        edges.append((int(rng.choice(known)), worker, int(rng.integers(n_classes))))
        worker += 1
    task, worker, label = zip(*edges, strict=True)
    return CrowdLabels.from_arrays(task, worker, label, classes=list(range(n_classes)))


def enumerate_posterior(labels, prior, task_prior):
    """Return the exact marginals and log evidence by summing over every assignment of classes."""
    N, K = task_prior.shape
    assignments = np.array(list(itertools.product(range(K), repeat=N)))
    scores = np.log(task_prior[np.arange(N), assignments]).sum(axis=1)
    for n, z in enumerate(assignments):
        counts = np.zeros((labels.n_workers, K, K))
        np.add.at(counts, (labels.worker, z[labels.task], labels.label), 1)
        scores[n] += prior.posterior(counts).log_evidence.sum()
    evidence = np.logaddexp.reduce(scores)
    weight = np.exp(scores - evidence)
    marginals = [np.bincount(assignments[:, i], weight, K) for i in range(N)]
    return np.array(marginals), evidence


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize(
    ("n_tasks", "prior"), [(9, p) for p in PRIORS[2]] + [(6, p) for p in PRIORS[3]]
)
def test_exact_on_trees(n_tasks, prior, compiled, monkeypatch):
    monkeypatch.setattr(kernels, "COMPILE_FROM", 0 if compiled else 10**9)
    K = 2 if n_tasks == 9 else 3
    for seed in range(2):
        labels = random_tree(n_tasks, K, seed)
        h = np.random.default_rng(seed).dirichlet(np.ones(K), labels.n_tasks)
        model = BeliefPropagation(prior=prior, tol=1e-13).fit(labels, task_prior=h)
        exact, evidence = enumerate_posterior(labels, prior, h)
        np.testing.assert_allclose(model.probas_, exact, atol=1e-10)
        np.testing.assert_allclose(model.log_evidence_, evidence, atol=1e-9)
        assert model.converged_


def test_worker_posterior_on_a_tree():
    labels = random_tree(8, 2, 3)
    prior = OneCoinPrior(2, 1)
    h = np.full((labels.n_tasks, 2), 0.5)
    model = BeliefPropagation(prior=prior, tol=1e-13).fit(labels)
    mean = np.zeros(labels.n_workers)
    total = 0.0
    for z in itertools.product(range(2), repeat=labels.n_tasks):
        counts = np.zeros((labels.n_workers, 2, 2))
        np.add.at(counts, (labels.worker, np.array(z)[labels.task], labels.label), 1)
        posterior = prior.posterior(counts)
        weight = np.exp(posterior.log_evidence.sum()) * h[0, 0] ** labels.n_tasks
        mean += weight * posterior.mean[:, 0, 0]
        total += weight
    np.testing.assert_allclose(model.worker_accuracy_, mean / total, atol=1e-10)


def test_a_rated_thrice_worker_is_one_edge():
    """Replicates share the worker: the observer who rated three times is not three witnesses."""
    labels = anaesthetists()[np.arange(4)]
    prior = DirichletRows(np.ones((4, 4)) + 2 * np.eye(4))
    model = BeliefPropagation(prior=prior, n_nodes=2048, tol=1e-10).fit(labels)
    h = np.full((4, 4), 0.25)
    exact, _ = enumerate_posterior(labels, prior, h)
    # The graph has loops (five workers share four tasks) and the rule is quasi-Monte Carlo, so
    # this is close, not exact.
    assert np.abs(model.probas_ - exact).max() < 0.05


def test_same_labels_given_twice_equal_a_weight_of_two():
    task, worker, label = [0, 0, 0, 1, 1], [0, 0, 1, 0, 1], [1, 1, 0, 0, 1]
    twice = CrowdLabels.from_arrays(task, worker, label, duplicates="keep")
    once = CrowdLabels.from_arrays(
        [0, 0, 1, 1], [0, 1, 0, 1], [1, 0, 0, 1], weight=[2.0, 1.0, 1.0, 1.0]
    )
    a, b = (BeliefPropagation(tol=1e-12).fit(x) for x in (twice, once))
    np.testing.assert_allclose(a.probas_, b.probas_, atol=1e-10)


@pytest.mark.parametrize(("a", "least"), [(0.2, 0.965), (0.5, 0.90), (1.0, 0.80)])
def test_regular_graphs_reach_the_published_accuracy(a, least):
    accuracy = []
    for seed in range(3):
        made = simulate.crowd(
            1000, simulate.OneCoinWorkers(a, a / 2), simulate.Regular(3, 4), n_workers=750,
            n_classes=2, random_state=seed,
        )  # fmt: skip
        model = BeliefPropagation(prior=OneCoinPrior(a, a / 2)).fit(made.labels)
        accuracy.append(np.mean(model.labels_ == made.truth))
    assert np.mean(accuracy) > least


@pytest.mark.parametrize("prior", [OneCoinPrior(2, 1.4), TwoCoin(2, 1.4, 2, 1.4)])
def test_an_extreme_spammer_is_seen_through(prior):
    crowd = 750 * simulate.OneCoinWorkers(2, 1) + 1 * simulate.ExtremeSpammers()
    made = simulate.crowd(1000, crowd, simulate.Regular(3, 4), n_classes=2, random_state=1)
    model = BeliefPropagation(prior=prior).fit(made.labels)
    assert model.labels_per_worker_[-1] == 1000
    assert abs(model.worker_accuracy_[-1] - 0.5) < 0.07
    assert np.mean(model.labels_ == made.truth) > 0.72
    (told,) = model.warnings_  # four labels by most, and nothing else is doubtful
    assert "5.3 labels each on average" in told


def test_three_classes_and_a_spammer_with_a_thousand_labels():
    crowd = 500 * simulate.DirichletWorkers(6, 1) + 1 * simulate.ExtremeSpammers()
    made = simulate.crowd(1000, crowd, simulate.Regular(2, 4), n_classes=3, random_state=2)
    prior = DirichletRows(np.ones((3, 3)) + 5 * np.eye(3))
    with warnings.catch_warnings():  # so few points are inexact, and that is said
        warnings.simplefilter("ignore", WisecrowdWarning)
        model = BeliefPropagation(prior=prior, n_nodes=64, max_iter=20).fit(made.labels)
    assert np.abs(model.confusion_[-1] - 1 / 3).max() < 0.12
    coin = BeliefPropagation(prior=OneCoinPrior(3, 1)).fit(made.labels)
    assert np.mean(model.labels_ == made.truth) > np.mean(coin.labels_ == made.truth) - 0.02


def test_monte_carlo_approaches_the_exact_messages():
    made = simulate.crowd(
        200, simulate.OneCoinWorkers(2, 1), simulate.Regular(3, 4), n_workers=150, n_classes=2
    )
    exact = BeliefPropagation(prior=OneCoinPrior(2, 1)).fit(made.labels)

    def error(n_nodes):
        drawn = [
            BeliefPropagation(
                prior=OneCoinPrior(2, 1), rule="monte-carlo", n_nodes=n_nodes, random_state=seed
            ).fit(made.labels)
            for seed in range(3)
        ]
        return np.mean([np.abs(m.probas_ - exact.probas_).mean() for m in drawn])

    assert error(10) > 2 * error(400)
    assert error(400) < 0.05


def test_a_classifier_as_task_prior_and_gold():
    made = simulate.crowd(
        300, simulate.OneCoinWorkers(2, 1), simulate.Regular(3, 4), n_workers=225, n_classes=2
    )
    alone = BeliefPropagation().fit(made.labels)
    hint = np.where(made.truth_codes[:, None] == np.arange(2), 0.8, 0.2)
    helped = BeliefPropagation().fit(made.labels, task_prior=hint)
    assert np.mean(helped.labels_ == made.truth) > np.mean(alone.labels_ == made.truth) + 0.03
    gold = {made.labels.tasks[i].item(): made.truth[i].item() for i in range(100)}
    taught = BeliefPropagation().fit(made.labels, gold=gold)
    assert (taught.labels_[:100] == made.truth[:100]).all()
    rest = slice(100, None)
    assert np.mean(taught.labels_[rest] == made.truth[rest]) >= np.mean(
        alone.labels_[rest] == made.truth[rest]
    )


def test_damping_reaches_the_same_fixed_point():
    made = simulate.crowd(100, simulate.OneCoinWorkers(4, 2), simulate.PerTask(5), n_workers=30)
    plain, damped = (
        BeliefPropagation(damping=d, tol=1e-10, max_iter=1000).fit(made.labels) for d in (0.0, 0.6)
    )
    np.testing.assert_allclose(plain.probas_, damped.probas_, atol=1e-7)
    assert damped.n_iter_ > plain.n_iter_


def test_estimated_class_prior_follows_the_data():
    made = simulate.crowd(
        2000, simulate.OneCoinWorkers(9, 1), simulate.PerTask(5), n_workers=100, n_classes=2,
        class_prior=[0.85, 0.15],
    )  # fmt: skip
    model = BeliefPropagation(prior=OneCoinPrior(9, 1), class_prior="estimate").fit(made.labels)
    np.testing.assert_allclose(model.class_prior_, [0.85, 0.15], atol=0.03)


@pytest.mark.parametrize(
    "parameters",
    [{"prior": None}, {"damping": 1.0}, {"n_nodes": 1}, {"rule": "simpson"}, {"prior": (0, 1)}],
)
def test_bad_parameters(parameters):
    labels = CrowdLabels.from_matrix([[0, 1], [1, 1]])
    with pytest.raises(ParameterError):
        BeliefPropagation(**parameters).fit(labels)


def test_empirical_bayes_finds_the_crowd():
    made = simulate.crowd(
        400, simulate.OneCoinWorkers(0.6, 0.3), simulate.Regular(4, 8), n_workers=200, n_classes=2
    )
    given = BeliefPropagation(prior=OneCoinPrior(6, 3)).fit(made.labels)
    fitted = BeliefPropagation(prior=OneCoinPrior(6, 3), fit_prior=True).fit(made.labels)
    true = BeliefPropagation(prior=OneCoinPrior(0.6, 0.3)).fit(made.labels)
    assert fitted.log_evidence_ > given.log_evidence_ + 5
    assert fitted.log_evidence_ >= true.log_evidence_ - 0.01
    assert fitted.prior_.a + fitted.prior_.b < 2  # a crowd of extremes, not of middling workers
    assert np.mean(fitted.labels_ == made.truth) >= np.mean(given.labels_ == made.truth)


def test_weights_that_messages_cannot_carry_are_refused():
    votes = (["t", "t", "u"], ["a", "b", "a"], [0, 1, 1])
    with pytest.raises(DataError, match=r"1 of the weights .* 500 per label; scale the weights"):
        BeliefPropagation().fit(CrowdLabels.from_arrays(*votes, weight=[1.0, 1000.0, 1.0]))
    fitted = BeliefPropagation().fit(CrowdLabels.from_arrays(*votes, weight=[500.0, 1.0, 1.0]))
    assert np.isfinite(fitted.probas_).all()


def test_far_too_many_classes_are_refused_before_any_work():
    labels = CrowdLabels.from_arrays([0, 0, 1], [0, 1, 1], [3, 3, 5], classes=np.arange(300_000))
    with pytest.raises(DataError, match=r"300000 classes would need .* TB .*; use one-coin"):
        BeliefPropagation().fit(labels)
