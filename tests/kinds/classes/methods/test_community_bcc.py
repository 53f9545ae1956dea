from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.special import gammaln, psi

from wisecrowd import simulate
from wisecrowd.core.exceptions import ParameterError
from wisecrowd.inference.dirichlet import expected_log
from wisecrowd.inference.priors import History
from wisecrowd.kinds.classes.container import CrowdLabels
from wisecrowd.kinds.classes.methods.community_bcc import CommunityBCC
from wisecrowd.kinds.classes.methods.mean_field import MeanField

HAMMER = np.array([[0.92, 0.05, 0.03], [0.04, 0.9, 0.06], [0.05, 0.05, 0.9]])
LAZY = np.array([[0.8, 0.1, 0.1], [0.7, 0.2, 0.1], [0.75, 0.1, 0.15]])  # mostly clicks 0
SWAPPER = np.array([[0.9, 0.05, 0.05], [0.05, 0.15, 0.8], [0.05, 0.75, 0.2]])


def own_crowd(n_workers=60, n_tasks=1500, labels_per_task=6, seed=0):
    """Draw from the model: half hammers, a third lazy, the rest swap two classes."""
    rng = np.random.default_rng(seed)
    matrices = np.stack([HAMMER, SWAPPER, LAZY])
    kind = rng.choice(3, n_workers, p=[0.5, 1 / 6, 1 / 3])
    workers = n_workers * simulate.FixedConfusion(matrices[kind])
    made = simulate.crowd(n_tasks, workers, simulate.PerTask(labels_per_task),
                          class_prior=[0.4, 0.35, 0.25], random_state=seed)  # fmt: skip
    return made, matrices, kind


def oracle_accuracy(made):
    """Accuracy of the labels that all parameters, known, would give."""
    score = np.tile(np.log([0.4, 0.35, 0.25]), (made.labels.n_tasks, 1))
    rows = np.log(made.confusion[made.labels.worker, :, made.labels.label])
    np.add.at(score, made.labels.task, rows)
    return np.mean(score.argmax(axis=1) == made.truth_codes)


def random_labels(seed):
    rng = np.random.default_rng(seed)
    K, J, N = rng.integers(2, 5), rng.integers(1, 8), rng.integers(1, 30)
    task, worker = np.nonzero(rng.random((N, J)) < 0.6)
    return CrowdLabels.from_arrays(
        np.append(task, 0), np.append(worker, 0), rng.integers(0, K, len(task) + 1),
        classes=np.arange(K), duplicates="keep",
        weight=rng.uniform(0.1, 3, len(task) + 1) if seed % 2 else None,
    )  # fmt: skip


# ------------------------------------------------------------------------------------------- bound


def test_bound_term_by_term():
    """The last bound from the published posteriors alone, by the textbook sum."""
    labels = own_crowd(12, 40, 4)[0].labels
    model = CommunityBCC(n_communities=3, n_init=1, max_iter=5, tol=0.0, community_alpha=0.7)
    engine_bound = model.fit(labels).history_[-1]
    r, beta = model.community_, model.community_posterior_
    q, K, C = model.probas_, 3, 3
    eta = model.community_share_ * (labels.n_workers + 0.7 * C)  # shares came from the counts
    alpha = np.ones((K, K)) + 3 * np.eye(K)
    log_pi = expected_log(model.class_posterior_)
    log_theta, log_h = expected_log(beta), expected_log(eta)

    def expected_density(logs, parameters):
        norm = gammaln(parameters.sum(-1)) - gammaln(parameters).sum(-1)
        return (norm + ((parameters - 1) * logs).sum(-1)).sum()

    bound = expected_density(log_pi, np.ones(K)) - expected_density(log_pi, model.class_posterior_)
    bound += expected_density(log_h, np.full(C, 0.7)) - expected_density(log_h, eta)
    bound += expected_density(log_theta, np.broadcast_to(alpha, beta.shape))
    bound -= expected_density(log_theta, beta)
    bound += (q @ log_pi).sum() - (q * np.log(q)).sum()
    bound += (r @ log_h).sum() - (r * np.log(np.maximum(r, 1e-300))).sum()
    for i, j, label in zip(labels.task, labels.worker, labels.label, strict=True):
        bound += q[i] @ (r[j] @ log_theta[:, :, label])
    assert engine_bound == pytest.approx(bound, rel=1e-11)


def log_polya(counts, alpha):
    return (
        gammaln(alpha.sum())
        - gammaln(alpha.sum() + counts.sum())
        + (gammaln(alpha + counts) - gammaln(alpha)).sum()
    )


def exact_evidence(labels, C):
    """log p(labels), every class of every task and community of every worker enumerated."""
    N, J, K = labels.n_tasks, labels.n_workers, labels.n_classes
    alpha = np.ones((K, K)) + 3 * np.eye(K)
    values = []
    for z in itertools.product(range(K), repeat=N):
        for m in itertools.product(range(C), repeat=J):
            truth, kind = np.array(z), np.array(m)
            value = log_polya(np.bincount(truth, minlength=K), np.ones(K))
            value += log_polya(np.bincount(kind, minlength=C), np.ones(C))
            for c, k in itertools.product(range(C), range(K)):
                here = (kind[labels.worker] == c) & (truth[labels.task] == k)
                value += log_polya(np.bincount(labels.label[here], minlength=K), alpha[k])
            values.append(value)
    return np.logaddexp.reduce(values)


@pytest.mark.parametrize("C", [1, 2])
def test_bound_is_below_the_evidence_and_not_far(C):
    labels = CrowdLabels.from_matrix([[0, 0, 1], [1, 1, 1], [0, 0, 0], [1, 1, 0], [0, 0, 1]])
    model = CommunityBCC(n_communities=C, n_init=10, tol=1e-12).fit(labels)
    evidence = exact_evidence(labels, C)
    assert model.history_[-1] < evidence
    assert model.history_[-1] > evidence - 3


def test_bound_never_falls_in_many_random_runs():
    for seed in range(40):
        model = CommunityBCC(n_communities=1 + seed % 5, max_iter=60, tol=0.0, n_init=1 + seed % 2)
        history = model.fit(random_labels(seed)).history_
        assert -np.diff(history).min(initial=0.0) <= 1e-10 * abs(history[-1])


# -------------------------------------------------------------------------------------- reductions


def test_one_community_is_one_worker_who_gave_all_labels():
    labels = own_crowd(12, 60, 4)[0].labels
    shared = CrowdLabels.from_arrays(
        labels.task, np.zeros(labels.n_annotations, int), labels.label, duplicates="keep"
    )
    options = {"class_prior": "estimate", "max_iter": 20, "tol": 0.0}  # "auto": tasks not shared
    pooled = MeanField(**options, accelerate=False)._fit_without_checks(shared)
    model = CommunityBCC(n_communities=1, n_init=1, **options).fit(labels)
    np.testing.assert_allclose(model.probas_, pooled.probas_, atol=1e-9)
    np.testing.assert_allclose(model.history_, pooled.history_, rtol=1e-10)
    np.testing.assert_allclose(
        model.confusion_, np.repeat(pooled.confusion_, labels.n_workers, axis=0), atol=1e-9
    )


def test_a_community_for_every_worker_is_mean_field():
    """With memberships fixed by the data, as many communities as workers are Bayesian workers."""
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, 3000)
    right = np.array([0.95, 0.8, 0.65])
    votes = np.where(rng.random((3000, 3)) < right, truth[:, None], 1 - truth[:, None])
    labels = CrowdLabels.from_matrix(votes)
    model = CommunityBCC(n_communities=3, tol=1e-15, max_iter=3000).fit(labels)
    plain = MeanField(tol=1e-15, max_iter=3000).fit(labels)
    assert sorted(model.community_.argmax(axis=1)) == [0, 1, 2]
    np.testing.assert_allclose(model.community_.max(axis=1), 1, atol=1e-6)
    np.testing.assert_allclose(model.probas_, plain.probas_, atol=1e-4)


# --------------------------------------------------------------------------------------- behaviour


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_recovers_its_own_simulator(seed):
    made, matrices, kind = own_crowd(seed=seed)
    model = CommunityBCC().fit(made.labels)
    used = model.community_.argmax(axis=1)
    assert np.mean(model.labels_ == made.truth) >= oracle_accuracy(made) - 0.01
    for c in range(3):
        (group,) = np.unique(used[kind == c])[:1]  # the workers of a kind share a community
        assert np.mean(used[kind == c] == group) >= 0.95
        np.testing.assert_allclose(model.community_confusion_[group], matrices[c], atol=0.08)
        np.testing.assert_allclose(model.community_share_[group], np.mean(kind == c), atol=0.08)
    true = np.einsum("jkk,k->j", matrices[kind], [0.4, 0.35, 0.25])
    np.testing.assert_allclose(model.worker_accuracy_, true, atol=0.06)
    within = np.abs(model.worker_accuracy_ - true) <= 4 * model.worker_accuracy_error_
    assert within.mean() >= 0.8


def test_helps_workers_of_few_labels():
    """Five labels per worker: too few for a matrix each, enough to tell the kinds apart."""
    gains = []
    for seed in range(3):
        made, _, _ = own_crowd(n_workers=480, n_tasks=400, labels_per_task=6, seed=seed)
        pooled = np.mean(CommunityBCC().fit(made.labels).labels_ == made.truth)
        alone = np.mean(MeanField().fit(made.labels).labels_ == made.truth)
        gains.append(pooled - alone)
    assert np.mean(gains) >= 0.02


def test_communities_are_ordered_by_accuracy():
    model = CommunityBCC(n_communities=4).fit(own_crowd()[0].labels)
    accuracy = np.diagonal(model.community_confusion_, axis1=1, axis2=2) @ model.class_prior_
    assert (np.diff(accuracy) <= 0).all()
    np.testing.assert_allclose(model.community_.sum(axis=1), 1)
    np.testing.assert_allclose(model.community_share_.sum(), 1)
    np.testing.assert_allclose(
        model.confusion_, np.tensordot(model.community_, model.community_confusion_, axes=1)
    )


def test_accuracy_is_the_mean_of_the_posterior():
    model = CommunityBCC(n_communities=3).fit(own_crowd(12, 30, 4)[0].labels)
    rng = np.random.default_rng(0)
    n, accuracy = 6000, np.zeros((6000, 3))
    for c, k in itertools.product(range(3), range(3)):
        rows = rng.dirichlet(model.community_posterior_[c, k], n)
        accuracy[:, c] += model.class_prior_[k] * rows[:, k]
    for j in range(12):
        draws = accuracy[np.arange(n), rng.choice(3, n, p=model.community_[j])]
        assert model.worker_accuracy_[j] == pytest.approx(draws.mean(), abs=0.01)


def test_workers_without_labels_have_the_crowds_shares():
    made = own_crowd(20, 60, 4)[0].labels
    declared = CrowdLabels.from_arrays(
        made.task, made.worker, made.label, workers=np.arange(25), classes=np.arange(3)
    )
    model = CommunityBCC(n_communities=2, n_init=1).fit(declared)
    np.testing.assert_allclose(model.community_[20:], np.tile(model.community_share_, (5, 1)))
    alone = CommunityBCC(n_communities=2, n_init=1).fit(made)
    np.testing.assert_allclose(model.community_[:20], alone.community_, atol=1e-9)
    np.testing.assert_allclose(model.history_, alone.history_, rtol=1e-12)


@pytest.mark.filterwarnings("ignore:.*were not in the fit")
def test_unknown_workers_say_nothing():
    model = CommunityBCC().fit(own_crowd(12, 60, 4)[0].labels)
    logs = psi(model.class_posterior_)
    expected = np.exp(logs) / np.exp(logs).sum()
    found = model.predict_proba((["a"] * 2, ["x", "y"], [0, 2]))
    np.testing.assert_allclose(found[0], expected, atol=1e-10)


def test_a_prior_per_community():
    made, matrices, kind = own_crowd(seed=4)
    model = CommunityBCC(n_communities=3, prior=50 * matrices + 0.01).fit(made.labels)
    assert np.mean(model.labels_ == made.truth) >= oracle_accuracy(made) - 0.01
    assert len(np.unique(model.community_.argmax(axis=1))) == len(np.unique(kind))


@pytest.mark.parametrize("bad", [
    {"n_communities": 0}, {"n_communities": 1.5}, {"community_alpha": 0.0}, {"class_alpha": -1.0},
    {"prior": None}, {"prior": np.ones((2, 2))}, {"prior": np.ones((5, 3, 3))},
])  # fmt: skip
def test_bad_parameters(bad):
    with pytest.raises(ParameterError):
        CommunityBCC(**bad).fit(own_crowd(12, 30, 4)[0].labels)


def test_a_history_of_workers_is_refused():
    labels = own_crowd(12, 30, 4)[0].labels
    with pytest.raises(ParameterError, match="history is of workers"):
        CommunityBCC(prior=History(MeanField().fit(labels))).fit(labels)
